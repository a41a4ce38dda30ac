/** One timer that rings at the earliest time asked for. Setting it later costs nothing: it rings in vain once. */

import type { Millis } from "../../shared/ids.ts";
import type { Clock } from "../ports.ts";

/** What platforms hold a timer for: a longer one rings at once. It rings in vain then, and is set again. */
const DELAY_MS_MAX = 2 ** 31 - 1;

export class Alarm {
  readonly #clock: Clock;
  readonly #ring: () => void;
  #set: { readonly at: Millis; readonly cancel: () => void } | undefined;

  constructor(clock: Clock, ring: () => void) {
    this.#clock = clock;
    this.#ring = ring;
  }

  /** Undefined: not at all, so that nothing keeps a process alive. */
  setFor(at: Millis | undefined): void {
    if (at !== undefined && this.#set !== undefined && this.#set.at <= at) return;
    this.#set?.cancel();
    this.#set = undefined;
    if (at === undefined) return;
    const cancel = this.#clock.after(Math.min(DELAY_MS_MAX, Math.max(0, at - this.#clock.now())), () => {
      this.#set = undefined;
      this.#ring();
    });
    this.#set = { at, cancel };
  }
}

export function earlier(one: Millis | undefined, other: Millis | undefined): Millis | undefined {
  return one === undefined || other === undefined ? (one ?? other) : (Math.min(one, other) as Millis);
}
