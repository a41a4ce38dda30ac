import { expect, test } from "vitest";

import { paced } from "./paced.ts";

test("[PCD1] the number of calls follows from the rate, in order, and none is earlier than due", async () => {
  const [turns, started]: [number[], number] = [[], performance.now()];
  await paced(500, 100, (turn, lateMs) => {
    turns.push(turn);
    expect(performance.now() - started).toBeGreaterThanOrEqual(turn * 2);
    expect(lateMs).toBeGreaterThanOrEqual(0);
  });
  expect(turns).toEqual(Array.from({ length: 50 }, (_, turn) => turn));
});

test("[PCD2] a loop that is always late lets other work run, and makes all its calls", async () => {
  let [calls, callsBefore]: [number, number | undefined] = [0, undefined];
  setImmediate(() => (callsBefore = calls));
  await paced(10_000, 10, () => {
    calls += 1;
    for (const until = performance.now() + 1; performance.now() < until;); // Ten times as long as the interval.
  });
  expect(calls).toBe(100);
  expect(callsBefore).toBeLessThan(100);
});

test("[PCD3] a stopped loop makes no further call", async () => {
  let calls = 0;
  await paced(
    1_000,
    60_000,
    () => void (calls += 1),
    () => calls === 3,
  );
  expect(calls).toBe(3);
});
