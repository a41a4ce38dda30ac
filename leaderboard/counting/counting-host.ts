/**
 * When the rooms of a pass are counted: all of them once in a while, those that somebody looks at more often; and when
 * what they came to is told.
 */

import type { Clock } from "../../shared/clock.ts";
import type { RoomKey } from "../../shared/ids.ts";
import type { Log } from "../../shared/log.ts";
import { pause } from "../../shared/pause.ts";
import type { Headway } from "./headway.ts";
import type { PassRooms } from "./pass-rooms.ts";
import type { BoardRoom } from "./room-host.ts";
import { eachOf } from "./turns.ts";

export type CountingOptions = {
  readonly boardBatchMs: number;
  readonly boardWritesMax: number;
  readonly boardTotalsMs: number;
};
export type CountingDeps = { readonly clock: Clock; readonly log: Log; readonly watchedRooms: () => Iterable<RoomKey> };

/** Rooms whose boards are watched are counted so many times as often. */
const WATCHED_TURNS = 4;

export class Counting {
  readonly #partition: number;
  readonly #rooms: PassRooms;
  readonly #headway: Headway;
  readonly #options: CountingOptions;
  readonly #deps: CountingDeps;

  constructor(partition: number, rooms: PassRooms, headway: Headway, options: CountingOptions, deps: CountingDeps) {
    this.#partition = partition;
    this.#rooms = rooms;
    this.#headway = headway;
    this.#options = options;
    this.#deps = deps;
  }

  /** Applies what came, and knows how far everything is then. Where that takes longer than a batch may, the next begins at once. */
  async count(signal: AbortSignal): Promise<void> {
    const { clock } = this.#deps;
    const batchMs = this.#options.boardBatchMs;
    for (let allDue = clock.now() + batchMs; ;) {
      const turnMs = this.#watched().length > 0 ? batchMs / WATCHED_TURNS : batchMs;
      await pause(clock, Math.max(0, Math.min(turnMs, allDue - clock.now())), signal);
      if (signal.aborted) return;
      const begin = clock.now();
      const isForAll = begin >= allDue;
      const received = this.#rooms.areOpen ? this.#headway.received : undefined;
      await this.#apply(isForAll ? this.#rooms.all : this.#watched());
      if (signal.aborted) return;
      if (!isForAll) continue;
      allDue = begin + batchMs;
      if (received !== undefined && this.#headway.count(received)) {
        this.#deps.log.info({ partition: this.#partition, through: received }, "the boards are up to date");
      }
    }
  }

  /**
   * Those who have to catch up first tell what they came to, not what is on the way: checkpoints tell for themselves. But
   * where there are many rooms each is to be forgotten, and none is before it has told.
   */
  async tellTotals(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await pause(this.#deps.clock, this.#options.boardTotalsMs, signal);
      const { hasCaughtUp, through } = this.#headway;
      if (!hasCaughtUp && !this.#rooms.isPressed) continue;
      const untold = this.#rooms.all.filter(({ isUntold }) => isUntold);
      await eachOf(untold, this.#options.boardWritesMax, async (room) => {
        if (!signal.aborted) await room.tellTotals();
      });
      if (hasCaughtUp && !signal.aborted) this.#headway.tell(through);
    }
  }

  async #apply(rooms: readonly BoardRoom[]): Promise<void> {
    const behind = rooms.filter(({ pending }) => pending > 0);
    await eachOf(behind, this.#options.boardWritesMax, (room) => room.apply());
  }

  #watched(): BoardRoom[] {
    return [...this.#deps.watchedRooms()].flatMap((key) => this.#rooms.get(key) ?? []);
  }
}
