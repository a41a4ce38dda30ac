import { expect, test } from "vitest";

import { limitConcurrency } from "./concurrency-limit.ts";

test("[TRN1] a limited number of tasks runs at a time, and each task runs even if earlier ones fail", async () => {
  let [underWay, most] = [0, 0];
  const run = limitConcurrency(2, async (number: number) => {
    most = Math.max(most, ++underWay);
    await new Promise(setImmediate);
    underWay -= 1;
    if (number === 3) throw new Error("refused");
    return number;
  });
  const outcomes = await Promise.allSettled([1, 2, 3, 4, 5].map((number) => run(number)));
  expect(outcomes.map((outcome) => (outcome.status === "fulfilled" ? outcome.value : "failed"))).toEqual([1, 2, "failed", 4, 5]);
  expect([most, underWay]).toEqual([2, 0]);
  expect(await run(6)).toBe(6);
});
