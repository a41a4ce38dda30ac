import { expect, test } from "vitest";

import { eachOf } from "./turns.ts";

test("[TURN1] each entry has its turn, so many at a time", async () => {
  let [underWay, most, done] = [0, 0, 0];
  await eachOf(
    Array.from({ length: 20 }, (_, index) => index),
    3,
    async () => {
      most = Math.max(most, ++underWay);
      await new Promise(setImmediate);
      underWay -= 1;
      done += 1;
    },
  );
  expect([most, done]).toEqual([3, 20]);
  await eachOf([], 3, () => Promise.reject(new Error("never asked")));
});

test("[TURN2] after a failure nothing new begins, and it is thrown once what was under way has ended", async () => {
  const begun: number[] = [];
  let ended = false;
  const work = eachOf([1, 2, 3, 4], 2, async (entry) => {
    begun.push(entry);
    if (entry === 1) throw new Error("the first");
    await new Promise(setImmediate);
    ended = true;
  });
  await expect(work).rejects.toThrow("the first");
  expect([begun, ended]).toEqual([[1, 2], true]);
});
