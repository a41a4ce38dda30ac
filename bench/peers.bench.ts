/**
 * Compares Coroom, as `npm start` runs it, with y-websocket's server, Hocuspocus and two relays, under the same
 * open-loop load. All processes of a server share one core, nats-server and redis-server included, and the load has
 * another. The servers are warmed up first and then take turns, so that all measure the same machine.
 */

import { list, oneOf, positiveInteger, flag, SettingError } from "../shared/settings/settings.ts";
import { Latencies } from "../cli/bench/latencies.ts";
import { defineExperiment, type Print } from "./experiment.ts";
import type { Seat } from "./load/enter.ts";
import type { PeersFigures, PeersLoad, PeersMotion } from "./load/peers-load.ts";
import { Worker } from "./load/worker.ts";
import { cpuByRole } from "./server-usage.ts";
import { bindToCore, startWhole, WHOLE_SYSTEM_NAMES, type WholeSystem, type WholeSystemName } from "./systems/whole.ts";

export type PeersScenario = {
  readonly name: string;
  readonly title: string;
  readonly rooms: number;
  readonly members: number;
  readonly writers: number;
  readonly cursorsPerSecond: number;
  /** Edits per second of each writer, or the rates of all writers together that are tried one after the other. */
  readonly load: { readonly kind: "steady"; readonly editsPerSecond: number } | { readonly kind: "search"; readonly from: number };
};

/** Figures of one leg. They are the rows of the table. */
type LegFigures = Readonly<Record<string, number>>;
type PeersTable = Readonly<Record<string, Readonly<Record<string, readonly number[]>>>>;

export const PEERS_SCENARIOS: readonly PeersScenario[] = [
  {
    name: "typing-and-cursors",
    title: "50 rooms of 4, each member with 1.5 edits/s and 20 cursors/s",
    rooms: 50,
    members: 4,
    writers: 4,
    cursorsPerSecond: 20,
    load: { kind: "steady", editsPerSecond: 1.5 },
  },
  {
    name: "typing-only",
    title: "50 rooms of 4, each member with 1.5 edits/s",
    rooms: 50,
    members: 4,
    writers: 4,
    cursorsPerSecond: 0,
    load: { kind: "steady", editsPerSecond: 1.5 },
  },
  {
    name: "one-busy-room",
    title: "one room, 2 writers and 5 readers",
    rooms: 1,
    members: 7,
    writers: 2,
    cursorsPerSecond: 0,
    load: { kind: "search", from: 1_000 },
  },
  {
    name: "hundred-busy-rooms",
    title: "100 rooms, 2 writers and 5 readers each",
    rooms: 100,
    members: 7,
    writers: 2,
    cursorsPerSecond: 0,
    load: { kind: "search", from: 500 },
  },
];

const P99_MS_MAX = 100;
const STEP = 1.5;
const FINE_STEPS = 2;
/** Fraction of the offered edits that a server must accept, so that the step counts. */
const TAKEN_MIN = 0.95;
const SEARCH_WARM_MS = 1_000;
const STEADY_WARM_MS = 3_000;
const RATE_MAX = 200_000;

const settings = {
  rounds: { parse: positiveInteger, fallback: 5, meaning: "rounds, in each of which every server takes its turn" },
  seconds: { parse: positiveInteger, fallback: 10, meaning: "seconds that a turn is measured; half of that for each rate that is tried" },
  warmUpSeconds: { parse: positiveInteger, fallback: 20, meaning: "seconds that each server is driven before the first round" },
  scenario: {
    parse: (raw: string) => list(raw).map(oneOf(...PEERS_SCENARIOS.map(({ name }) => name))),
    fallback: PEERS_SCENARIOS.map(({ name }) => name),
    meaning: `any of ${PEERS_SCENARIOS.map(({ name }) => name).join(", ")}`,
  },
  system: { parse: systemNames, fallback: WHOLE_SYSTEM_NAMES, meaning: `any of ${WHOLE_SYSTEM_NAMES.join(", ")}` },
  small: { parse: flag, fallback: false, meaning: "two rooms for half a second: only the counts are meaningful, the times are not" },
  seed: { parse: positiveInteger, fallback: 1, meaning: "seed of the schedule" },
} as const;

