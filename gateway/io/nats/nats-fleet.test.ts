import { expect, test } from "vitest";

import { FakeClock } from "../../../shared/testing/fake-clock.ts";
import { cachedFor } from "./nats-fleet.ts";

test("[ASL1] requests within the time share one answer; after it, and after a failure, a new request is made", async () => {
  const clock = new FakeClock(0);
  let asked = 0;
  let fails = false;
  const ask = cachedFor(() => (fails ? Promise.reject(new Error("NATS is away")) : Promise.resolve(++asked)), 1_000, clock);
  expect(await Promise.all([ask(), ask()])).toEqual([1, 1]);
  await clock.advance(999);
  expect(await ask()).toBe(1);
  await clock.advance(1);
  fails = true;
  await expect(ask()).rejects.toThrow("NATS is away");
  fails = false;
  expect(await ask()).toBe(2);
});
