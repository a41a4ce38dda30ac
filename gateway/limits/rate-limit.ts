/**
 * How fast one connection may send. Edits sent again (after a reconnect or a refusal the SDK repeats what
 * was not acknowledged) are counted apart, so that an honest client is never closed for repeating itself.
 */

import type { Millis } from "../../shared/ids.ts";
import { type Rate, TokenBucket } from "../../shared/token-bucket.ts";
import type { Counter } from "../../shared/wire/frames.ts";

/** So many times the rate of presence is more than a client's mistake. */
const PRESENCE_EXCESS = 4;

/** Of presence only the newest counts: what is a little too much can be passed over. */
export class PresenceRate {
  readonly #frames: TokenBucket;
  readonly #excess: TokenBucket;

  constructor(rate: Rate, now: Millis) {
    this.#frames = new TokenBucket(rate, now);
    this.#excess = new TokenBucket({ burst: rate.burst * PRESENCE_EXCESS, perSecond: rate.perSecond * PRESENCE_EXCESS }, now);
  }

  takeFrame(now: Millis): "taken" | "passed-over" | "too-fast" {
    if (!this.#excess.take(now)) return "too-fast";
    return this.#frames.take(now) ? "taken" : "passed-over";
  }

  isFull(now: Millis): boolean {
    return this.#frames.isFull(now) && this.#excess.isFull(now);
  }
}

/** What of one client's edits has been seen on this connection: from `first` through `through`; nothing while `first` is above. */
export type EditsSeen = { readonly joinedAt: Millis; first: Counter; through: Counter };

/** For so long after a join, counters not yet seen here may be repeats of what another connection sent. */
const REPEATS_AFTER_JOIN_MS = 10_000;

export class EditRate {
  readonly #fresh: TokenBucket;
  readonly #repeats: TokenBucket;
  /** Fills like that of new edits: whoever joins again and again sends no more than twice as fast. */
  readonly #afterJoins: TokenBucket;

  constructor({ fresh, repeats }: { fresh: Rate; repeats: Rate }, now: Millis) {
    this.#fresh = new TokenBucket(fresh, now);
    this.#repeats = new TokenBucket(repeats, now);
    this.#afterJoins = new TokenBucket({ burst: repeats.burst, perSecond: fresh.perSecond }, now);
  }

  /** False: the connection sends faster than it may. */
  takeEdit(counter: Counter, seen: EditsSeen, now: Millis): boolean {
    if (counter >= seen.first && counter <= seen.through) return this.#repeats.take(now);
    if (counter !== seen.through + 1) seen.first = counter; // What lies between was never sent here: it is new when it comes.
    seen.through = counter;
    if (this.#fresh.take(now)) return true;
    return now - seen.joinedAt <= REPEATS_AFTER_JOIN_MS && this.#afterJoins.take(now);
  }

  isFull(now: Millis): boolean {
    return this.#fresh.isFull(now) && this.#repeats.isFull(now) && this.#afterJoins.isFull(now);
  }
}
