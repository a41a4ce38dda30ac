/**
 * The effect of one busy room on ordinary rooms of the same servers, at several multiples of its fair share. A room's
 * fair share is the capacity of the machine divided by the number of rooms. The legs of a round take turns: the ordinary
 * rooms alone, beside the busy room, and beside the same busy room in another Coroom on the same machine. The last leg
 * shows how much of the effect comes from the machine, which also runs the load. Each leg is compared with the leg
 * alone of the same round.
 */

import { list, oneOf, positiveInteger } from "../shared/settings/settings.ts";
import { Latencies } from "../cli/bench/latencies.ts";
import { defineExperiment, positiveIntegers, type Print } from "./experiment.ts";
import type { Seat } from "./load/enter.ts";
import type { PresenceFigures, PresenceLoad, PresenceMotion } from "./load/presence-load.ts";
import { Worker } from "./load/worker.ts";
import { seatsOf } from "./presence-large-room.bench.ts";
import { type Figures, medianFigures } from "./report.ts";
import { cpuBetween, type CpuByRole, cpuByRole } from "./server-usage.ts";
import { startCoroom } from "./systems/coroom.ts";
import type { MeasuredSystem } from "./systems/system.ts";

export const HOT_KINDS = ["edits", "bytes", "presence"] as const;
type HotKind = (typeof HOT_KINDS)[number];
type HotRoomOptions = {
  readonly rooms: number;
  readonly seconds: number;
  readonly rounds: number;
  readonly levels: readonly number[];
  readonly kinds: readonly HotKind[];
};
type Place = "same" | "other";
/** Figures by leg, medians of the rounds. */
type HotRoomFigures = Readonly<Record<string, Figures>>;

const ORDINARY_MEMBERS = 3;
const ORDINARY: Omit<PresenceMotion, "ms"> = { movers: 2, movesPerSecond: 5, editors: 2, editsPerSecond: 1 };
const ALONE = "alone";
/**
 * Edits, bytes and presence states per second at which two cores, which run all servers and the load, are used up or
 * nearly so.
 */
const CAPACITY_PER_SECOND: Readonly<Record<HotKind, number>> = { edits: 2_000, bytes: 4 * 1024 ** 2, presence: 10_000 };
/** Members of the busy room. All of them act. */
const HOT_MEMBERS: Readonly<Record<HotKind, number>> = { edits: 20, bytes: 5, presence: 100 };
const BYTES_LETTERS = 8 * 1024;
/** The room's limit of edits that wait for the log is never reached, so that none is refused. */
const HOT_UNACKED_MAX = 40;
const SETTLE_MS = 500;
const NO_LIMIT = String(1e9);

/** What the busy room does at that multiple of its share. */
function motionAt(kind: HotKind, level: number, rooms: number): Omit<PresenceMotion, "ms"> {
  const members = HOT_MEMBERS[kind];
  const perSecond = (level * CAPACITY_PER_SECOND[kind]) / rooms / members;
  const none = { movers: 0, movesPerSecond: 0, editors: 0, editsPerSecond: 0, unackedMax: HOT_UNACKED_MAX };
  if (kind === "presence") return { ...none, movers: members, movesPerSecond: perSecond };
  if (kind === "edits") return { ...none, editors: members, editsPerSecond: perSecond };
  return { ...none, editors: members, editsPerSecond: perSecond / BYTES_LETTERS, editLetters: BYTES_LETTERS };
}

export async function measureHotRoom(options: HotRoomOptions, print: Print, small = false): Promise<HotRoomFigures> {
  // A late load process catches up at once, and a gateway would limit that rate.
  const settings = { PRESENCE_BURST: NO_LIMIT, PRESENCE_PER_SECOND_MAX: NO_LIMIT };
  const systems: Record<Place, MeasuredSystem> = {
    same: await startCoroom({ small, settings }),
    other: await startCoroom({ small, settings }),
  };
  const ordinary = new Worker<PresenceLoad>("presence-load");
  const hot = new Worker<PresenceLoad>("presence-load");
  const ms = options.seconds * 1_000;
  try {
    await ordinary.call("open", await ordinarySeats(systems.same, options.rooms));
    await ordinary.call("move", { ...ORDINARY, ms }); // Warm-up: a new process runs slowly.
    const rounds: Record<string, Figures>[] = [];
    for (let round = 0; round < options.rounds; round++) {
      const legs: Record<string, Figures> = {};
      legs[ALONE] = await leg(systems, ordinary, undefined, ms);
      print(lineOf(ALONE, legs[ALONE]));
      for (const kind of options.kinds) {
        for (const level of options.levels) {
          for (const place of round % 2 === 0 ? (["same", "other"] as const) : (["other", "same"] as const)) {
            const name = `${kind} ${level}x ${place}`;
            await hot.call("open", await seatsOf(systems[place], HOT_MEMBERS[kind], `hot-${kind}-${level}-${round}`));
            const motion = { ...motionAt(kind, level, options.rooms), ms };
            legs[name] = withRatios(await leg(systems, ordinary, { load: hot, motion }, ms), legs[ALONE]);
            print(lineOf(name, legs[name]));
            await hot.call("close", undefined as never);
          }
        }
      }
      rounds.push(legs);
    }
    return medianFigures(rounds);
  } finally {
    await Promise.all([ordinary.end(), hot.end()]);
    await Promise.all(Object.values(systems).map((system) => system.stop()));
  }
}

