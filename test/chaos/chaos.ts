/**
 * Rounds of faults, drawn from a seed, on a system of real processes with typing clients. After each round all faults
 * are undone, and all clients of a room must have the same document again. Every few rounds the rooms and the boards
 * are compared with the logs, and new rooms are opened.
 */

import { setTimeout as sleep } from "node:timers/promises";

import { Prng } from "../../shared/collections/prng.ts";
import { BoardsWatch } from "./boards-watch.ts";
import { type RoomAccount, RoomWatch } from "./room-watch.ts";
import type { Aimed, ChaosTarget, ChaosFault, Struck } from "./target.ts";

type ChaosOptions = {
  readonly seed: number;
  readonly rounds: number;
  /** No round starts after this time. */
  readonly secondsMax: number;
  readonly rooms: number;
  /** Prefix of the room names, because a running system already has other rooms. */
  readonly roomsNamed: string;
  /** Interval at which each person types. */
  readonly everyMs: number;
  /** Only faults whose kind contains this text. */
  readonly only: string;
};

export type ChaosReport = {
  rounds: number;
  readonly faults: Map<string, number>;
  readonly levelMs: number[];
  readonly sums: { rooms: number; typed: number; acked: number; activities: number; tentative: number; epochs: number };
};

/** A room is used only for this many rounds, before the trim removes records that the judge needs. */
const ROUNDS_PER_ROOM = 8;
const REPORT_EVERY_MS = 500;
const CALM_MS = 300;
const FIRST_LEVEL_MS = 200;
/** Probability of a second fault during the first. */
const SECOND_CHANCE = 0.5;

/** Throws with the round in its message when a guarantee is broken. */
export async function runChaos(target: ChaosTarget, options: ChaosOptions, print: (text: string) => void): Promise<ChaosReport> {
  const report: ChaosReport = {
    rounds: 0,
    faults: new Map(),
    levelMs: [],
    sums: { rooms: 0, typed: 0, acked: 0, activities: 0, tentative: 0, epochs: 0 },
  };
  const until = performance.now() + options.secondsMax * 1_000;
  const boards = new BoardsWatch(target);
  while (report.rounds < options.rounds && performance.now() < until) {
    const rooms = await Promise.all(
      Array.from({ length: options.rooms }, (_, index) => RoomWatch.open(target, `${options.roomsNamed}-${report.rounds}-${index}`)),
    );
    try {
      for (let turn = 0; turn < ROUNDS_PER_ROOM && report.rounds < options.rounds && performance.now() < until; turn++)
        await playRound(target, rooms, options, report, print);
      for (const room of rooms) add(report, await room.judge(boards));
      await boards.judge();
    } catch (error) {
      throw new Error(`round ${report.rounds} with seed ${options.seed}`, { cause: error });
    } finally {
      for (const room of rooms) room.leave();
    }
  }
  return report;
}

async function playRound(
  target: ChaosTarget,
  rooms: readonly RoomWatch[],
  options: ChaosOptions,
  report: ChaosReport,
  print: (text: string) => void,
): Promise<void> {
  report.rounds += 1;
  const prng = new Prng(options.seed * 1_000_003 + report.rounds); // Drawn from the seed, so that one round can be replayed alone.
  const plan = await draw(target.faults, prng, options.only);
  const names = plan.map(({ kind, aimed }) => `${kind} (${aimed.victim})`).join(" + ");
  const typing = setInterval(() => rooms.forEach((room) => room.type()), options.everyMs);
  const reporting = setInterval(() => rooms.forEach((room) => room.reportActivity()), REPORT_EVERY_MS);
  try {
    await sleep(CALM_MS);
    const struck: Struck[] = [];
    for (const { aimed } of plan) struck.push(await aimed.strike());
    await sleep(Math.max(...plan.map(({ lastsMs }) => lastsMs)));
    await Promise.all(struck.map(({ undo }) => undo())).catch((cause: unknown) => {
      throw new Error(`not undone: ${names}`, { cause });
    });
    await sleep(FIRST_LEVEL_MS);
  } finally {
    clearInterval(typing);
    clearInterval(reporting);
  }
  for (const { kind } of plan) report.faults.set(kind, (report.faults.get(kind) ?? 0) + 1);
  const begun = performance.now();
  await Promise.all(rooms.map((room) => room.level())).catch((cause: unknown) => {
    throw new Error(`not level again after: ${names}`, { cause });
  });
  report.levelMs.push(performance.now() - begun);
  print(`round ${String(report.rounds).padStart(3)}  ${names}; level after ${(report.levelMs.at(-1)! / 1_000).toFixed(1)} s`);
}

type Planned = { readonly kind: string; readonly aimed: Aimed; readonly lastsMs: number };

/** Of two faults at most one disturbs NATS, because three replicas survive the loss of only one. */
async function draw(all: readonly ChaosFault[], prng: Prng, only: string): Promise<Planned[]> {
  const plan = async (faults: readonly ChaosFault[]): Promise<Planned> => {
    const { kind, lastsMsMax, aim } = faults[prng.below(faults.length)]!;
    return { kind, aimed: await aim(prng), lastsMs: prng.below(lastsMsMax + 1) };
  };
  const first = await plan(all.filter(({ kind }) => kind.includes(only)));
  if (!prng.chance(SECOND_CHANCE)) return [first];
  const others = all.filter(({ kind, disturbsNats }) => !disturbsNats && kind.includes(only));
  if (others.length === 0) return [first];
  const second = await plan(others);
  return second.aimed.victim === first.aimed.victim ? [first] : [first, second];
}

function add({ sums }: ChaosReport, account: RoomAccount): void {
  sums.rooms += 1;
  sums.typed += account.typed;
  sums.acked += account.acked;
  sums.activities += account.activities;
  sums.tentative += account.tentative;
  sums.epochs += account.epochs;
}
