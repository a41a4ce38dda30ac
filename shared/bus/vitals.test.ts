import { expect, test } from "vitest";

import { type MetricReading, vitalOf } from "./vitals.ts";

const metric = "coroom_test";
const reading = (total: number, buckets: [number, number][] = []): MetricReading => ({ total, highest: 4, buckets: new Map(buckets) });

test("[VIT1] a rate is the increase between two readings, and never negative after a restart of the counter", () => {
  const rate = (now: number, before?: number) =>
    vitalOf({ metric, reads: "per-second" }, reading(now), before === undefined ? undefined : reading(before), 5_000);
  expect([rate(60, 10), rate(3, 60), rate(60)]).toEqual([10, 0, undefined]);
  expect(vitalOf({ metric, reads: "value" }, reading(7), undefined, 0)).toBe(7);
  expect(vitalOf({ metric, reads: "highest" }, reading(7), undefined, 0)).toBe(4);
});

test("[VIT2] a percentile covers the observations since the previous reading only, and is absent without any", () => {
  const before = reading(0, [
    [0.01, 1_000],
    [0.1, 1_000],
    [Number.POSITIVE_INFINITY, 1_000],
  ]);
  const after = (low: number, high: number, beyond: number) =>
    reading(0, [
      [0.01, 1_000 + low],
      [0.1, 1_000 + low + high],
      [Number.POSITIVE_INFINITY, 1_000 + low + high + beyond],
    ]);
  const p = (reads: "p50" | "p99", now: MetricReading) => vitalOf({ metric, reads }, now, before, 5_000);
  expect(p("p50", before)).toBeUndefined();
  expect(p("p50", after(100, 0, 0))).toBeCloseTo(0.005);
  expect(p("p99", after(0, 100, 0))).toBeCloseTo(0.0991);
  expect(p("p50", after(0, 100, 0))).toBeCloseTo(0.055);
  expect(p("p50", after(50, 100, 0)), "a quarter of the second bucket").toBeCloseTo(0.0325);
  expect(p("p99", after(10, 0, 90))).toBe(0.1); // Above all bounds.
  expect(vitalOf({ metric, reads: "p50" }, after(0, 0, 0), reading(0), 5_000), "the first observations").toBeCloseTo(0.005);
  expect(vitalOf({ metric, reads: "p50" }, after(1, 0, 0), before, 0)).toBeUndefined();
  expect(vitalOf({ metric, reads: "p50" }, reading(0), reading(0), 5_000)).toBeUndefined();
});
