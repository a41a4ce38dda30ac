/**
 * One run: a cluster of the real parts, people who type, faults, and then a time without faults. The judge checks after
 * each step. At the end, within a bounded time, each tab must have all edits, show them as saved, and know who is in
 * its room.
 */

import { Cluster } from "./cluster.ts";
import { describeFault, drawFaults, hasWebhooks, type Fault, type FaultKind, strike } from "./faults.ts";
import type { Met } from "./strike.ts";
import type { Failure } from "./judge.ts";
import { beginsWith } from "./lost-ends.ts";
import type { PlantedBug } from "./planted-bugs.ts";
import { START_MS } from "./scheduler.ts";
import { checkSlowLog } from "./slow-log-check.ts";
import { type SizeName, SIZES } from "./sizes.ts";
import type { Tab } from "./tab.ts";
import { checkPastesBesideUnfinished } from "./unfinished-stranger.ts";
import { type Telemetry, World } from "./world.ts";

export type SimulationOptions = {
  readonly size: SizeName;
  readonly telemetry: Telemetry;
  readonly planted?: PlantedBug | undefined;
  /** Replace the faults that are drawn from the seed. */
  readonly faults?: readonly Fault[] | undefined;
  readonly verbose?: boolean;
  readonly pulse?: Int32Array | undefined;
  readonly stepsMax?: number | undefined;
};

export type Outcome = {
  readonly seed: number;
  readonly size: SizeName;
  readonly failure: Failure | undefined;
  readonly hash: string;
  readonly steps: number;
  /** Count of edits in the logs. */
  readonly edits: number;
  /** Count of keystrokes that their tabs showed as saved. */
  readonly acked: number;
  readonly faults: readonly Fault[];
  /** The faults that began, and whether each one affected anything. */
  readonly struck: readonly { readonly kind: FaultKind; readonly met: boolean }[];
  /** Time from the end of the last fault until all checks passed. */
  readonly healedInMs: number;
  /** The last lines of the trace, of the room that failed or else of all rooms. */
  readonly lines: readonly string[];
};

const BURST = 8;
const BURST_MS = 300;
/**
 * Longer than the sum of all back-offs, deadlines and jitters of the system. The longest: a client gives up a tentative edit
 * of another one after four waits of up to 10 s, and an outage may come before them.
 */
const HEALING_MS_MAX = 60_000;
/** Time in which a banned tab tries to join again. */
const REJOIN_MS = 500;
/** Interval of the presence checks, which are expensive. */
const LOOK_MS = 100;
/** Chance of a long time without faults at the end, in which late repeats and resubmissions arrive. */
const QUIET_CHANCE = 0.2;

