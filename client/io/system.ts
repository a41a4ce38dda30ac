/** Time and randomness in browsers and Node. */

import type { ClientKey, Millis } from "../../shared/ids.ts";
import type { ClientRandom, ClientClock } from "../ports.ts";

/**
 * The system's time, made monotonic. If the clock were set back by a day, every wait here would last a day longer.
 * Jumps forward are passed on, because after a laptop's sleep that time has really passed.
 */
export class SteadyTime {
  #last = Number.NEGATIVE_INFINITY;
  #aheadMs = 0;

  /** `system`: the present reading of the system clock. */
  at(system: number): Millis {
    this.#aheadMs = Math.max(this.#aheadMs, this.#last - system);
    this.#last = system + this.#aheadMs;
    return this.#last as Millis;
  }
}
export const systemClock: ClientClock = clockBy(new SteadyTime());

function clockBy(time: SteadyTime): ClientClock {
  return {
    now: () => time.at(Date.now()),
    after: (delayMs, run) => {
      const timer = setTimeout(run, delayMs);
      return () => clearTimeout(timer);
    },
    soon: (run) => queueMicrotask(run),
  };
}

const KEY_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-";
const KEY_LENGTH = 22;

export const systemChance: ClientRandom = {
  unit: () => Math.random(),
  clientKey: () =>
    Array.from(crypto.getRandomValues(new Uint8Array(KEY_LENGTH)), (byte) => KEY_LETTERS[byte % KEY_LETTERS.length]).join("") as ClientKey,
};

/** Throws the error where handlers of uncaught errors receive it. */
export function reportError(error: unknown): void {
  queueMicrotask(() => {
    throw error;
  });
}
