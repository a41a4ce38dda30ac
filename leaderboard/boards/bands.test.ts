import fc from "fast-check";
import { expect, test } from "vitest";

import { bandFloor, bandOf, ranksWithin } from "./bands.ts";

const score = fc.oneof(
  fc.integer({ min: 1, max: 10_000 }),
  fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER }),
  fc.integer({ min: 0, max: 53 }).map((power) => 2 ** power),
  fc.integer({ min: 1, max: 53 }).map((power) => 2 ** power - 1),
);

test("[BAND1] every score lies between the floor of its band and the floor of the next one", () => {
  fc.assert(
    fc.property(score, (points) => {
      expect(bandFloor(bandOf(points))).toBeLessThanOrEqual(points);
      expect(bandFloor(bandOf(points) + 1)).toBeGreaterThan(points);
    }),
  );
});

test("[BAND2] every member's true rank is within the ranks that the band allows", () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 1, max: 500 }), { minLength: 1, maxLength: 60 }), (scores) => {
      const counts = new Map<number, number>();
      for (const points of scores) counts.set(bandOf(points), (counts.get(bandOf(points)) ?? 0) + 1);
      const sorted = scores.toSorted((a, b) => b - a);
      for (const [index, points] of sorted.entries()) {
        const { first, last } = ranksWithin(counts, points);
        expect(first <= index + 1 && index + 1 <= last).toBe(true);
      }
    }),
  );
});
