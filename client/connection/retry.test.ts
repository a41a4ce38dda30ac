import { expect, test } from "vitest";
import { backoffMs } from "./retry.ts";

test("[BAC1] the wait doubles up to its limit, with evenly spread jitter on top", () => {
  const backoff = { baseMs: 500, maxMs: 15_000, jitterMs: 5_000 };
  expect([1, 2, 3, 5, 6, 7, 100].map((failures) => backoffMs(backoff, failures, 0))).toEqual([
    500, 1_000, 2_000, 8_000, 15_000, 15_000, 15_000,
  ]);
  expect(backoffMs(backoff, 1, 0.5)).toBe(3_000);
});
