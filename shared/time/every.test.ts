import { expect, test } from "vitest";

import { FakeClock } from "../testing/fake-clock.ts";
import { every } from "./every.ts";

test("[EVRY1] a function runs after each interval, until it is stopped, also from within a run", () => {
  const clock = new FakeClock();
  let runs = 0;
  const stop = every(clock, 100, () => {
    if (++runs === 3) stop();
  });
  clock.turn(99);
  expect(runs).toBe(0);
  clock.turn(101);
  expect(runs).toBe(2);
  clock.turn(1_000);
  expect(runs).toBe(3);
});