export const peers = defineExperiment({
  name: "peers",
  summary:
    "Coroom as `npm start` beside y-websocket, Hocuspocus and relays, one core each; also --peers. An hour, or ten minutes a scenario",
  settings,
  run: async (options, print) => {
    const chosen = PEERS_SCENARIOS.filter(({ name }) => options.scenario.includes(name));
    const names = WHOLE_SYSTEM_NAMES.filter((name) => options.system.includes(name));
    print(
      options.small
        ? "small: counts only"
        : `warm-up ${options.warmUpSeconds} s each, ${options.rounds} rounds, servers on core 0, load on core 1; median (lowest to highest)`,
    );
    const tables = await comparePeers(
      names,
      chosen.map((scenario) => (options.small ? smaller(scenario) : scenario)),
      options,
      print,
    );
    for (const [title, figures] of Object.entries(tables)) print(`\n${markdown(title, names, figures)}`);
  },
});

type PeersOptions = {
  readonly rounds: number;
  readonly seconds: number;
  readonly warmUpSeconds: number;
  readonly small: boolean;
  readonly seed: number;
};

/** Figures by scenario, figure and server, one for each round. Throws when a server loses, repeats or reorders an edit. */
export async function comparePeers(
  names: readonly WholeSystemName[],
  scenarios: readonly PeersScenario[],
  options: PeersOptions,
  print: Print,
): Promise<Readonly<Record<string, PeersTable>>> {
  const systems: WholeSystem[] = [];
  const load = new Worker<PeersLoad>("peers-load");
  try {
    bindToCore(load.pid, 1);
    for (const name of names) systems.push(await startWhole(name));
    if (!options.small) {
      const [warmUp] = PEERS_SCENARIOS as [PeersScenario];
      for (const system of systems) await runPeersLeg(system, load, warmUp, { ...options, seconds: options.warmUpSeconds }, 0);
    }
    const tables: Record<string, Record<string, Record<string, number[]>>> = {};
    for (const scenario of scenarios) {
      const table = (tables[scenario.title] = {} as Record<string, Record<string, number[]>>);
      for (let round = 1; round <= options.rounds; round++) {
        for (const system of inTurn(systems, round)) {
          const figures = await runPeersLeg(system, load, scenario, options, round);
          for (const [figure, value] of Object.entries(figures)) ((table[figure] ??= {})[system.name] ??= []).push(value);
          print(
            `  ${scenario.name} ${round} ${system.name.padEnd(18)} ${Object.entries(figures)
              .map(([name, value]) => `${name} ${shown(value)}`)
              .join("; ")}`,
          );
        }
      }
    }
    return tables;
  } finally {
    await load.end();
    await Promise.all(systems.map((system) => system.stop()));
  }
}

export function smaller(scenario: PeersScenario): PeersScenario {
  return { ...scenario, rooms: Math.min(scenario.rooms, 2) };
}

/** Each round begins with another server. */
function inTurn<One>(all: readonly One[], round: number): One[] {
  return all.map((_, index) => all[(index + round) % all.length]!);
}

async function runPeersLeg(
  system: WholeSystem,
  load: Worker<PeersLoad>,
  scenario: PeersScenario,
  options: PeersOptions,
  round: number,
): Promise<LegFigures> {
  await load.call("open", { name: system.dialect, seats: await seatsOf(system, scenario, round) });
  const { load: kind, cursorsPerSecond, writers } = scenario;
  const drive = async (ms: number, editsPerSecond: number): Promise<Driven> => {
    const before = cpuSeconds(system);
    const motion: PeersMotion = { ms, writers, editsPerSecond, cursorsPerSecond, seed: options.seed + round };
    const figures = await load.call("drive", motion);
    return { ...figures, serverCpuSeconds: cpuSeconds(system) - before };
  };
  const ms = options.small ? 500 : options.seconds * 1_000;
  try {
    if (kind.kind === "search") return await search(scenario, kind.from, ms / 2, options.small, drive);
    if (!options.small) await drive(STEADY_WARM_MS, kind.editsPerSecond);
    return steadyFigures(await drive(ms, kind.editsPerSecond), cursorsPerSecond > 0);
  } finally {
    await load.call("close", undefined as never);
  }
}

type Driven = PeersFigures & { readonly serverCpuSeconds: number };

