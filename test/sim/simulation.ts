/**
 * One run: a cluster of the real parts, people who type, faults, then peace. The judge looks after every step; in the
 * end, within a bounded time, everybody must have everything, know it to be saved, and be told who is there.
 */

import { Cluster } from "./cluster.ts";
import { drawFaults, type Fault, describeFault, strike } from "./faults.ts";
import type { Failure } from "./judge.ts";
import type { PlantedBug } from "./planted-bugs.ts";
import { START_MS } from "./scheduler.ts";
import { type Telemetry, World } from "./world.ts";

export type SimulationOptions = {
  readonly telemetry: Telemetry;
  readonly planted?: PlantedBug | undefined;
  /** Instead of those drawn from the seed. */
  readonly faults?: readonly Fault[] | undefined;
  readonly verbose?: boolean;
};

export type Outcome = {
  readonly seed: number;
  readonly failure: Failure | undefined;
  readonly hash: string;
  readonly steps: number;
  readonly edits: number;
  readonly faults: readonly Fault[];
  /** From the last fault's end until everybody had everything. */
  readonly healedInMs: number;
  /** What happened, the last of it at least, in the room that failed or else in all. */
  readonly lines: readonly string[];
};

const FAULTY_MS = 16_000;
const KEYSTROKES_PER_TAB = 40;
const BURST = 8;
const BURST_MS = 300;
/** Longer than any back-off, deadline and jitter in the system one after the other. */
const HEALING_MS_MAX = 40_000;
/** Who is told of whom is compared every so often only: it is no small thing. */
const LOOK_MS = 100;
/** Late repeats and resubmissions come within it. */
const QUIET_MS = 15_000;
const QUIET_CHANCE = 0.2;

export async function simulate(seed: number, options: SimulationOptions): Promise<Outcome> {
  const world = new World(seed, { telemetry: options.telemetry, planted: options.planted, verbose: options.verbose ?? false });
  const faults = options.faults ?? drawFaults(world.chance("faults"), FAULTY_MS);
  const { scheduler, judge, trace } = world;
  const receiveError = (error: unknown): void => judge.fail(`a part threw: ${error instanceof Error ? error.stack : String(error)}`);
  process.on("uncaughtException", receiveError);
  process.on("unhandledRejection", receiveError);
  let healedInMs = 0;
  try {
    const cluster = new Cluster(world, world.chance("cluster"));
    for (const fault of faults) {
      scheduler.after(fault.atMs, () => {
        trace.note(`--- ${describeFault(fault)}`);
        strike(cluster, fault);
      });
    }
    letType(world, cluster);
    const checked = (): boolean => {
      for (const tab of cluster.tabs) judge.checkSaved(tab);
      return judge.failure !== undefined;
    };
    await scheduler.runUntil(START_MS + FAULTY_MS, checked);
    if (judge.failure === undefined) {
      trace.note("--- peace");
      cluster.heal();
      let lookAt = 0;
      const isSettled = (): boolean => {
        if (scheduler.now < lookAt || !cluster.tabs.every((tab) => tab.isSettled)) return false;
        lookAt = scheduler.now + LOOK_MS;
        return cluster.tabs.every((tab) => tab.wrongAbout(cluster.tabs) === undefined);
      };
      await scheduler.runUntil(START_MS + FAULTY_MS + HEALING_MS_MAX, () => checked() || isSettled());
      healedInMs = scheduler.now - START_MS - FAULTY_MS;
      if (world.chance("quiet").chance(QUIET_CHANCE)) await scheduler.runUntil(scheduler.now + QUIET_MS, checked);
      const wrong = cluster.tabs.map((tab) => tab.wrongAbout(cluster.tabs)).filter((what) => what !== undefined);
      if (!cluster.tabs.every((tab) => tab.isSettled)) judge.fail(`not everybody has everything and knows it saved:\n${cluster.tabs.map(({ state }) => `  ${state}`).join("\n")}`);
      else if (wrong.length > 0) judge.fail(`not everybody is told who is there and what they show:\n  ${wrong.join("\n  ")}`);
    }
  } catch (error) {
    receiveError(error);
  } finally {
    process.off("uncaughtException", receiveError);
    process.off("unhandledRejection", receiveError);
  }
  const edits = [...judge.rooms.values()].reduce((sum, { head }) => sum + head, 0);
  return { seed, failure: judge.failure, hash: trace.hash, steps: scheduler.steps, edits, faults, healedInMs, lines: trace.lines(judge.failure?.room) };
}

/** Each place at the table types so much, whoever sits there: evenly, or in bursts. */
function letType(world: World, cluster: Cluster): void {
  for (const place of cluster.tabs.keys()) {
    const prng = world.chance(`typing ${place}`);
    const burst = prng.chance(0.5) ? 1 : BURST;
    for (let count = 0; count < KEYSTROKES_PER_TAB; count += burst) {
      const at = prng.below(FAULTY_MS - BURST_MS);
      for (let one = 0; one < burst; one++) world.scheduler.after(at + prng.below(BURST_MS), () => cluster.tabs[place]!.type());
    }
  }
}
