/** The bench in small: that it measures what it says, never how long anything takes. */

import { expect, test } from "vitest";

import { benchInterest, type InterestScene } from "./interest.bench.ts";

const scene: InterestScene = {
  participants: 60,
  moving: 20,
  spectators: 20,
  canvas: { width: 20_000, height: 20_000 },
  view: { width: 1_600, height: 900 },
  ticks: 20,
  seed: 1,
};

test("people spread over a canvas are sent far less than everything, the same in each run", () => {
  const [figures, again] = [benchInterest(scene), benchInterest(scene)];
  expect(again.hash).toBe(figures.hash);
  expect(figures.toldNear).toBeLessThan(figures.toldAll / 2);
});

test("people who all look at one place are sent what moves there, at two paces", () => {
  const together = benchInterest({ ...scene, canvas: { width: 1_000, height: 500 }, spectators: 0 });
  expect(together.toldNear).toBeGreaterThan(together.toldAll / 2);
  expect(benchInterest({ ...scene, canvas: { width: 1_000, height: 500 }, spectators: 40 }).toldNear).toBeLessThan(together.toldNear);
});
