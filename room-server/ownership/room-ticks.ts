/** Decides which rooms of this process are ticked now. Most of thousands of rooms have no work in progress. */

import { MapTurns } from "../../shared/collections/map-turns.ts";
import type { TickUrgency } from "../rooms/owned-room.ts";

/** Interval of the ticks that `RoomTicks` distributes. */
export const ROOM_TICK_MS = 50;
/** Rooms that only repeat their head are ticked once in this many ticks. */
const TICKS_LOW_PRIORITY = 5;
/** Every room has its turn once in this many ticks. Turns are spread over them: all of thousands of rooms at once would delay edits. */
const TICKS_PER_ROUND = 20;

type TickedRoom = { readonly tickUrgency: TickUrgency };

export class RoomTicks<Room extends TickedRoom> {
  readonly #urgent = new Set<Room>();
  readonly #lowPriority = new Set<Room>();
  readonly #turns: MapTurns<Room>;
  #ticks = 0;

  constructor(rooms: ReadonlyMap<unknown, Room>) {
    this.#turns = new MapTurns(rooms, TICKS_PER_ROUND);
  }

  receiveUrgency(room: Room, urgency: TickUrgency): void {
    if (urgency !== "never") (urgency === "soon" ? this.#urgent : this.#lowPriority).add(room);
  }

  /** Begins a tick. Returns the rooms whose turn it is, with or without work in progress. */
  beginTick(): readonly Room[] {
    this.#ticks += 1;
    return this.#turns.take();
  }

  /** The caller ticks each room before it takes the next one. A room without work in progress, or ended, is removed. */
  *dueRooms(): Generator<Room, void> {
    for (const room of this.#urgent) {
      if (room.tickUrgency === "soon") yield room;
      if (room.tickUrgency !== "soon") this.#urgent.delete(room); // The awaited result has arrived.
    }
    if (this.#ticks % TICKS_LOW_PRIORITY !== 0) return;
    for (const room of this.#lowPriority) {
      yield room;
      if (room.tickUrgency === "never") this.#lowPriority.delete(room);
    }
  }
}
