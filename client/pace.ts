/**
 * How fast edits go out over one connection: always somewhat below what WELCOME allows, so that honest typing
 * is never closed for its rate, even where the network hands over at once what was sent over a second.
 * Whatever is sent counts, repeats included. Rules PAC1, PAC2.
 */

import type { Millis } from "../shared/ids.ts";
import type { Limits } from "../shared/wire/frames.ts";

const BURST_PART = 0.7;
const RATE_PART = 0.9;

export class Pace {
  readonly burst: number;
  readonly #perMs: number;
  #tokens: number;
  #filledAt: Millis;

  constructor({ editBurst, editsPerSecond }: Pick<Limits, "editBurst" | "editsPerSecond">, now: Millis) {
    this.burst = Math.max(1, Math.floor(editBurst * BURST_PART));
    this.#perMs = (Math.max(1, editsPerSecond) * RATE_PART) / 1000;
    this.#tokens = this.burst;
    this.#filledAt = now;
  }

  take(now: Millis): boolean {
    this.#fill(now);
    if (this.#tokens < 1) return false;
    this.#tokens -= 1;
    return true;
  }

  /** When the next edit may go out. */
  nextAt(now: Millis): Millis {
    this.#fill(now);
    return (this.#tokens >= 1 ? now : now + Math.ceil((1 - this.#tokens) / this.#perMs)) as Millis;
  }

  #fill(now: Millis): void {
    const elapsedMs = Math.max(0, now - this.#filledAt); // A clock set back gives nothing and takes nothing.
    this.#tokens = Math.min(this.burst, this.#tokens + elapsedMs * this.#perMs);
    this.#filledAt = now;
  }
}
