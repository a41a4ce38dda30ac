/** How often each of many may ask over HTTP. Of those who asked longest ago nothing is kept: they may ask at once again. */

import type { Millis } from "../../shared/ids.ts";
import { type Rate, TokenBucket } from "../../shared/token-bucket.ts";

export type { Rate } from "../../shared/token-bucket.ts";

export class ReaderRates {
  readonly #rate: Rate;
  readonly #readersMax: number;
  /** Whoever asked last stands last. */
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
