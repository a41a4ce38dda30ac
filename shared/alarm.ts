/**
 * Rings once, at the earliest time that it was set to since it last rang. What is due at once waits for the end of the
 * turn, so that all that came together is dealt with together.
 */

import type { Clock } from "./clock.ts";
import type { Millis } from "./ids.ts";

export type AlarmDeps = {
  readonly clock: Clock;
  /** Runs once whatever is at hand in this turn of the event loop is done. */
  readonly endOfTurn: (run: () => void) => void;
};

export class Alarm {
  readonly #ring: () => void;
  readonly #deps: AlarmDeps;
  #set: { readonly at: Millis; callOff: () => void } | undefined;

  constructor(ring: () => void, deps: AlarmDeps) {
    this.#ring = ring;
    this.#deps = deps;
  }

  /** To ring at that time, or earlier if it is set so already. Infinity: never. */
  setFor(at: Millis): void {
    if (at === Number.POSITIVE_INFINITY || (this.#set !== undefined && this.#set.at <= at)) return;
    this.callOff();
    const { clock, endOfTurn } = this.#deps;
    const set = { at, callOff: () => {} };
    this.#set = set;
    const ring = (): void => {
      if (this.#set !== set) return;
      this.#set = undefined;
      this.#ring();
    };
    const waitMs = at - clock.now();
    if (waitMs > 0) set.callOff = clock.after(waitMs, ring);
    else endOfTurn(ring);
  }

  callOff(): void {
    this.#set?.callOff();
    this.#set = undefined;
  }
}