type HotLoad = { readonly load: Worker<PresenceLoad>; readonly motion: PresenceMotion };

async function leg(
  { same }: Readonly<Record<Place, MeasuredSystem>>,
  ordinary: Worker<PresenceLoad>,
  hot: HotLoad | undefined,
  ms: number,
): Promise<Figures> {
  await new Promise((resolve) => setTimeout(resolve, SETTLE_MS));
  const before = cpuByRole(same.processes);
  const [neighbours, itself] = await Promise.all([ordinary.call("move", { ...ORDINARY, ms }), hot?.load.call("move", hot.motion)]);
  return figuresOf(neighbours, itself, cpuBetween(before, cpuByRole(same.processes)), ms);
}

const NEIGHBOURS = ["edits p50, ms", "edits p99, ms", "presence p50, ms", "presence p99, ms"] as const;

function figuresOf(neighbours: PresenceFigures, itself: PresenceFigures | undefined, cpu: CpuByRole, ms: number): Figures {
  const [edits, presence] = [Latencies.fromPairs(neighbours.edits), Latencies.fromPairs(neighbours.presence)];
  const cores = Object.entries(cpu).map(([role, seconds]) => [`CPU of ${role}, cores`, (seconds * 1000) / ms] as const);
  return {
    "edits p50, ms": edits.percentile(50),
    "edits p99, ms": edits.percentile(99),
    "presence p50, ms": presence.percentile(50),
    "presence p99, ms": presence.percentile(99),
    ...(itself === undefined ? {} : { "hot room's edits/s": (itself.editsSent * 1000) / ms }),
    ...Object.fromEntries(cores),
    "loads' CPU, cores": ((neighbours.cpuSeconds + (itself?.cpuSeconds ?? 0)) * 1000) / ms,
  };
}

function withRatios(figures: Figures, alone: Figures): Figures {
  return { ...Object.fromEntries(NEIGHBOURS.map((name) => [ratioOf(name), figures[name]! / alone[name]!])), ...figures };
}

function ratioOf(name: string): string {
  return `${name.replace(", ms", "")} to alone`;
}

async function ordinarySeats(system: MeasuredSystem, rooms: number): Promise<Seat[]> {
  const seats: Seat[] = [];
  for (let room = 0; room < rooms; room++) seats.push(...(await seatsOf(system, ORDINARY_MEMBERS, `ordinary-${room}`)));
  return seats;
}

const COLUMNS = NEIGHBOURS.map((name) => [name, ratioOf(name)] as const);

const HEAD = `| leg | ${NEIGHBOURS.join(" | ")} | hot room's edits/s | CPU of servers by role, loads |\n|---|---|---|---|---|---|---|`;

/** Each latency with its ratio to the leg alone, and the CPU. */
function lineOf(name: string, figures: Figures): string {
  const cells = COLUMNS.map(
    ([figure, ratio]) => `${figures[figure]!.toFixed(1)}${ratio in figures ? ` (${figures[ratio]!.toFixed(2)})` : ""}`,
  );
  const cpu = Object.entries(figures)
    .filter(([figure]) => figure.includes("CPU"))
    .map(([figure, cores]) => `${figure.replace("CPU of ", "").replace(" CPU", "").replace(", cores", "")} ${cores.toFixed(2)}`);
  return `| ${[name, ...cells, (figures["hot room's edits/s"] ?? 0).toFixed(0), cpu.join(", ")].join(" | ")} |`;
}

export const hotRoom = defineExperiment({
  name: "hot-room",
  summary: "ordinary rooms alone and beside one room at multiples of its fair share, in edits, bytes and presence; ten minutes",
  settings: {
    rooms: { parse: positiveInteger, fallback: 50, meaning: `ordinary rooms of ${ORDINARY_MEMBERS}` },
    seconds: { parse: positiveInteger, fallback: 4, meaning: "seconds of each leg" },
    rounds: { parse: positiveInteger, fallback: 5, meaning: "rounds, each with all legs" },
    levels: { parse: positiveIntegers, fallback: [1, 3, 10, 50], meaning: "multiples of the busy room's fair share" },
    kinds: {
      parse: (raw) => list(raw).map(oneOf(...HOT_KINDS)),
      fallback: HOT_KINDS,
      meaning: `what the busy room does: any of ${HOT_KINDS.join(", ")}`,
    },
  },
  run: async (options, print) => {
    print(HEAD);
    const figures = await measureHotRoom(options, print);
    print(`\nmedians of ${options.rounds} rounds\n\n${HEAD}`);
    for (const [name, ofLeg] of Object.entries(figures)) print(lineOf(name, ofLeg));
  },
});
