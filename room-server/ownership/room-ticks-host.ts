/** Ticks the rooms of this process, each as often as it wants: most of thousands have nothing under way. */

import type { Clock } from "../../shared/time/clock.ts";
import type { RoomKey } from "../../shared/ids.ts";
import type { TickUrgency } from "../rooms/owned-room.ts";
import type { HostedRoom } from "./hosted-room-host.ts";

/** `receiveRound`: called after all rooms were ticked. */
export type RoomTicksDeps = {
  readonly clock: Clock;
  readonly isInhabited: (room: RoomKey) => boolean;
  readonly receiveRound: () => void;
};

const TICK_MS = 50;
/** Rooms that only repeat their head are ticked once in this many ticks. */
const TICKS_AT_LEISURE = 5;
/** Rooms with nothing under way are ticked once in this many ticks. */
const TICKS_PER_ROUND = 20;

/** One object for thousands of rooms each second. */
const [TICK, INHABITED] = [{ kind: "tick" }, { kind: "inhabited" }] as const;

export class RoomTicks {
  readonly #rooms: ReadonlyMap<RoomKey, HostedRoom>;
  readonly #deps: RoomTicksDeps;
  /** Rooms that want a tick, soon or with low priority. */
  readonly #restless = new Set<HostedRoom>();
  readonly #lingering = new Set<HostedRoom>();
  #ticks = 0;
  #cancelTick: () => void;

  constructor(rooms: ReadonlyMap<RoomKey, HostedRoom>, deps: RoomTicksDeps) {
    this.#rooms = rooms;
    this.#deps = deps;
    this.#cancelTick = deps.clock.after(TICK_MS, () => this.#tick());
  }

  receivePace(room: HostedRoom, pace: Exclude<TickUrgency, "never">): void {
    (pace === "soon" ? this.#restless : this.#lingering).add(room);
  }

  forget(room: HostedRoom): void {
    this.#restless.delete(room);
    this.#lingering.delete(room);
  }

  stop(): void {
    this.#cancelTick();
  }

  #tick(): void {
    this.#cancelTick = this.#deps.clock.after(TICK_MS, () => this.#tick());
    this.#ticks += 1;
    if (this.#ticks % TICKS_PER_ROUND === 0) return this.#tickAll();
    for (const room of this.#restless) {
      if (room.pace === "soon") room.receive(TICK);
      if (room.pace !== "soon") this.#restless.delete(room); // The awaited result has arrived.
    }
    if (this.#ticks % TICKS_AT_LEISURE !== 0) return;
    for (const room of this.#lingering) {
      room.receive(TICK);
      if (room.pace === "never") this.#lingering.delete(room);
    }
  }

  #tickAll(): void {
    for (const room of this.#rooms.values()) {
      if (this.#deps.isInhabited(room.key)) room.receive(INHABITED);
      room.receive(TICK);
    }
    this.#deps.receiveRound();
  }
}
