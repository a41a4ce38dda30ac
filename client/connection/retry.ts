/**
 * Delay before the next attempt: short after a healthy connection, then exponentially longer, and never shorter than
 * the server's request. Random jitter spreads clients that reconnect together. After the loss of a server, the client
 * tries every few seconds for a minute. So clients return quickly even if the server crashes again, and the gateway's
 * rate of admission protects it.
 */

import type { Millis } from "../../shared/ids.ts";

export type RetryOptions = {
  readonly quickRetryMs: number;
  readonly backoff: Backoff;
  /** The delays while a server that admitted the client to a room is lost. Their sum is the longest wait. */
  readonly lostBackoff: Backoff;
  /** Time for which a server counts as lost. */
  readonly lostMsMax: number;
  /** Maximum delay that a server may ask for. */
  readonly retryMsMax: number;
  /** Maximum delay that a server may ask for in case of a ban. */
  readonly banMsMax: number;
};

/**
 * `answer`: the server, or the application's token function, refused. `no-answer`: the server is unreachable, or
 * announced that it stops.
 */
export type RetryCause = "answer" | "no-answer";

export class Retry {
  readonly #options: RetryOptions;
  readonly #unit: () => number;
  /** Attempts in a row without a healthy connection. */
  #failures = 0;
  /** Minimum delay that the server asked for. */
  #askedMs = 0;
  /** True: the delay is a ban of this client, so jitter need not grow with it. */
  #isBanned = false;
  /** A server that admitted the client to a room counts as lost until then. */
  #lostUntil = 0;

  /** `unit`: returns a number in [0, 1). */
  constructor(options: RetryOptions, unit: () => number) {
    this.#options = options;
    this.#unit = unit;
  }

  /** An attempt begins: earlier delay requests of the server no longer apply. */
  begin(): void {
    this.#askedMs = 0;
    this.#isBanned = false;
  }

  /** The server asked for a delay. */
  get isAsked(): boolean {
    return this.#askedMs > 0;
  }

  /** Returns the delay of the next attempt after the device's network came back: the server did not cause the earlier failures. */
  receiveNetworkBack(): number {
    this.#failures = 0;
    return this.#unit() * this.#options.quickRetryMs;
  }

  receiveHealthy(): void {
    this.#failures = 0;
  }

  /** A connection with a room ended. */
  receiveLost(now: Millis): void {
    this.#lostUntil = now + this.#options.lostMsMax;
  }

  receiveRetryAfter(retryAfterMs: number): void {
    this.#askedMs = retryAfterMs;
  }

  /**
   * The server did not answer or refused the upgrade. Browsers do not report the delay that the server asked for, so
   * the next attempt is never quick.
   */
  receiveUnreachable(retryAfterMs = 0): void {
    this.#askedMs = retryAfterMs;
    this.#failures = Math.max(1, this.#failures);
  }

  receiveBan(): void {
    this.#isBanned = true;
  }

  /** Call once for each failed attempt or ended connection. */
  nextMs(cause: RetryCause, now: Millis): number {
    const { quickRetryMs, backoff, lostBackoff } = this.#options;
    const isLost = cause === "no-answer" && this.#askedMs === 0 && now < this.#lostUntil;
    const delayMs =
      this.#failures === 0 ? this.#unit() * quickRetryMs : backoffMs(isLost ? lostBackoff : backoff, this.#failures, this.#unit());
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

export type Backoff = { readonly baseMs: number; readonly maxMs: number; readonly jitterMs: number };

/**
 * Exponential delay with jitter, so that many clients do not retry at the same moment. `failures`: failures in a row,
 * from 1. `unit`: a number in [0, 1).
 */
export function backoffMs({ baseMs, maxMs, jitterMs }: Backoff, failures: number, unit: number): number {
  return Math.min(maxMs, baseMs * 2 ** (failures - 1)) + unit * jitterMs;
}
