/**
 * How fast connections are let in. A crowd is spread evenly: so many a second, the next wait for their turn in a
 * short queue, and whoever would wait longer is told to come back later.
 */

import type { Millis } from "../../shared/ids.ts";
import { TokenBucket } from "../../shared/token-bucket.ts";

export type AdmissionOptions = { readonly connectsPerSecondMax: number; readonly connectQueueMax: number };

/** At once goes what would go in so much of a second. */
const BURST_SECONDS = 0.05;

export class Admission<Guest> {
  readonly #queueMax: number;
  readonly #bucket: TokenBucket;
  /** In the order of their coming. */
  readonly #queue = new Map<Guest, Millis>();

  constructor({ connectsPerSecondMax: perSecond, connectQueueMax }: AdmissionOptions, now: Millis) {
    this.#queueMax = connectQueueMax;
    this.#bucket = new TokenBucket({ burst: Math.max(1, perSecond * BURST_SECONDS), perSecond }, now);
  }

  get waiting(): number {
    return this.#queue.size;
  }

  knock(guest: Guest, now: Millis): "come-in" | "wait" | "turn-away" {
    if (this.#queue.size === 0 && this.#bucket.take(now)) return "come-in";
    if (this.#queue.size >= this.#queueMax) return "turn-away";
    this.#queue.set(guest, now);
    return "wait";
  }

  /** Whoever does not wait to the end. */
  leave(guest: Guest): void {
    this.#queue.delete(guest);
  }

  /** Those whose turn it is, and how long they waited. */
  admit(now: Millis): { guest: Guest; waitedMs: number }[] {
    const admitted: { guest: Guest; waitedMs: number }[] = [];
    for (const [guest, since] of this.#queue) {
      if (!this.#bucket.take(now)) break;
      this.#queue.delete(guest);
      admitted.push({ guest, waitedMs: now - since });
    }
    return admitted;
  }
}
