/**
 * Pages whose origin may not connect. No browser shows a page, or whoever develops it, the sentence that the refusal
 * carries, so the log has it: at most once a minute, for whoever likes may send any origin.
 */

import type { Millis } from "../../shared/ids.ts";
import type { Log } from "../../shared/log.ts";

const TELL_MS_MIN = 60_000;
/** A browser's are shorter: a host's name has 253 characters at most. */
const ORIGIN_LENGTH_MAX = 300;

export class ForeignOrigins {
  readonly #log: Log;
  #toldAt: Millis | undefined;
  /** Since the log had one. */
  #untold = 0;

  constructor(log: Log) {
    this.#log = log;
  }

  receive(origin: string, now: Millis): void {
    this.#untold += 1;
    if (this.#toldAt !== undefined && now - this.#toldAt < TELL_MS_MIN) return;
    this.#log.warn(
      { origin: origin.slice(0, ORIGIN_LENGTH_MAX), times: this.#untold },
      "a page of an origin that is not allowed was turned away: if it is yours, add the origin to COROOM_ALLOWED_ORIGINS",
    );
    this.#toldAt = now;
    this.#untold = 0;
  }
}
