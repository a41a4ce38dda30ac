/**
 * The ordinary rooms whose latencies `hot-room` and `hostile-rooms` compare: alone, beside a load in the same Coroom,
 * and beside the same load in another Coroom on the machine. The other Coroom is the control: no process of the ordinary
 * rooms works for that load, so what it shows comes from the machine, which also runs the loads.
 */

import { Latencies } from "../cli/bench/latencies.ts";
import type { Seat } from "./load/enter.ts";
import type { PresenceFigures, PresenceLoad, PresenceMotion } from "./load/presence-load.ts";
import { Worker } from "./load/worker.ts";
import { seatsOf } from "./presence-large-room.bench.ts";
import type { Figures } from "./report.ts";
import type { CpuByRole } from "./server-usage.ts";
import { type Coroom, startCoroom } from "./systems/coroom.ts";
import type { MeasuredSystem } from "./systems/system.ts";

type LoadPlace = "same" | "other";
export type BothCorooms = Readonly<Record<LoadPlace, Coroom>>;

export const ORDINARY_MEMBERS = 3;
const MOTION: Omit<PresenceMotion, "ms"> = { movers: 2, movesPerSecond: 5, editors: 2, editsPerSecond: 1 };
const NO_LIMIT = String(1e9);
/** A late load process catches up at once, and a gateway would limit that rate. */
const PRESENCE_LIFTED = { PRESENCE_BURST: NO_LIMIT, PRESENCE_PER_SECOND_MAX: NO_LIMIT };

export async function startBoth(options: { readonly small?: boolean; readonly hasDefaultLimits?: boolean }): Promise<BothCorooms> {
  const [same, other] = [
    await startCoroom({ ...options, settings: PRESENCE_LIFTED }),
    await startCoroom({ ...options, settings: PRESENCE_LIFTED }),
  ];
  return { same, other };
}

export async function stopBoth(systems: BothCorooms): Promise<void> {
  await Promise.all(Object.values(systems).map((system) => system.stop()));
}

/** The places in the order of that round, so that neither is always first. */
export function placesOf(round: number): readonly LoadPlace[] {
  return round % 2 === 0 ? ["same", "other"] : ["other", "same"];
}

/** Rooms whose members stay until `end`. */
export class OrdinaryRooms {
  readonly #load = new Worker<PresenceLoad>("presence-load");

  /** `name`: of the rooms. */
  async open(system: MeasuredSystem, rooms: number, name: string): Promise<void> {
    const seats: Seat[] = [];
    for (let room = 0; room < rooms; room++) seats.push(...(await seatsOf(system, ORDINARY_MEMBERS, `${name}-${room}`)));
    await this.#load.call("open", seats);
  }

  /** Throws if a member lacks an edit a minute later. */
  move(ms: number): Promise<PresenceFigures> {
    return this.#load.call("move", { ...MOTION, ms });
  }

  end(): Promise<void> {
    return this.#load.end();
  }
}

export function ordinaryFigures({ edits, presence }: PresenceFigures): Figures {
  const [ofEdits, ofPresence] = [Latencies.fromPairs(edits), Latencies.fromPairs(presence)];
  return {
    "edits p50, ms": ofEdits.percentile(50),
    "edits p99, ms": ofEdits.percentile(99),
    "presence p50, ms": ofPresence.percentile(50),
    "presence p99, ms": ofPresence.percentile(99),
  };
}

export function cpuFigures(cpu: CpuByRole, loadSeconds: number, ms: number): Figures {
  const cores = Object.entries(cpu).map(([role, seconds]) => [`CPU of ${role}, cores`, (seconds * 1000) / ms] as const);
  return { ...Object.fromEntries(cores), "loads' CPU, cores": (loadSeconds * 1000) / ms };
}

/** Adds the ratios of these figures to those of the leg alone. */
export function withRatios(figures: Figures, alone: Figures, names: readonly string[]): Figures {
  return { ...Object.fromEntries(names.map((name) => [ratioOf(name), figures[name]! / alone[name]!])), ...figures };
}

/** The figure, and in brackets its ratio to the leg alone. */
export function ratioCell(figures: Figures, name: string): string {
  const ratio = figures[ratioOf(name)];
  return `${figures[name]!.toFixed(1)}${ratio === undefined ? "" : ` (${ratio.toFixed(2)})`}`;
}

export function cpuCell(figures: Figures): string {
  return Object.entries(figures)
    .filter(([figure]) => figure.includes("CPU"))
    .map(([figure, cores]) => `${figure.replace("CPU of ", "").replace(" CPU", "").replace(", cores", "")} ${cores.toFixed(2)}`)
    .join(", ");
}

function ratioOf(name: string): string {
  return `${name.replace(", ms", "")} to alone`;
}
