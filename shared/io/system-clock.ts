/** The clock of this machine. A wait of more than 24 days ends early, after 24 days. */

import type { Clock } from "../time/clock.ts";
import type { Millis, UnixMillis } from "../ids.ts";

/** Node runs a longer timer at once, so a job with a longer interval would never rest. */
const TIMER_MS_MAX = 2 ** 31 - 1;

export const systemClock: Clock = {
  now: () => Math.floor(performance.now()) as Millis,
  wallNow: () => Date.now() as UnixMillis,
  after: (delayMs, run) => {
    const timer = setTimeout(run, Math.min(delayMs, TIMER_MS_MAX));
    return () => clearTimeout(timer);
  },
};
