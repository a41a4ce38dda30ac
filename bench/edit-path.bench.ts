/**
 * The scenarios of the edit path: the latency of an edit at typing speed, and the highest rate of edits with a p99
 * below 100 ms.
 *
 * Ack: from the author's send to its ack. Propagation: from the author's send to each other member's receipt. Both
 * include the load process's own work. Times run from the real send, so a late load process does not make the servers
 * look slower.
 */

import { createHash } from "node:crypto";

import type { ClientKey, RoomId } from "../shared/ids.ts";
import { cpuBetween, cpuByRole, type CpuByRole, cpuOfMachine } from "./server-usage.ts";
import { LoadProcesses, type PhaseResult } from "./load/load-processes.ts";
import type { WritePattern, RoomCounts, LoadRoomPlan } from "./load/plan.ts";
import type { MeasuredSystem } from "./systems/system.ts";

export type Scenario = {
  readonly name: string;
  readonly summary: string;
  readonly rooms: number;
  readonly writers: number;
  readonly readers: number;
  /** Typing: one phase. Search: one phase for each step of each ladder, until the rate no longer grows. */
  readonly load:
    | { readonly kind: "typing"; readonly editsPerSecond: number }
    | { readonly kind: "search"; readonly ladders: readonly (readonly SearchStep[])[] };
};

/** Edits per second of each writer, or un-acked edits of each writer. */
type SearchStep = { readonly editsPerSecond: number } | { readonly inFlight: number; readonly editsEach?: number };

type EditPathLegOptions = {
  readonly round: number;
  readonly seed: number;
  readonly warmMs: number;
  readonly measureMs: number;
  readonly loadProcesses: number;
};

/** One run of one system under one scenario. */
export type EditPathLeg = {
  readonly system: string;
  readonly phases: readonly MeasuredPhase[];
  readonly rooms: readonly RoomCounts[];
  readonly hash: string;
};
export type MeasuredPhase = PhaseResult & {
  readonly pattern: WritePattern;
  readonly seconds: number;
  readonly serverCpu: CpuByRole;
  readonly machineCpuSeconds: number;
};

const P99_MS_MAX = 100;
/** A writer with this many un-acked edits waits, as the SDK does. Servers reject more. */
const IN_FLIGHT_MAX = 100;

export const SCENARIOS: readonly Scenario[] = [
  {
    name: "typing",
    summary: "50 rooms of 4 writers, 1.5 edits/s each",
    rooms: 50,
    writers: 4,
    readers: 0,
    load: { kind: "typing", editsPerSecond: 1.5 },
  },
  {
    name: "one-room",
    summary: "one room, 2 writers and 5 readers, the highest rate with p99 < 100 ms",
    rooms: 1,
    writers: 2,
    readers: 5,
    load: { kind: "search", ladders: [windows(8, 16, 32, 64, 128, 192, 256, 320, 384, 448)] },
  },
  {
    name: "hundred-rooms",
    summary: "100 rooms of 2 writers and 5 readers, the highest rate with p99 < 100 ms",
    rooms: 100,
    writers: 2,
    readers: 5,
    load: { kind: "search", ladders: [rates(10, 20, 30, 40, 60), windows(1, 2, 3, 4, 6, 8, 16, 32)] },
  },
];

/**
 * The warm-up is not measured. At typing speed a process needs minutes until it runs optimised code, and five times the
 * rate is faster. The second warm-up closes the rooms of the first, because closing a first room causes new
 * optimisation.
 */
export const WARM_UPS = 2;
export const WARM_UP: Scenario = {
  name: "warm-up",
  summary: "typing, five times as fast",
  rooms: 50,
  writers: 4,
  readers: 0,
  load: { kind: "typing", editsPerSecond: 7.5 },
};

/** The same scenario, so small that only the counts are meaningful. */
export function small(scenario: Scenario): Scenario {
  const rooms = Math.min(scenario.rooms, 3);
  const load: Scenario["load"] =
    scenario.load.kind === "typing"
      ? { kind: "typing", editsPerSecond: 5 }
      : {
          kind: "search",
          ladders: [
            [
              { inFlight: 4, editsEach: 200 },
              { inFlight: 16, editsEach: 200 },
            ],
          ],
        };
  return { ...scenario, rooms, load };
}

/** Throws when an edit is missing, repeated, or different for two members. */
export async function runLeg(system: MeasuredSystem, scenario: Scenario, options: EditPathLegOptions): Promise<EditPathLeg> {
  const loads = await LoadProcesses.open(await planRooms(system, scenario, options.round), options.loadProcesses);
  try {
    const phases = await runPhases(system, loads, scenario, options);
    const rooms = await loads.close();
    for (const room of rooms) checkCounts(room, scenario);
    return { system: system.name, phases, rooms, hash: hashOf(rooms) };
  } finally {
    await loads.end();
  }
}

