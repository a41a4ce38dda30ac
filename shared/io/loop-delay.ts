/** How late this process's event loop comes to what is due: the first sign of too much work. */

import { monitorEventLoopDelay } from "node:perf_hooks";

/** A finer look would wake an idle process more often than its work does. */
const RESOLUTION_MS = 50;
const NANOS_PER_MS = 1e6;
/** Of the times that the loop was looked at since the last measurement. One long turn is not pressure, several are. */
const PERCENTILE = 90;

/** `measure`: since it was last asked, in milliseconds. */
export function loopDelay(): { measure(): number; stop(): void } {
  const delays = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  delays.enable();
  return {
    measure: () => {
      const delayMs = delays.count === 0 ? 0 : Math.max(0, delays.percentile(PERCENTILE) / NANOS_PER_MS - RESOLUTION_MS);
      delays.reset();
      return delayMs;
    },
    stop: () => delays.disable(),
  };
}
