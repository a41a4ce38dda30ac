/**
 * What one connection may send in what time, each kind out of a bucket of its own. Most connections only read, and
 * there are very many of them: they have rates from when they first take from them until all buckets are full again.
 */

import type { Millis } from "../../shared/ids.ts";
import { type Rate, TokenBucket } from "../../shared/token-bucket.ts";
import type { Counter } from "../../shared/wire/frames.ts";
import { EditRate, type EditsSeen, PresenceRate } from "./rate-limit.ts";

/** What one connection alone can come up against. */
export type ConnectionLimit = "edits" | "presence" | "frames" | "bytes" | "catch-ups";

/** One for all connections. */
export type ConnectionRateOptions = {
  readonly editRates: { readonly fresh: Rate; readonly repeats: Rate };
  /** Frames that are neither edits nor presence. */
  readonly controlRate: Rate;
  /** Beyond it presence is passed over; who sends far more is closed. */
  readonly presenceRate: Rate;
  readonly byteRate: Rate;
  /** Bytes of rooms' past that the client may have itself sent. */
  readonly catchUpRate: Rate;
};

/** Held for connections to come, at most. */
const SPARE_MAX = 1_024;

/**
 * Rates that were let go. Thousands of quiet connections take from theirs for a second at every ping: made anew each
 * time, they would outlive scavenges, and be garbage in old pages. Full buckets are what new ones are.
 */
export class SpareRates {
  readonly #options: ConnectionRateOptions;
  readonly #spare: ConnectionRates[] = [];

  constructor(options: ConnectionRateOptions) {
    this.#options = options;
  }

  take(): ConnectionRates {
    return this.#spare.pop() ?? new ConnectionRates(this.#options);
  }

  /** `rates`: untouched. */
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

  /** What it costs is known only afterwards. */
  mayCatchUp(now: Millis): boolean {
    return this.#catchUps?.take(now, 0) !== false;
  }

  /** The next question is refused if that was too much. */
  receiveCaughtUp(bytes: number, now: Millis): void {
    this.#catchUps ??= new TokenBucket(this.#options.catchUpRate, now);
    this.#catchUps.spend(now, bytes);
  }

  /** A full bucket gives what a new one would. `untouched`: so do they all, those that any frame takes from kept. */
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
