import type { Clock } from "../time/clock.ts";
import type { Millis, UnixMillis } from "../ids.ts";

export const systemClock: Clock = {
  now: () => Math.floor(performance.now()) as Millis,
  wallNow: () => Date.now() as UnixMillis,
  after: (delayMs, run) => {
    const timer = setTimeout(run, delayMs);
    return () => clearTimeout(timer);
  },
};
