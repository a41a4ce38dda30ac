import { expect, test } from "vitest";

import { Latencies } from "./latencies.ts";

test("a percentile is at most one bucket above the true value", () => {
  const latencies = new Latencies();
  for (let ms = 1; ms <= 1000; ms++) latencies.record(ms);

  for (const percent of [1, 50, 90, 99, 100]) {
    expect(latencies.percentile(percent)).toBeGreaterThanOrEqual(percent * 10);
    expect(latencies.percentile(percent)).toBeLessThan(percent * 10 * 1.02);
  }
});

test("the latencies of two processes add up", () => {
  const [here, there] = [new Latencies(), new Latencies()];
  for (let count = 0; count < 99; count++) here.record(1);
  there.record(50);
  here.add(Latencies.fromPairs(there.toPairs()));

  expect(here.total).toBe(100);
  expect(here.percentile(99)).toBeLessThan(1.02);
  expect(here.percentile(100)).toBeGreaterThanOrEqual(50);
});

test("an empty histogram has no percentile", () => {
  expect(new Latencies().percentile(50)).toBeNaN();
});
