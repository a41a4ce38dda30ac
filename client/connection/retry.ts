/**
 * How long to wait before the next attempt: quickly after a line that was healthy, then exponentially longer, and no
 * sooner than the server asked for. Spread by chance, so that a crowd does not come back as one.
 */

import { type Backoff, backoffMs } from "./backoff.ts";

export type RetryOptions = {
  readonly quickRetryMs: number;
  readonly backoff: Backoff;
  /** What a server may ask for at most before the next attempt. */
  readonly retryMsMax: number;
  /** How long it is believed that one is banned at most. */
  readonly banMsMax: number;
};

export class Retry {
  readonly #options: RetryOptions;
  readonly #unit: () => number;
  /** Attempts in a row that led to no healthy line. */
  #failures = 0;
  /** The least that the server wants to be left alone for. */
  #askedMs = 0;
  /** Banned for so long, and not one of many who come too fast. */
  #isBanned = false;

  /** `unit`: a number in [0, 1). */
  constructor(options: RetryOptions, unit: () => number) {
    this.#options = options;
    this.#unit = unit;
  }

  /** What was asked for before is over. */
  attempted(): void {
    this.#askedMs = 0;
    this.#isBanned = false;
  }

  /** The server wants to be left alone for a while. */
  get isAsked(): boolean {
    return this.#askedMs > 0;
  }

  /** The next attempt's wait where the device had no network, and has one now: what failed before was not the server's. */
  networkIsBack(): number {
    this.#failures = 0;
    return this.#unit() * this.#options.quickRetryMs;
  }

  healthy(): void {
    this.#failures = 0;
  }

  asked(retryAfterMs: number): void {
    this.#askedMs = retryAfterMs;
  }

  /** Nobody was there, or the upgrade was refused. A browser does not tell what the server asked for then: never is it tried again quickly. */
  refused(retryAfterMs = 0): void {
    this.#askedMs = retryAfterMs;
    this.#failures = Math.max(1, this.#failures);
  }

  banned(): void {
    this.#isBanned = true;
  }

  /** Once for each attempt that failed, or line that ended. */
  nextMs(): number {
    const { quickRetryMs, backoff } = this.#options;
    const delayMs = this.#failures === 0 ? this.#unit() * quickRetryMs : backoffMs(backoff, this.#failures, this.#unit());
    const askedMs = this.#askedMs === 0 ? 0 : this.#spreadAskedMs();
    this.#failures += 1;
    return Math.max(delayMs, askedMs);
  }

  #spreadAskedMs(): number {
    const { retryMsMax, banMsMax, backoff } = this.#options;
    if (this.#isBanned) return Math.min(this.#askedMs, banMsMax) + this.#unit() * backoff.jitterMs;
    return Math.min(this.#askedMs, retryMsMax) * (1 + this.#unit());
  }
}
