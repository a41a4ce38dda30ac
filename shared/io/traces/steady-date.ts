/** The date, finely enough to put hops in order: `Date.now` alone shows those of one millisecond in any. */

import type { UnixMicros } from "./span.ts";

/** The steady clock drifts from the date, which may also be set. */
const DRIFT_MS_MAX = 5;

export function steadyDate(): () => UnixMicros {
  let began = performance.timeOrigin;
  return () => {
    const [steady, date] = [performance.now(), Date.now()];
    if (Math.abs(date - began - steady) > DRIFT_MS_MAX) began = date - steady;
    return Math.round((began + steady) * 1_000);
  };
}
