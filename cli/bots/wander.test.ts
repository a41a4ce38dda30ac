import { expect, test } from "vitest";

import { Prng } from "../../shared/collections/prng.ts";
import { Wander } from "./wander.ts";

function walk(activeShare: number, ms: number): { x: number; y: number }[] {
  const wander = new Wander({ reach: 400, activeShare }, new Prng(1), 0);
  const places = [];
  for (let now = 0; now < ms; now += 100) places.push(wander.step(now));
  return places.filter((place) => place !== undefined);
}

test("[BOT1] a bot moves at the speed of a hand and stays within reach", () => {
  const places = walk(1, 60_000);
  expect(places.length).toBeGreaterThan(550);
  for (const [index, { x, y }] of places.entries()) {
    const before = places[index - 1] ?? { x, y };
    expect(Math.hypot(x, y)).toBeLessThanOrEqual(401);
    expect(Math.hypot(x - before.x, y - before.y)).toBeLessThan(800 * 0.17);
  }
});

test("[BOT1] in a large group a bot rests most of the time", () => {
  const { length } = walk(0.1, 600_000);
  expect(length / 6_000).toBeGreaterThan(0.05);
  expect(length / 6_000).toBeLessThan(0.2);
});
