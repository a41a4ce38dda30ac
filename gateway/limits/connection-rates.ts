/**
 * The rates of one connection, one token bucket per kind of frame. Most connections only read, so a bucket exists only
 * from its first use until it is full again.
 */

import type { Millis } from "../../shared/ids.ts";
import { type Rate, TokenBucket } from "../../shared/limits/token-bucket.ts";
import type { Counter } from "../../shared/wire/frames.ts";

/** Limits that one connection alone can reach. */
export type ConnectionLimit = "edits" | "presence" | "frames" | "bytes" | "catch-ups";

/** Shared by all connections. */
type ConnectionRateOptions = {
  readonly editRates: { readonly fresh: Rate; readonly repeats: Rate };
  /** Frames that are neither edits nor presence. */
  readonly controlRate: Rate;
  /** Presence above this rate is skipped. A client far above the rate is closed. */
  readonly presenceRate: Rate;
  readonly byteRate: Rate;
  /** Bytes of catch-up that the client may request. */
  readonly catchUpRate: Rate;
};

/** Maximum number of unused rates that are kept. */
const SPARE_MAX = 1_024;

/**
 * A pool of unused rates. Thousands of quiet connections use theirs for a second at every ping. New objects for each
 * use would survive young collections and become garbage in the old space. A full bucket equals a new one.
 */
export class RatePool {
  readonly #options: ConnectionRateOptions;
  readonly #spare: ConnectionRates[] = [];

  constructor(options: ConnectionRateOptions) {
    this.#options = options;
  }

  take(): ConnectionRates {
    return this.#spare.pop() ?? new ConnectionRates(this.#options);
  }

  /** `rates` must be untouched. */
  giveBack(rates: ConnectionRates): void {
    if (this.#spare.length < SPARE_MAX) this.#spare.push(rates);
  }
}

export class ConnectionRates {
  readonly #options: ConnectionRateOptions;
  #controls: TokenBucket | undefined;
  #bytes: TokenBucket | undefined;
  #edits: EditRate | undefined;
  #presence: PresenceRate | undefined;
  #catchUps: TokenBucket | undefined;

  constructor(options: ConnectionRateOptions) {
    this.#options = options;
  }

  takeBytes(bytes: number, now: Millis): boolean {
    return (this.#bytes ??= new TokenBucket(this.#options.byteRate, now)).take(now, bytes);
  }

  takeControl(now: Millis): boolean {
    return (this.#controls ??= new TokenBucket(this.#options.controlRate, now)).take(now);
  }

  takeEdit(counter: Counter, seen: EditsSeen, now: Millis): boolean {
    return (this.#edits ??= new EditRate(this.#options.editRates, now)).takeEdit(counter, seen, now);
  }

  takePresence(now: Millis): "taken" | "passed-over" | "too-fast" {
    return (this.#presence ??= new PresenceRate(this.#options.presenceRate, now)).takeFrame(now);
  }

  /** The cost of a catch-up is known only afterwards. */
  mayCatchUp(now: Millis): boolean {
    return this.#catchUps?.take(now, 0) !== false;
  }

  /** If the connection is above the rate now, the next catch-up is refused. */
  receiveCaughtUp(bytes: number, now: Millis): void {
    this.#catchUps ??= new TokenBucket(this.#options.catchUpRate, now);
    this.#catchUps.spend(now, bytes);
  }

  /**
   * Drops full buckets, because a new bucket would be equal. `untouched`: every bucket is full, including the buckets
   * that are kept because any frame uses them.
   */
  receiveTick(now: Millis): "taken" | "untouched" {
    if (this.#edits?.isFull(now) === true) this.#edits = undefined;
    if (this.#presence?.isFull(now) === true) this.#presence = undefined;
    if (this.#catchUps?.isFull(now) === true) this.#catchUps = undefined;
    const isTaken =
      this.#edits !== undefined ||
      this.#presence !== undefined ||
      this.#catchUps !== undefined ||
      this.#controls?.isFull(now) === false ||
      this.#bytes?.isFull(now) === false;
    return isTaken ? "taken" : "untouched";
  }
}

/** At this multiple of the presence rate the client is closed: an honest client never reaches it. */
const PRESENCE_EXCESS = 4;

/** Only the newest presence counts, so presence a little above the rate is skipped. */
class PresenceRate {
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

/**
 * The counters of one client's edits seen on this connection: from `first` through `through`; none while `first` is
 * above `through`.
 */
export type EditsSeen = { readonly joinedAt: Millis; first: Counter; through: Counter };

/** For this time after a join, an edit with an unknown counter may repeat an edit of another connection. */
const REPEATS_AFTER_JOIN_MS = 10_000;

/**
 * The rate of edits of one connection. After a reconnect or a refusal the SDK sends unacknowledged edits again.
 * Repeated edits have a separate limit, so that an honest client is never closed for them.
 */
export class EditRate {
  readonly #fresh: TokenBucket;
  readonly #repeats: TokenBucket;
  /** Refills like the bucket of new edits. So a client that joins again and again sends at most twice as fast. */
  readonly #afterJoins: TokenBucket;

  constructor({ fresh, repeats }: { fresh: Rate; repeats: Rate }, now: Millis) {
    this.#fresh = new TokenBucket(fresh, now);
    this.#repeats = new TokenBucket(repeats, now);
    this.#afterJoins = new TokenBucket({ burst: repeats.burst, perSecond: fresh.perSecond }, now);
  }

  /** False: the connection is above its rate. */
  takeEdit(counter: Counter, seen: EditsSeen, now: Millis): boolean {
    if (counter >= seen.first && counter <= seen.through) return this.#repeats.take(now);
    // The skipped counters were never sent on this connection, so they are new when they arrive.
    if (counter !== seen.through + 1) seen.first = counter;
    seen.through = counter;
    if (this.#fresh.take(now)) return true;
    return now - seen.joinedAt <= REPEATS_AFTER_JOIN_MS && this.#afterJoins.take(now);
  }

  isFull(now: Millis): boolean {
    return this.#fresh.isFull(now) && this.#repeats.isFull(now) && this.#afterJoins.isFull(now);
  }
}
