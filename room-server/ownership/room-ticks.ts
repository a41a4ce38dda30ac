/** Decides which rooms of this process are ticked now. Most of thousands of rooms have no work in progress. */

import { HEARTBEATS_MISSED_MAX } from "../../shared/cluster/membership.ts";
import { MapTurns } from "../../shared/collections/map-turns.ts";
import { OneRound } from "../../shared/collections/one-round.ts";
import type { Millis } from "../../shared/ids.ts";
import type { TickUrgency } from "../rooms/owned-room.ts";

/** Interval of the ticks that `RoomTicks` distributes. */
export const ROOM_TICK_MS = 50;
/** Rooms that only repeat their head are ticked once in this many ticks. */
const TICKS_LOW_PRIORITY = 5;
/** Every room has its turn once in this many ticks. Turns are spread over them: all of thousands of rooms at once would delay edits. */
const TICKS_PER_ROUND = 20;

/** `heartbeatMs`: interval of this server's heartbeats. */
export type RoomTicksOptions = { readonly heartbeatMs: number };
type TickedRoom = { readonly tickUrgency: TickUrgency };

export class RoomTicks<Room extends TickedRoom> {
  readonly #urgent = new Set<Room>();
  readonly #lowPriority = new Set<Room>();
  readonly #rooms: ReadonlyMap<unknown, Room>;
  readonly #turns: MapTurns<Room>;
  readonly #silenceMsMax: number;
  #ticks = 0;
  #tickedAt: Millis | undefined;
  /** Undefined: no room is in doubt. */
  #doubted: OneRound<unknown, Room> | undefined;

  constructor(rooms: ReadonlyMap<unknown, Room>, { heartbeatMs }: RoomTicksOptions) {
    this.#rooms = rooms;
    this.#turns = new MapTurns(rooms, TICKS_PER_ROUND);
    this.#silenceMsMax = HEARTBEATS_MISSED_MAX * heartbeatMs;
  }

  receiveUrgency(room: Room, urgency: TickUrgency): void {
    if (urgency !== "never") (urgency === "soon" ? this.#urgent : this.#lowPriority).add(room);
  }

  /** Begins a tick. Returns the rooms whose turn it is, with or without work in progress. */
  beginTick(now: Millis): readonly Room[] {
    const isPaused = this.#tickedAt !== undefined && now - this.#tickedAt > this.#silenceMsMax;
    if (isPaused) this.#doubted = new OneRound(this.#rooms, TICKS_PER_ROUND);
    this.#tickedAt = now;
    this.#ticks += 1;
    return this.#turns.take();
  }

  /**
   * Call once in each tick. Returns rooms to check against the log: after a pause of this process as long as missed
   * heartbeats, other servers may have taken rooms over. A room without edits would notice that only many seconds later.
   */
  takeDoubted(): readonly Room[] {
    const doubted = this.#doubted?.take() ?? [];
    if (this.#doubted?.isDone === true) this.#doubted = undefined;
    return doubted;
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
