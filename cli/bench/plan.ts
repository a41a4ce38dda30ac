/** The plan of `coroom bench`: its rooms and people, and the maxima that protect a cluster from a mistyped number. */

import { Prng } from "../../shared/collections/prng.ts";
import { SettingError } from "../../shared/settings/settings.ts";

/** `people`: in each room. The rates are those of all rooms together. */
export type BenchLoad = {
  readonly rooms: number;
  readonly people: number;
  readonly editRate: number;
  readonly cursorRate: number;
  readonly seconds: number;
  readonly rampUpSeconds: number;
};

/** `room`: index in `BenchPlan.rooms`. `place`: index of the person in its room. */
export type BenchSeat = { readonly room: number; readonly place: number };

/** `seats`: in the order in which people join, edit and move. Consecutive seats are in different rooms. */
export type BenchPlan = { readonly load: BenchLoad; readonly rooms: readonly string[]; readonly seats: readonly BenchSeat[] };

/** No application should use it for its rooms: a token for the bench opens `coroom-bench-*`. */
export const ROOM_PREFIX = "coroom-bench-";

/**
 * Maxima of one generator. The rates of one person are what the SDK sends at the default limits of gateways: 0.9 of the
 * edits that they allow. It would keep more in its queue.
 */
export const BENCH_MAX = {
  rooms: 1_000,
  people: 500,
  connections: 5_000,
  joinsPerSecond: 200,
  editRate: 5_000,
  cursorRate: 20_000,
  editRateEach: 9,
  cursorRateEach: 20,
  receiptsPerSecond: 100_000,
  seconds: 3_600,
  rampUpSeconds: 600,
} as const;

/** Throws a SettingError that lists everything that exceeds a maximum, each with its remedy. `tag`: distinguishes this run's rooms. */
export function planBench({ rooms: roomCount, people, editRate, cursorRate, seconds, rampUpSeconds }: BenchLoad, tag: string): BenchPlan {
  // No further field: the caller passes its settings with their secrets, and a report prints the load.
  const load = { rooms: roomCount, people, editRate, cursorRate, seconds, rampUpSeconds };
  const problems = excessesOf(load);
  if (problems.length > 0) throw new SettingError(`the load is too large for one generator:\n  ${problems.join("\n  ")}`);
  const rooms = Array.from({ length: load.rooms }, (_, index) => `${ROOM_PREFIX}${tag}-${index + 1}`);
  const order = shuffled(rooms.map((_, room) => room));
  const seats = Array.from({ length: load.people }, (_, place) => order.map((room) => ({ room, place }))).flat();
  return { load, rooms, seats };
}

/** The time in which people join. 0: as long as the maximum rate of joins needs, and 2 s at least. */
export function rampUpSecondsOf({ rooms, people, rampUpSeconds }: BenchLoad): number {
  return rampUpSeconds > 0 ? rampUpSeconds : Math.max(2, Math.ceil((rooms * people) / (BENCH_MAX.joinsPerSecond / 2)));
}

function excessesOf(load: BenchLoad): string[] {
  const { rooms, people, editRate, cursorRate } = load;
  const connections = rooms * people;
  const receipts = (editRate + cursorRate) * (people - 1);
  const joins = connections / rampUpSecondsOf(load);
  const problems: string[] = [];
  const refuse = (value: number, max: number, what: string, remedy: string): void => {
    if (value > max) problems.push(`${number(value)} ${what}, ${number(max)} at most. ${remedy}`);
  };
  refuse(connections, BENCH_MAX.connections, "connections (--rooms times --people)", "Lower one of them, or run several generators");
  refuse(
    joins,
    BENCH_MAX.joinsPerSecond,
    "joins a second",
    `Raise --ramp-up-seconds to ${Math.ceil(connections / BENCH_MAX.joinsPerSecond)}`,
  );
  refuse(
    editRate / connections,
    BENCH_MAX.editRateEach,
    "edits a second by each person",
    "The SDK sends no more at the default limit of gateways: raise --rooms or --people, or lower --edit-rate",
  );
  refuse(
    cursorRate / connections,
    BENCH_MAX.cursorRateEach,
    "cursor moves a second by each person",
    "The SDK sends no more: raise --rooms or --people, or lower --cursor-rate",
  );
  refuse(
    receipts,
    BENCH_MAX.receiptsPerSecond,
    "receipts a second (each edit and cursor move, by every other person in its room)",
    "Lower --people or the rates, or run several generators",
  );
  return problems;
}

/** The same order in each run. */
function shuffled(rooms: number[]): number[] {
  const prng = new Prng(1);
  for (let last = rooms.length - 1; last > 0; last--) {
    const other = prng.below(last + 1);
    [rooms[last], rooms[other]] = [rooms[other]!, rooms[last]!];
  }
  return rooms;
}

function number(value: number): string {
  return value.toLocaleString("en", { maximumFractionDigits: 1 });
}
