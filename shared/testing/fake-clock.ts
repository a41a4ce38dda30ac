/** A clock that the test controls: advancing it runs the due timers in order. */

import type { Clock } from "../time/clock.ts";
import type { Millis, UnixMillis } from "../ids.ts";

type Timer = { readonly at: number; readonly run: () => void };

export class FakeClock implements Clock {
  #now: number;
  /** Earliest first; timers of one time in the order in which they were set. */
  readonly #timers: Timer[] = [];

  constructor(now = 1) {
    this.#now = now;
  }

  now(): Millis {
    return this.#now as Millis;
  }

  wallNow(): UnixMillis {
    return this.#now as UnixMillis;
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

  /** Timers that neither ran nor were cancelled. */
  get pending(): number {
    return this.#timers.length;
  }

  /** Runs timers at once; promises settle only afterwards. */
  turn(ms: number): void {
    const end = this.#now + ms;
    while (this.#runNext(end)) continue;
    this.#now = end;
  }

  /** Advances, and lets promises settle between timers. */
  async advance(ms: number): Promise<void> {
    const end = this.#now + ms;
    await this.settled();
    while (this.#runNext(end)) await this.settled();
    this.#now = end;
  }

  /** The process was paused: timers that were due in the meantime run afterwards. */
  async afterPause(ms: number): Promise<void> {
    this.#now += ms;
    await this.advance(0);
  }

  /** Enough for promises that wait for others. */
  protected async settled(): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve));
  }

  #runNext(end: number): boolean {
    if (this.#timers.length === 0 || this.#timers[0]!.at > end) return false;
    const { at, run } = this.#timers.shift()!;
    this.#now = Math.max(this.#now, at);
    run();
    return true;
  }
}
