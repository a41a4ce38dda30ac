/**
 * What one connection may send in what time, each kind out of a bucket of its own. Most connections only read, and
 * there are very many of them: the buckets of what few do are made when it is first done.
 */

import type { Millis } from "../shared/ids.ts";
import type { Counter } from "../shared/wire/frames.ts";
import { EditRate, type EditsSeen, PresenceRate, type Rate, TokenBucket } from "./rate-limit.ts";

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

export class ConnectionRates {
  readonly #options: ConnectionRateOptions;
  readonly #controls: TokenBucket;
  readonly #bytes: TokenBucket;
  #edits: EditRate | undefined;
  #presence: PresenceRate | undefined;
  #catchUps: TokenBucket | undefined;

  constructor(options: ConnectionRateOptions, now: Millis) {
    this.#options = options;
    this.#controls = new TokenBucket(options.controlRate, now);
    this.#bytes = new TokenBucket(options.byteRate, now);
  }

  takeBytes(bytes: number, now: Millis): boolean {
    return this.#bytes.take(now, bytes);
  }

  takeControl(now: Millis): boolean {
    return this.#controls.take(now);
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
}