export async function simulate(seed: number, options: SimulationOptions): Promise<Outcome> {
  const size = SIZES[options.size];
  const { telemetry, planted, verbose = false, pulse, stepsMax } = options;
  const world = new World(seed, { size, telemetry, planted, verbose, pulse, stepsMax });
  const faults = options.faults ?? planted?.faults?.(size) ?? drawFaults(world.chance("faults"), size);
  const peaceAt = START_MS + size.faultyMs;
  const { scheduler, judge, trace } = world;
  const receiveError = (error: unknown): void => judge.fail(`a part threw: ${error instanceof Error ? error.stack : String(error)}`);
  process.on("uncaughtException", receiveError);
  process.on("unhandledRejection", receiveError);
  let healedInMs = 0;
  if (hasWebhooks(faults)) world.addWebhooks();
  if (faults.some(({ kind }) => kind === "user kicked")) world.kickedUsers = new Set();
  const amongUnfinished = faults.some(({ kind }) => kind === "frames left unfinished");
  if (amongUnfinished || faults.some(({ kind }) => kind === "large text pasted")) world.allowPastes({ amongUnfinished });
  if (faults.some(({ kind }) => kind === "history read over HTTP" || kind === "earlier state restored")) world.keepHistoryBriefly();
  if (faults.some(({ kind }) => kind === "user's rights changed" || kind === "token service away")) world.limitTokens();
  const strikes: { readonly kind: FaultKind; readonly met: Met }[] = [];
  const cluster = new Cluster(world, world.chance("cluster"), {
    devicesKeep: faults.some(({ kind }) => kind === "tab loaded again"),
    sharesConnections: faults.some(({ kind }) => kind === "second room opened"),
    hasBans: faults.some(({ kind }) => kind === "user banned"),
  });
  const unsettledServices = (): string | undefined =>
    world.serviceJudge?.unsettled((room) => cluster.tabs.some((tab) => tab.room === room && !tab.isBanned));
  const failUnlessSettled = (): void => {
    const wrong = cluster.tabs.map((tab) => tab.wrongAbout(cluster.tabs)).filter((what) => what !== undefined);
    if (!cluster.tabs.every((tab) => tab.isAtHead && hasAllEdits(world, tab)))
      judge.fail(`not everybody has everything and knows it saved:\n${cluster.tabs.map(({ state }) => `  ${state}`).join("\n")}`);
    else if (world.bans?.unsettled() !== undefined) judge.fail(world.bans.unsettled()!);
    else if (!judge.isEveryFirstEditAnswered) judge.fail("not everybody who made the document of content is answered");
    else if (world.application?.isEveryPostAnswered === false) judge.fail("not every backend is answered");
    else if (world.keyedWrites.unsettled() !== undefined) judge.fail(world.keyedWrites.unsettled()!);
    else if (world.historyClients.unsettled() !== undefined) judge.fail(world.historyClients.unsettled()!);
    else if (unsettledServices() !== undefined) judge.fail(`not settled: ${unsettledServices()}`);
    else if (world.webhooks?.unsettled() !== undefined) judge.fail(`not settled: ${world.webhooks.unsettled()}`);
    else if (wrong.length > 0) judge.fail(`not every tab has the right participants and fields:\n  ${wrong.join("\n  ")}`);
  };
  try {
    for (const fault of faults) {
      scheduler.after(fault.atMs, () => {
        trace.note(`--- ${describeFault(fault)}`);
        strikes.push({ kind: fault.kind, met: strike(cluster, fault) });
      });
    }
    letType(world, cluster);
    const checked = (): boolean => {
      for (const tab of cluster.tabs) if (!tab.isToldDeleted) judge.checkSaved(tab);
      if (world.application !== undefined) for (const tab of cluster.tabs) world.application.checkTab(tab);
      return judge.failure !== undefined;
    };
    await scheduler.runUntil(peaceAt, checked);
    if (judge.failure === undefined) {
      trace.note("--- peace");
      cluster.heal();
      for (const tab of cluster.tabs) if (world.bans?.wasBanned(tab.user) === true) joinAgain(tab); // No gateway may know the ban any more.
      world.webhooks?.breakOne();
      world.keyedWrites.repeatAll();
      world.historyClients.repeatAll();
      let lookAt = scheduler.now + LOOK_MS; // Effects of the last fault may still be under way.
      const isSettled = (): boolean => {
        if (scheduler.now < lookAt || !cluster.tabs.every((tab) => tab.isAtHead) || !judge.isEveryFirstEditAnswered) return false;
        if (!cluster.tabs.every((tab) => hasAllEdits(world, tab))) return false; // Compares all edits, so only once all tabs are at the head.
        if (world.application?.isEveryPostAnswered === false || world.bans?.unsettled() !== undefined) return false;
        if ((world.keyedWrites.unsettled() ?? world.historyClients.unsettled()) !== undefined) return false;
        lookAt = scheduler.now + LOOK_MS;
        return cluster.tabs.every((tab) => tab.wrongAbout(cluster.tabs) === undefined);
      };
      let lookAtServicesAt = 0;
      const areServicesSettled = (): boolean => {
        if (world.serviceJudge === undefined) return true;
        if (scheduler.now < lookAtServicesAt) return false;
        lookAtServicesAt = scheduler.now + LOOK_MS;
        return (unsettledServices() ?? world.webhooks?.unsettled()) === undefined;
      };
      const settle = async (): Promise<void> => {
        await scheduler.runUntil(scheduler.now + HEALING_MS_MAX, () => checked() || (isSettled() && areServicesSettled()));
        if (judge.failure === undefined) failUnlessSettled();
      };
      await settle();
      healedInMs = scheduler.now - peaceAt;
      const banned = cluster.tabs.filter(({ isBanned }) => isBanned);
      for (const tab of banned) joinAgain(tab);
      if (banned.length > 0) await scheduler.runUntil(scheduler.now + REJOIN_MS, checked);
      if (world.webhooks !== undefined) {
        const behind = unsettledServices() ?? world.webhooks.unsettled();
        if (behind !== undefined) judge.fail(`not settled, with an endpoint that is broken: ${behind}`);
        world.webhooks.repairAll();
        await settle();
      }
      const deleted = cluster.tabs.find(({ isToldDeleted }) => isToldDeleted);
      if (deleted !== undefined) {
        cluster.replaceTab(deleted); // A new tab must learn of the deletion too, because the name is never reused.
        await settle();
      }
      if (world.serviceJudge !== undefined && deleted === undefined) {
        for (const tab of firstOfEachRoom(cluster)) cluster.replaceTab(tab); // A new tab begins from a snapshot and the log after it.
        await settle();
      }
      if (world.chance("quiet").chance(QUIET_CHANCE)) {
        await scheduler.runUntil(scheduler.now + size.quietMs, checked);
        await settle();
      }
      if (amongUnfinished) await checkPastesBesideUnfinished(cluster, settle);
      await checkSlowLog(cluster, settle);
      if (judge.failure === undefined) failUnlessSettled();
    }
  } catch (error) {
    receiveError(error);
  } finally {
    process.off("uncaughtException", receiveError);
    process.off("unhandledRejection", receiveError);
  }
  const acked = cluster.everyTab
    .filter(({ isToldDeleted }) => !isToldDeleted)
    .reduce((sum, { typed, unsaved }) => sum + Math.max(0, typed - unsaved), 0);
  const edits = [...judge.rooms.values()].reduce((sum, { head }) => sum + head, 0);
  return {
    seed,
    size: size.name,
    failure: judge.failure,
    hash: trace.hash,
    steps: scheduler.steps,
    edits,
    acked,
    faults,
    struck: strikes.map(({ kind, met }) => ({ kind, met: met() })),
    healedInMs,
    lines: trace.lines(judge.failure?.room),
  };
}

/** Each place in the list of tabs types a fixed count of keystrokes, evenly or in bursts, even if another tab takes the place. */
function letType(world: World, cluster: Cluster): void {
  const { faultyMs, keystrokesPerTab } = world.size;
  for (const place of cluster.tabs.keys()) {
    const prng = world.chance(`typing ${place}`);
    const burst = prng.chance(0.5) ? 1 : BURST;
    for (let count = 0; count < keystrokesPerTab; count += burst) {
      const at = prng.below(faultyMs - BURST_MS);
      for (let one = 0; one < burst; one++) world.scheduler.after(at + prng.below(BURST_MS), () => cluster.tabs[place]!.type());
    }
  }
}

function firstOfEachRoom({ tabs }: Cluster): Tab[] {
  return [...new Map(tabs.map((tab) => [tab.room, tab])).values()];
}

/** The tab does not wait for the end of its ban. */
function joinAgain(tab: Tab): void {
  tab.leave();
  tab.comeBack();
}

/** Whether a tab at the head of its log has exactly the log's edits. */
function hasAllEdits({ judge }: World, { room, isBanned, content }: Tab): boolean {
  return isBanned || judge.room(room).isDeleted || beginsWith(judge.room(room).order, content);
}
