/**
 * Rates of HTTP requests, one token bucket per user. The user whose last request is the oldest is forgotten first, and
 * gets a full bucket at the next request.
 */

import type { Millis } from "../../shared/ids.ts";
import { type Rate, TokenBucket } from "../../shared/limits/token-bucket.ts";

export type { Rate } from "../../shared/limits/token-bucket.ts";

export class UserRates {
  readonly #rate: Rate;
  readonly #readersMax: number;
  /** In order of use: the latest is last. */
  readonly #buckets = new Map<string, TokenBucket>();

  constructor(rate: Rate, readersMax: number) {
    this.#rate = rate;
    this.#readersMax = readersMax;
  }

  take(reader: string, now: Millis): boolean {
    const bucket = this.#buckets.get(reader) ?? new TokenBucket(this.#rate, now);
    this.#buckets.delete(reader);
    this.#buckets.set(reader, bucket);
    const [oldest] = this.#buckets.keys();
    if (oldest !== undefined && this.#buckets.size > this.#readersMax) this.#buckets.delete(oldest);
    return bucket.take(now);
  }
}
