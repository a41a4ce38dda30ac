import fc from "fast-check";
import { expect, test } from "vitest";

import type { Millis } from "../../shared/ids.ts";
import { decideMode, FLAT_FROM_THE_START, type ModeSince, presencePerSecondOf } from "./mode.ts";

const options = { flatParticipantsMax: 50, flatAgainParticipants: 40, modeMsMin: 5_000 };
const at = (seconds: number) => (seconds * 1_000) as Millis;

/** The modes that a room passes as its size changes, each size for so many seconds. */
function modesOf(sizes: readonly number[], everySeconds: number): string[] {
  let current: ModeSince = FLAT_FROM_THE_START;
  return sizes.map((size, index) => (current = decideMode(current, size, at(index * everySeconds), options)).mode);
}

test("[MOD1] a room is flat up to its fiftieth participant and hierarchical from the next on", () => {
  expect(modesOf([2, 50, 51], 1)).toEqual(["flat", "flat", "hierarchical"]);
});

test("[MOD2] between the thresholds a room keeps its mode", () => {
  expect(modesOf([51, 41, 50, 41, 40, 45, 50], 10)).toEqual([
    "hierarchical",
    "hierarchical",
    "hierarchical",
    "hierarchical",
    "flat",
    "flat",
    "flat",
  ]);
  expect(modesOf([51, 40], 5), "exactly at the minimum time").toEqual(["hierarchical", "flat"]);
});

test("[MOD3] a room that grows and shrinks quickly switches at most once in the minimum stay", () => {
  const sizes = fc.array(fc.nat({ max: 100 }), { minLength: 2, maxLength: 60 });
  fc.assert(
    fc.property(sizes, fc.integer({ min: 1, max: 6_000 }), (sizes, everyMs) => {
      let current: ModeSince = FLAT_FROM_THE_START;
      const switches: number[] = [];
      sizes.forEach((size, index) => {
        const next = decideMode(current, size, (index * everyMs) as Millis, options);
        if (next !== current) switches.push(index * everyMs);
        current = next;
      });
      for (let index = 1; index < switches.length; index++)
        expect(switches[index]! - switches[index - 1]!).toBeGreaterThanOrEqual(options.modeMsMin);
    }),
  );
});

test("[MOD4] the more participants, the lower the update rate of each", () => {
  expect([0, 1, 1_000, 1_500, 3_000, 100_000].map(presencePerSecondOf)).toEqual([30, 30, 30, 20, 10, 1]);
});
