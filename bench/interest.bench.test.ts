/** Few participants: the experiment counts correctly. Times are not checked. */

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

test("participants spread over a canvas receive less than half of all presence, the same in each run", () => {
  const [figures, again] = [benchInterest(scene), benchInterest(scene)];
  expect(again.hash).toBe(figures.hash);
  expect(figures.bytesByView).toBeLessThan(figures.bytesToAll / 2);
});

test("participants who view the same place receive the moves in it, spectators at a lower rate", () => {
  const together = benchInterest({ ...scene, canvas: { width: 1_000, height: 500 }, spectators: 0 });
  expect(together.bytesByView).toBeGreaterThan(together.bytesToAll / 2);
  expect(benchInterest({ ...scene, canvas: { width: 1_000, height: 500 }, spectators: 40 }).bytesByView).toBeLessThan(together.bytesByView);
});
