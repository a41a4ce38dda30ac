/**
 * Logs the origins of pages that may not connect, because a browser does not show the text of the refusal. Logs at most
 * once a minute, because any client can send any origin.
 */

import type { Millis } from "../ids.ts";
import type { Log } from "./log.ts";

const LOG_MS_MIN = 60_000;
/** Browsers send no longer origins: a host name has at most 253 characters. */
const ORIGIN_LENGTH_MAX = 300;

export class ForeignOrigins {
  readonly #log: Pick<Log, "warn">;
  #loggedAt: Millis | undefined;
  /** Refusals since the last log message. */
  #unlogged = 0;

  constructor(log: Pick<Log, "warn">) {
    this.#log = log;
  }

  receive(origin: string, now: Millis): void {
    this.#unlogged += 1;
    if (this.#loggedAt !== undefined && now - this.#loggedAt < LOG_MS_MIN) return;
    this.#log.warn(
      { origin: origin.slice(0, ORIGIN_LENGTH_MAX), times: this.#unlogged },
      "a page of an origin that is not allowed was turned away: if it is yours, add the origin to COROOM_ALLOWED_ORIGINS",
    );
    this.#loggedAt = now;
    this.#unlogged = 0;
  }
}
