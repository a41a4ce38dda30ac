/** Ticks the rooms of this process, each as often as it wants to be: most of thousands have nothing under way. */

import type { Clock } from "../../shared/clock.ts";
import type { RoomKey } from "../../shared/ids.ts";
import type { Pace } from "../rooms/room.ts";
import type { HostedRoom } from "./hosted-room-host.ts";

/** `receiveRound`: all rooms were ticked. */
export type RoomTicksDeps = {
  readonly clock: Clock;
  readonly isInhabited: (room: RoomKey) => boolean;
  readonly receiveRound: () => void;
};

const TICK_MS = 50;
/** Every so many ticks those are ticked too that only have their head to tell again. */
const TICKS_AT_LEISURE = 5;
/** Rooms with nothing under way are looked at every so many ticks. */
const TICKS_PER_ROUND = 20;

/** There are thousands of rooms to say it to each second. */
const [TICK, INHABITED] = [{ kind: "tick" }, { kind: "inhabited" }] as const;

export class RoomTicks {
  readonly #rooms: ReadonlyMap<RoomKey, HostedRoom>;
  readonly #deps: RoomTicksDeps;
  /** Rooms that want a tick, soon or at leisure. */
  readonly #restless = new Set<HostedRoom>();
  readonly #lingering = new Set<HostedRoom>();
  #ticks = 0;
  #cancelTick: () => void;

  constructor(rooms: ReadonlyMap<RoomKey, HostedRoom>, deps: RoomTicksDeps) {
    this.#rooms = rooms;
    this.#deps = deps;
    this.#cancelTick = deps.clock.after(TICK_MS, () => this.#tick());
  }

  receivePace(room: HostedRoom, pace: Exclude<Pace, "never">): void {
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
      if (room.pace !== "soon") this.#restless.delete(room); // What it waited for has come.
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
