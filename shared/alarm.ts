/**
 * Rings once, at the time that it was last set to, and always at the end of a turn: what came together is dealt with
 * together, and all rooms that are due together say on NATS what they have to say in one write.
 */

import type { Clock } from "./clock.ts";
import type { Millis } from "./ids.ts";

export type AlarmDeps = {
  readonly clock: Clock;
  /** Runs once whatever is at hand in this turn of the event loop is done, in a row with all else that waits for that. */
  readonly endOfTurn: (run: () => void) => void;
};

type Timer = { readonly at: Millis; callOff: () => void };

const NEVER = Number.POSITIVE_INFINITY as Millis;

export class Alarm {
  readonly #ring: () => void;
  readonly #deps: AlarmDeps;
  #at = NEVER;
  /** Not after `#at`. */
  #timer: Timer | undefined;

  constructor(ring: () => void, deps: AlarmDeps) {
    this.#ring = ring;
    this.#deps = deps;
  }

  /** Infinity: not at all. A timer that runs for an earlier time is left to run out: what is due is put off far more often than it comes. */
  setFor(at: Millis): void {
    this.#at = at;
    if (at === NEVER || (this.#timer !== undefined && this.#timer.at <= at)) return;
    this.#timer?.callOff();
    const { clock, endOfTurn } = this.#deps;
    const timer: Timer = { at, callOff: () => {} };
    this.#timer = timer;
    const end = (): void => endOfTurn(() => this.#runOut(timer));
    const waitMs = at - clock.now();
    if (waitMs > 0) timer.callOff = clock.after(waitMs, end);
    else end();
  }

  callOff(): void {
    this.#timer?.callOff();
    this.#timer = undefined;
    this.#at = NEVER;
  }

  #runOut(timer: Timer): void {
    if (this.#timer !== timer) return;
    this.#timer = undefined;
    if (this.#at > timer.at && this.#at > this.#deps.clock.now()) return this.setFor(this.#at);
    this.#at = NEVER;
    this.#ring();
  }
}
