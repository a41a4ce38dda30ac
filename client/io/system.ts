/** Time and chance, as browsers and Node have them. */

import type { ClientKey } from "../../shared/ids.ts";
import type { Chance, Clock } from "../ports.ts";
import { SteadyTime } from "../connection/steady-time.ts";

export const systemClock: Clock = clockBy(new SteadyTime());

function clockBy(time: SteadyTime): Clock {
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

export const systemChance: Chance = {
  unit: () => Math.random(),
  clientKey: () =>
    Array.from(crypto.getRandomValues(new Uint8Array(KEY_LENGTH)), (byte) => KEY_LETTERS[byte % KEY_LETTERS.length]).join("") as ClientKey,
};

/** Throws where whoever watches for uncaught errors sees it. */
export function reportError(error: unknown): void {
  queueMicrotask(() => {
    throw error;
  });
}