function steadyFigures(driven: Driven, hasCursors: boolean): LegFigures {
  const [edits, cursors] = [Latencies.fromPairs(driven.edits), Latencies.fromPairs(driven.cursors)];
  return {
    "CPU s per 1,000 deliveries": (1_000 * driven.serverCpuSeconds) / (edits.total + cursors.total),
    "cores": driven.serverCpuSeconds / driven.seconds,
    "deliveries/s": (edits.total + cursors.total) / driven.seconds,
    "edit p50, ms": edits.percentile(50),
    "edit p99, ms": edits.percentile(99),
    ...(hasCursors ? { "cursor p50, ms": cursors.percentile(50), "cursor p99, ms": cursors.percentile(99) } : {}),
    "load's own cores": driven.loadCpuSeconds / driven.seconds,
  };
}

/** Increases the rate until two rates in a row are too high, and then tries rates between the last good and the first bad one. */
async function search(
  { rooms, writers }: PeersScenario,
  from: number,
  ms: number,
  small: boolean,
  drive: (ms: number, editsPerSecond: number) => Promise<Driven>,
): Promise<LegFigures> {
  let best = undefined as Driven | undefined;
  const passes = async (rate: number): Promise<boolean> => {
    if (!small) await drive(SEARCH_WARM_MS, rate / rooms / writers);
    const driven = await drive(ms, rate / rooms / writers);
    const isGood = driven.editsSent / driven.seconds >= rate * TAKEN_MIN && Latencies.fromPairs(driven.edits).percentile(99) < P99_MS_MAX;
    if (isGood || small) best = driven;
    return isGood;
  };
  let [good, tooMuch] = [0, 0];
  for (let rate = from; rate < RATE_MAX && tooMuch === 0; rate *= STEP) {
    if ((await passes(rate)) || (!small && (await passes(rate)))) good = rate;
    else tooMuch = rate;
    if (small) break;
  }
  for (let step = 0; step < FINE_STEPS && !small && tooMuch > 0; step++) {
    const between = (good + tooMuch) / 2;
    if (await passes(between)) good = between;
    else tooMuch = between;
  }
  if (best === undefined) return { "most edits/s with p99 < 100 ms": 0 };
  return {
    "most edits/s with p99 < 100 ms": best.editsSent / best.seconds,
    "cores at that rate": best.serverCpuSeconds / best.seconds,
    "load's own cores": best.loadCpuSeconds / best.seconds,
  };
}

function cpuSeconds({ processes }: WholeSystem): number {
  return Object.values(cpuByRole(processes)).reduce((sum, seconds) => sum + seconds, 0);
}

/** Each round uses different rooms. */
export async function seatsOf(
  { gateways: [gateway], token }: WholeSystem,
  { name, rooms, members }: PeersScenario,
  round: number,
): Promise<Seat[][]> {
  const tokens = await Promise.all(Array.from({ length: members }, (_, index) => token(`member-${index}`)));
  return Array.from({ length: rooms }, (_, room) =>
    tokens.map((own, index) => ({
      gateway: gateway!,
      room: `${name}-${round}-${room}`,
      token: own,
      clientKey: `member-${String(index).padStart(9, "0")}`,
    })),
  );
}

/** Median of the rounds with the lowest and the highest, one row for each figure and one column for each server. */
export function markdown(title: string, names: readonly string[], figures: PeersTable): string {
  const cell = (values: readonly number[] | undefined): string => {
    if (values === undefined) return "";
    const sorted = [...values].sort((a, b) => a - b);
    const median = sorted[Math.floor(sorted.length / 2)]!;
    return sorted.length < 2 ? shown(median) : `${shown(median)} (${shown(sorted[0]!)} to ${shown(sorted.at(-1)!)})`;
  };
  return [
    `| ${title} | ${names.join(" | ")} |`,
    `|---|${names.map(() => "---|").join("")}`,
    ...Object.entries(figures).map(([figure, bySystem]) => `| ${figure} | ${names.map((name) => cell(bySystem[name])).join(" | ")} |`),
  ].join("\n");
}

function shown(figure: number): string {
  return figure >= 100 ? Math.round(figure).toLocaleString("en-US") : figure.toPrecision(2);
}

function systemNames(raw: string): readonly WholeSystemName[] {
  const names = list(raw).map(oneOf(...WHOLE_SYSTEM_NAMES));
  if (names.length === 0) throw new SettingError(`must name some of ${WHOLE_SYSTEM_NAMES.join(", ")}`);
  return names;
}
