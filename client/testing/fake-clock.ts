/** A clock that the test turns. Whatever was promised by then has happened before it goes on. */

import type { Millis } from "../../shared/ids.ts";
import type { Clock } from "../ports.ts";

type Timer = { readonly at: number; readonly run: () => void };

export class FakeClock implements Clock {
  #now = 1_700_000_000_000;
  /** Earliest first; of those at one time, the one set first. */
  readonly #timers: Timer[] = [];

  now(): Millis {
    return this.#now as Millis;
  }

  after(delayMs: number, run: () => void): () => void {
    const timer = { at: this.#now + Math.max(0, delayMs), run };
    let place = this.#timers.length;
    while (place > 0 && this.#timers[place - 1]!.at > timer.at) place -= 1;
    this.#timers.splice(place, 0, timer);
    return () => {
      const found = this.#timers.indexOf(timer);
      if (found >= 0) this.#timers.splice(found, 1);
    };
  }

  soon(run: () => void): void {
    this.after(0, run);
  }

  /** Timers that keep a process alive. */
  get pending(): number {
    return this.#timers.length;
  }

  async advance(ms: number): Promise<void> {
    const end = this.#now + ms;
    await settled();
    while (this.#timers.length > 0 && this.#timers[0]!.at <= end) {
      const { at, run } = this.#timers.shift()!;
      this.#now = Math.max(this.#now, at);
      run();
      await settled();
    }
    this.#now = end;
  }
}

/** Enough for a promise that waits for a few others. */
async function settled(): Promise<void> {
  for (let turn = 0; turn < 6; turn++) await undefined;
}
