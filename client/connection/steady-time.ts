/**
 * The system's time, but that it never goes back. Everything here waits until some time: had the clock been set back
 * by a day, it would wait for a day. A jump ahead is passed on: after a laptop's sleep that much time has really gone.
 */

import type { Millis } from "../../shared/ids.ts";

export class SteadyTime {
  #last = Number.NEGATIVE_INFINITY;
  #aheadMs = 0;

  /** `system`: what the system's clock shows now. */
  at(system: number): Millis {
    this.#aheadMs = Math.max(this.#aheadMs, this.#last - system);
    this.#last = system + this.#aheadMs;
    return this.#last as Millis;
  }
}
