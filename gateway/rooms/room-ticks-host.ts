/** Ticks a room every 100 ms while it waits for something, and every second while it only has something to expire. */

import type { Clock } from "../../shared/time/clock.ts";
import type { DirectoryEntry } from "./room-directory.ts";

const TICK_MS = 100;
const TICKS_PER_SLOW_TICK = 10;

export class FollowedRoomTicks {
  readonly #clock: Clock;
  readonly #tickRoom: (followed: DirectoryEntry) => void;
  #fast = new Set<DirectoryEntry>();
  #slow = new Set<DirectoryEntry>();
  #tickCount = 0;
  /** Undefined: no room needs a tick. */
  #cancel: (() => void) | undefined;

  constructor(clock: Clock, tickRoom: (followed: DirectoryEntry) => void) {
    this.#clock = clock;
    this.#tickRoom = tickRoom;
  }

  /** Ticks the room as often as it needs after an input. */
  schedule(followed: DirectoryEntry): void {
    const { tickRate } = followed.room;
    if (tickRate === "none") return;
    (tickRate === "fast" ? this.#fast : this.#slow).add(followed);
    this.#tickLater();
  }

  /** Stops permanently. */
  stop(): void {
    this.#cancel?.();
    this.#cancel = () => {}; // Prevents `#tickLater` from setting another timer.
  }

  #tickLater(): void {
    this.#cancel ??= this.#clock.after(TICK_MS, () => {
      this.#cancel = undefined;
      this.#tick();
    });
  }

  #tick(): void {
    this.#tickCount += 1;
    const fast = this.#fast;
    this.#fast = new Set();
    for (const followed of fast) {
      if (followed.room.tickRate === "fast") this.#tickRoom(followed);
      else this.schedule(followed); // The room received what it waited for.
    }
    if (this.#tickCount % TICKS_PER_SLOW_TICK === 0) {
      const slow = this.#slow;
      this.#slow = new Set();
      for (const followed of slow) this.#tickRoom(followed);
    }
    if (this.#fast.size + this.#slow.size > 0) this.#tickLater();
  }
}
