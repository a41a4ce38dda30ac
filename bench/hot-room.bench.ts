/**
 * The effect of one busy room on ordinary rooms of the same servers, at several multiples of its fair share. A room's
 * fair share is the capacity of the machine divided by the number of rooms. The legs of a round take turns: the ordinary
 * rooms alone, beside the busy room, and beside the same busy room in another Coroom on the same machine. The last leg
 * shows how much of the effect comes from the machine, which also runs the load. Each leg is compared with the leg
 * alone of the same round.
 */

import { list, oneOf, positiveInteger } from "../shared/settings/settings.ts";
import { defineExperiment, positiveIntegers, type Print } from "./experiment.ts";
import type { PresenceLoad, PresenceMotion } from "./load/presence-load.ts";
import { Worker } from "./load/worker.ts";
import {
  type BothCorooms,
  cpuCell,
  cpuFigures,
  ORDINARY_MEMBERS,
  ordinaryFigures,
  OrdinaryRooms,
  placesOf,
  ratioCell,
  startBoth,
  stopBoth,
  withRatios,
} from "./ordinary-rooms.ts";
import { seatsOf } from "./presence-large-room.bench.ts";
import { type Figures, medianFigures } from "./report.ts";
import { cpuBetween, cpuByRole } from "./server-usage.ts";

export const HOT_KINDS = ["edits", "bytes", "presence"] as const;
type HotKind = (typeof HOT_KINDS)[number];
type HotRoomOptions = {
  readonly rooms: number;
  readonly seconds: number;
  readonly rounds: number;
  readonly levels: readonly number[];
  readonly kinds: readonly HotKind[];
};
/** Figures by leg, medians of the rounds. */
type HotRoomFigures = Readonly<Record<string, Figures>>;

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

/** What the busy room does at that multiple of its share. */
function motionAt(kind: HotKind, level: number, rooms: number): Omit<PresenceMotion, "ms"> {
  const members = HOT_MEMBERS[kind];
  const perSecond = (level * CAPACITY_PER_SECOND[kind]) / rooms / members;
  const none = { movers: 0, movesPerSecond: 0, editors: 0, editsPerSecond: 0, unackedMax: HOT_UNACKED_MAX };
  if (kind === "presence") return { ...none, movers: members, movesPerSecond: perSecond };
  if (kind === "edits") return { ...none, editors: members, editsPerSecond: perSecond };
  return { ...none, editors: members, editsPerSecond: perSecond / BYTES_LETTERS, editLetters: BYTES_LETTERS };
}

export async function measureHotRoom(systems: BothCorooms, options: HotRoomOptions, print: Print): Promise<HotRoomFigures> {
  const ordinary = new OrdinaryRooms();
  const hot = new Worker<PresenceLoad>("presence-load");
  const ms = options.seconds * 1_000;
  try {
    await ordinary.open(systems.same, options.rooms, "ordinary");
    await ordinary.move(ms); // Warm-up: a new process runs slowly.
    const rounds: Record<string, Figures>[] = [];
    for (let round = 0; round < options.rounds; round++) {
      const legs: Record<string, Figures> = {};
      legs[ALONE] = await leg(systems, ordinary, undefined, ms);
      print(lineOf(ALONE, legs[ALONE]));
      for (const kind of options.kinds) {
        for (const level of options.levels) {
          for (const place of placesOf(round)) {
            const name = `${kind} ${level}x ${place}`;
            await hot.call("open", await seatsOf(systems[place], HOT_MEMBERS[kind], `hot-${kind}-${level}-${round}`));
            const motion = { ...motionAt(kind, level, options.rooms), ms };
            legs[name] = withRatios(await leg(systems, ordinary, { load: hot, motion }, ms), legs[ALONE], NEIGHBOURS);
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
  }
}

type HotLoad = { readonly load: Worker<PresenceLoad>; readonly motion: PresenceMotion };

async function leg({ same }: BothCorooms, ordinary: OrdinaryRooms, hot: HotLoad | undefined, ms: number): Promise<Figures> {
  await new Promise((resolve) => setTimeout(resolve, SETTLE_MS));
  const before = cpuByRole(same.processes);
  const [neighbours, itself] = await Promise.all([ordinary.move(ms), hot?.load.call("move", hot.motion)]);
  const cpu = cpuBetween(before, cpuByRole(same.processes));
  return {
    ...ordinaryFigures(neighbours),
    ...(itself === undefined ? {} : { "hot room's edits/s": (itself.editsSent * 1000) / ms }),
    ...cpuFigures(cpu, neighbours.cpuSeconds + (itself?.cpuSeconds ?? 0), ms),
  };
}

const NEIGHBOURS = ["edits p50, ms", "edits p99, ms", "presence p50, ms", "presence p99, ms"] as const;

const HEAD = `| leg | ${NEIGHBOURS.join(" | ")} | hot room's edits/s | CPU of servers by role, loads |\n|---|---|---|---|---|---|---|`;

/** Each latency with its ratio to the leg alone, and the CPU. */
function lineOf(name: string, figures: Figures): string {
  const cells = NEIGHBOURS.map((figure) => ratioCell(figures, figure));
  return `| ${[name, ...cells, (figures["hot room's edits/s"] ?? 0).toFixed(0), cpuCell(figures)].join(" | ")} |`;
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
    const systems = await startBoth({});
    const figures = await measureHotRoom(systems, options, print).finally(() => stopBoth(systems));
    print(`\nmedians of ${options.rounds} rounds\n\n${HEAD}`);
    for (const [name, ofLeg] of Object.entries(figures)) print(lineOf(name, ofLeg));
  },
});
