import { expect, test } from "vitest";

import type { Millis } from "../../shared/ids.ts";
import { Alarm } from "./alarm.ts";

test("[ALA1] a time farther off than platforms hold a timer for is waited for all the same, and rings in vain before", () => {
  let now = 0;
  const set: { ms: number; run: () => void }[] = [];
  const clock = { now: () => now as Millis, after: (ms: number, run: () => void) => (set.push({ ms, run }), () => {}), soon: () => {} };
  const year = 365 * 86_400_000;
  let rung = 0;
  const alarm: Alarm = new Alarm(clock, () => {
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
