import { expect, test } from "vitest";

import { MapTurns } from "./map-turns.ts";

test("[ROUND1] a round of turns takes each value once, and no turn takes more than its share", () => {
  const values = new Map(Array.from({ length: 1_005 }, (_, number) => [`key-${number}`, number]));
  const turns = new MapTurns(values, 10);
  for (let round = 0; round < 3; round++) {
    const taken = Array.from({ length: 10 }, () => turns.take());
    expect(taken.map(({ length }) => length).every((length) => length === 100 || length === 101)).toBe(true);
    expect(taken.flat().toSorted((a, b) => a - b)).toEqual([...values.values()]);
  }
});

test("[ROUND2] a single value is taken once in a round, and values may come and go between turns", () => {
  const values = new Map<string, number>();
  const turns = new MapTurns(values, 4);
  const round = () => Array.from({ length: 4 }, () => turns.take()).flat();
  expect(round()).toEqual([]);
  values.set("a", 1);
  expect(round()).toEqual([1]);
  values.set("b", 2);
  expect(round().toSorted()).toEqual([1, 2]);
  values.clear();
  expect(round()).toEqual([]);
});