/** The phase with the highest rate within the latency limit. */
export function bestOf(phases: readonly MeasuredPhase[]): MeasuredPhase | undefined {
  return phases.filter((phase) => slowestP99(phase) < P99_MS_MAX).sort((a, b) => rateOf(b) - rateOf(a))[0];
}

/** Edits per second that reached every member of their room. */
export function rateOf({ everywhere, seconds }: MeasuredPhase): number {
  return everywhere / seconds;
}

export function slowestP99({ acked, seen }: PhaseResult): number {
  return Math.max(acked.percentile(99), seen.percentile(99));
}

async function runPhases(
  system: MeasuredSystem,
  loads: LoadProcesses,
  { load }: Scenario,
  options: EditPathLegOptions,
): Promise<MeasuredPhase[]> {
  const seed = options.seed + options.round;
  if (load.kind === "typing")
    return [await runPhase(system, loads, { kind: "typing", editsPerSecond: load.editsPerSecond, seed }, options)];
  const phases: MeasuredPhase[] = [];
  for (const ladder of load.ladders) {
    const climbed: MeasuredPhase[] = [];
    for (const step of ladder) {
      climbed.push(
        await runPhase(
          system,
          loads,
          "inFlight" in step ? { kind: "window", ...step } : { kind: "typing", ...step, seed, inFlightMax: IN_FLIGHT_MAX },
          options,
        ),
      );
      if (hasStoppedGrowing(climbed)) break;
    }
    phases.push(...climbed);
  }
  return phases;
}

async function runPhase(
  system: MeasuredSystem,
  loads: LoadProcesses,
  pattern: WritePattern,
  { warmMs, measureMs }: EditPathLegOptions,
): Promise<MeasuredPhase> {
  const readCpu = () => ({ servers: cpuByRole(system.processes), machine: cpuOfMachine() });
  let before = readCpu();
  let after = before;
  const result = await loads.run(
    { pattern, warmMs, measureMs },
    { measuring: () => void (before = readCpu()), measured: () => void (after = readCpu()) },
  );
  const cpu = { serverCpu: cpuBetween(before.servers, after.servers), machineCpuSeconds: after.machine - before.machine };
  return { ...result, ...cpu, pattern, seconds: measureMs / 1000 };
}

function rates(...editsPerSecond: number[]): SearchStep[] {
  return editsPerSecond.map((rate) => ({ editsPerSecond: rate }));
}

function windows(...inFlight: number[]): SearchStep[] {
  return inFlight.map((edits) => ({ inFlight: edits }));
}

const GROWTH_MIN = 1.02;
/** One slow phase may come from other work on the machine. Two slow phases in a row come from the system. */
const PHASES_TO_BE_SURE = 2;

function hasStoppedGrowing(phases: readonly MeasuredPhase[]): boolean {
  const latest = phases.slice(-PHASES_TO_BE_SURE);
  if (latest.length < PHASES_TO_BE_SURE) return false;
  if (latest.every((phase) => slowestP99(phase) > P99_MS_MAX)) return true;
  const earlier = phases.slice(0, -PHASES_TO_BE_SURE).map(rateOf);
  return earlier.length > 0 && Math.max(...latest.map(rateOf)) < Math.max(...earlier) * GROWTH_MIN;
}

/** Members of a room alternate between the gateways, writers first. */
async function planRooms(system: MeasuredSystem, scenario: Scenario, round: number): Promise<LoadRoomPlan[]> {
  return Promise.all(
    Array.from({ length: scenario.rooms }, async (_, index) => {
      const room = `${scenario.name}-${round}-${String(index).padStart(3, "0")}` as RoomId;
      const members = Array.from({ length: scenario.writers + scenario.readers }, async (_, member) => ({
        gateway: system.gateways[member % system.gateways.length]!,
        token: await system.token(`user-${index}-${member}`),
        clientKey: `member-${member}` as ClientKey,
        writes: member < scenario.writers,
      }));
      return { room, members: await Promise.all(members) };
    }),
  );
}

function checkCounts({ room, head, distinctEdits, sentByWriter, members }: RoomCounts, scenario: Scenario): void {
  const sent = sentByWriter.reduce((sum, edits) => sum + edits, 0);
  if (head !== sent || distinctEdits !== sent)
    throw new Error(`${room}: ${sent} edits sent, ${head} seqs, ${distinctEdits} distinct edits`);
  if (members !== scenario.writers + scenario.readers) throw new Error(`${room}: ${members} members`);
}

/**
 * Equal for two runs that sent the same edits through any system: for typing with the same seed, and always with
 * `--small`.
 */
function hashOf(rooms: readonly RoomCounts[]): string {
  const counts = rooms.map(({ head, distinctEdits, sentByWriter, members }) => [head, distinctEdits, sentByWriter, members]);
  return createHash("sha256").update(JSON.stringify(counts)).digest("hex").slice(0, 12);
}
