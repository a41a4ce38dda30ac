import { expect, test } from "vitest";

import type { Millis } from "../ids.ts";
import { TokenBucket } from "./token-bucket.ts";

const at = (ms: number): Millis => ms as Millis;

function takeAll(take: () => boolean): number {
  let taken = 0;
  while (taken < 1_000 && take()) taken += 1;
  return taken;
}

test("[RATE1] a bucket grants its burst at once and then its rate", () => {
  const bucket = new TokenBucket({ burst: 30, perSecond: 10 }, at(0));
  expect(takeAll(() => bucket.take(at(0)))).toBe(30);
  expect(takeAll(() => bucket.take(at(1_000)))).toBe(10);
  expect(takeAll(() => bucket.take(at(1e9)))).toBe(30);
});

test("[RATE2] a bucket with a negative balance grants nothing until the balance is positive again", () => {
  const bucket = new TokenBucket({ burst: 2, perSecond: 1 }, at(0));
  bucket.spend(at(0), 2);
  expect(bucket.take(at(0), 0)).toBe(true);
  bucket.spend(at(0), 5);
  expect([bucket.take(at(4_500), 0), bucket.take(at(5_000), 0), bucket.take(at(5_000)), bucket.take(at(6_000))]).toEqual([
    false,
    true,
    false,
    true,
  ]);
});
