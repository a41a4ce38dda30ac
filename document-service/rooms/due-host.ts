/** What of a partition's rooms is to be saved or removed now, and as much of it as may run at a time. */

import type { Clock } from "../../shared/clock.ts";
import type { Millis } from "../../shared/ids.ts";
import type { RoomHost } from "./room-host.ts";

export type DueOptions = { readonly documentSavesMax: number };
/** `pressed`: the partition needs the memory. */
type Pressure = { readonly pressed: boolean };
type Due = { readonly room: RoomHost; readonly pressed: boolean };

export class DueHost {
  readonly #savesMax: number;
  readonly #clock: Clock;
  /** The most urgent first. */
  #due: Due[] = [];
  #running = 0;

  constructor({ documentSavesMax }: DueOptions, clock: Clock) {
    this.#savesMax = documentSavesMax;
    this.#clock = clock;
  }

  get isBusy(): boolean {
    return this.#running > 0;
  }

  /** What waits longest is saved first; what is removed can wait. */
  replace(unsaved: readonly RoomHost[], unwiped: readonly RoomHost[], { pressed }: Pressure): void {
    const byAge = unsaved.toSorted((a, b) => (a.uncoveredSince ?? 0) - (b.uncoveredSince ?? 0));
    this.#due = [...byAge.map((room) => ({ room, pressed })), ...unwiped.map((room) => ({ room, pressed: false }))];
    this.#start();
  }

  /** What runs goes on. */
  clear(): void {
    this.#due = [];
  }

  /** Whatever ends starts the next at once, which need not wait for the next tick. */
  #start(): void {
    while (this.#running < this.#savesMax) {
      const next = this.#due.shift();
      if (next === undefined) return;
      const work = workDue(next, this.#clock.now());
      if (work === undefined) continue; // Done meanwhile.
      this.#running += 1;
      void work.finally(() => {
        this.#running -= 1;
        this.#start();
      });
    }
  }
}

function workDue({ room, pressed }: Due, now: Millis): Promise<void> | undefined {
  if (room.isWipeDue(now)) return room.wipe();
  return room.isSaveDue(now, { pressed }) ? room.save() : undefined;
}
