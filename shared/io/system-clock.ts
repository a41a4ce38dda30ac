import type { Clock } from "../clock.ts";
import type { Millis } from "../ids.ts";

export const systemClock: Clock = {
  now: () => Date.now() as Millis,
  after: (delayMs, run) => {
    const timer = setTimeout(run, delayMs);
    return () => clearTimeout(timer);
  },
};
