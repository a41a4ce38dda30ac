/** The bench in small: that it measures what it says, never how long anything takes. */

import { expect, test } from "vitest";

import { benchFanOut, type FanOutScene } from "./fan-out.bench.ts";

const scene: FanOutScene = {
  participants: 60,
  moving: 20,
  canvas: { width: 20_000, height: 20_000 },
  view: { width: 1_600, height: 900 },
  ticks: 10,
  seed: 1,
};

test("every gateway gets the whole news, and the frames for few recipients are fewer than those for many", () => {
  const [one, ten] = [benchFanOut(scene, 1), benchFanOut(scene, 10)];
  expect(ten.newsBytes).toBe(one.newsBytes);
  expect(ten.frameBytes).toBeGreaterThan(0);
  expect(ten.frameBytes).toBeLessThan(one.frameBytes);
});
