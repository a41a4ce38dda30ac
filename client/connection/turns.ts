/**
 * A timer for the earliest requested time, and a queue that runs inputs one after another. A later time needs no change
 * of the timer: it fires once without effect.
 */

import type { Millis } from "../../shared/ids.ts";
import type { ClientClock } from "../ports.ts";

/** Platforms fire a timer with a longer delay at once. The timer then fires without effect and is set again. */
const DELAY_MS_MAX = 2 ** 31 - 1;

export class WakeTimer {
  readonly #clock: ClientClock;
  readonly #ring: () => void;
  #set: { readonly at: Millis; readonly cancel: () => void } | undefined;

  constructor(clock: ClientClock, ring: () => void) {
    this.#clock = clock;
    this.#ring = ring;
  }

  /** Undefined: cancels the timer, so that it does not keep the process alive. */
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

/**
 * Runs one input at a time, including all its effects. An input that a listener causes in the meantime waits, so it
 * cannot overtake effects that are not carried out yet.
 */
export class Turns<Input> {
  readonly #take: (input: Input) => void;
  readonly #waiting: Input[] = [];
  #isTaking = false;

  constructor(take: (input: Input) => void) {
    this.#take = take;
  }

  add(input: Input): void {
    this.#waiting.push(input);
    if (this.#isTaking) return;
    this.#isTaking = true;
    try {
      for (let next = this.#waiting.shift(); next !== undefined; next = this.#waiting.shift()) this.#take(next);
    } finally {
      this.#isTaking = false;
    }
  }
}
