import { expect, test } from "vitest";

import { OneRound } from "./one-round.ts";

test.each([
  [0, 10],
  [1, 10],
  [10, 10],
  [25, 10],
  [1_000, 20],
])("[ROUND3] each of %i values that stay is taken once in %i turns, whatever comes and goes meanwhile", (size, turns) => {
  const map = new Map(Array.from({ length: 2 * size }, (_, key) => [key, { key }]));
  const round = new OneRound(map, turns);
  const taken: number[] = [];
  let count = 0;
  for (; !round.isDone; count++) {
    for (const { key } of round.take()) {
      taken.push(key);
      if (key % 2 === 1) map.delete(key); // As a room that ends once it is checked.
    }
    map.delete(2 * count + 1);
    map.set(10_000 + count, { key: -1 });
  }
  expect(count).toBeLessThanOrEqual(turns);
  expect(new Set(taken.filter((key) => key % 2 === 0)).size).toBe(size);
  expect(new Set(taken).size).toBe(taken.length);
  expect(taken).not.toContain(-1);
});
