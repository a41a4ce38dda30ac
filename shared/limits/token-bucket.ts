/** Grants a burst at once, and then a rate per second. Rules RATE1 and RATE2. */

import type { Millis } from "../ids.ts";

export type Rate = { readonly burst: number; readonly perSecond: number };

export class TokenBucket {
  readonly #rate: Rate;
  #tokens: number;
  #filledAt: Millis;

  constructor(rate: Rate, now: Millis) {
    this.#rate = rate;
    this.#tokens = rate.burst;
    this.#filledAt = now;
  }

  /** `left`: the part of the burst that has to be left. */
  take(now: Millis, cost = 1, left = 0): boolean {
    this.#fill(now);
    if (this.#tokens < cost + left) return false;
    this.#tokens -= cost;
    return true;
  }

  /**
   * For a cost that is known only afterwards. The balance may become negative; until it is positive again, `take`
   * grants nothing, not even a cost of 0.
   */
  spend(now: Millis, cost: number): void {
    this.#fill(now);
    this.#tokens -= cost;
  }

  isFull(now: Millis): boolean {
    this.#fill(now);
    return this.#tokens === this.#rate.burst;
  }

  #fill(now: Millis): void {
    const elapsedMs = now - this.#filledAt;
    this.#tokens = Math.min(this.#rate.burst, this.#tokens + (elapsedMs * this.#rate.perSecond) / 1000);
    this.#filledAt = now;
  }
}
