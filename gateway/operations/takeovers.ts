/**
 * How many rooms servers took over from others that had not let them go: a server that is lost had hundreds, and each is
 * an event. Counted for each tenant apart, so that whoever may see one room of a tally may see all of it.
 */

import type { OperationsEvent } from "../../shared/bus/operations-events.ts";
import { type RoomKey, tenantOf } from "../../shared/ids.ts";

/** `seq`, `first`: of the first room's event. `newest`: seq of the last one's. `rooms`: the first few. */
export type Takeover = {
  readonly seq: number;
  readonly first: TakenRoom;
  readonly newest: number;
  readonly count: number;
  readonly rooms: readonly RoomKey[];
};
type TakenRoom = OperationsEvent & { readonly kind: "room_claimed"; readonly from: string };

/** Rooms of one server that come to another within this of the first are one takeover. */
const TAKEOVER_MS_MAX = 60_000;
const NAMES_MAX = 3;

export class Takeovers {
  readonly #takeoversMax: number;
  /** The newest of each server that takes, server that is taken from, and tenant; in the order in which they began. */
  #newest = new Map<string, Takeover>();
  #all = new Map<number, Takeover>();

  constructor(options: { takeoversMax: number }) {
    this.#takeoversMax = options.takeoversMax;
  }

  receive(seq: number, event: TakenRoom): void {
    const key = `${event.by} ${event.from} ${tenantOf(event.room)}`;
    const before = this.#newest.get(key);
    const goesOn = before !== undefined && event.at - before.first.at <= TAKEOVER_MS_MAX;
    const { seq: begun, first, count, rooms } = goesOn ? before : { seq, first: event, count: 0, rooms: [] };
    const takeover = { seq: begun, first, newest: seq, count: count + 1, rooms: [...rooms, event.room].slice(0, NAMES_MAX) };
    this.#newest.set(key, takeover);
    this.#all.set(begun, takeover);
    if (this.#all.size > this.#takeoversMax) this.#forgetOldest();
  }

  /** Those that have grown since, oldest first. */
  since(after: number, mayShow: (event: OperationsEvent) => boolean): readonly Takeover[] {
    return [...this.#all.values()].filter(({ newest, first }) => newest > after && mayShow(first));
  }

  #forgetOldest(): void {
    const [[seq, { first }]] = this.#all as unknown as [[number, Takeover]];
    this.#all.delete(seq);
    const key = `${first.by} ${first.from} ${tenantOf(first.room)}`;
    if (this.#newest.get(key)?.seq === seq) this.#newest.delete(key);
  }
}

export function isTakeover(event: OperationsEvent): event is TakenRoom {
  return event.kind === "room_claimed" && event.from !== undefined;
}
