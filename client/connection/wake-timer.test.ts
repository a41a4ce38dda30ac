import { expect, test } from "vitest";

import type { Millis } from "../../shared/ids.ts";
import { WakeTimer } from "./turns.ts";

test("[ALA1] a time beyond the platform's longest timer is reached with intermediate timers", () => {
  let now = 0;
  const set: { ms: number; run: () => void }[] = [];
  const clock = { now: () => now as Millis, after: (ms: number, run: () => void) => (set.push({ ms, run }), () => {}), soon: () => {} };
  const year = 365 * 86_400_000;
  let rung = 0;
  const alarm: WakeTimer = new WakeTimer(clock, () => {
    rung += 1;
    if (now < year) alarm.setFor(year as Millis);
  });
  alarm.setFor(year as Millis);
  for (let next = set.shift(); next !== undefined; next = set.shift()) {
    expect(next.ms).toBeLessThan(2 ** 31);
    now += next.ms;
    next.run();
  }
  expect([now, rung]).toEqual([year, Math.ceil(year / (2 ** 31 - 1))]);
});
