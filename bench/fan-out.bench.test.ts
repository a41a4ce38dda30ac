/** Few participants: the experiment counts correctly. Times are not checked. */

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

test("every gateway receives all deltas, and frames for few recipients are smaller than frames for many", () => {
  const [one, ten] = [benchFanOut(scene, 1), benchFanOut(scene, 10)];
  expect(ten.deltaBytes).toBe(one.deltaBytes);
  expect(ten.frameBytes).toBeGreaterThan(0);
  expect(ten.frameBytes).toBeLessThan(one.frameBytes);
});
