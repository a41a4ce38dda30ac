import { expect, test } from "vitest";

import type { UnixMillis, UserId } from "../shared/ids.ts";
import { MinuteCap, worthOf } from "./scoring.ts";

const OPTIONS = { boardEditPointsSmall: 1, boardEditPointsMedium: 3, boardEditPointsLarge: 5, boardEditMediumBytesMin: 100, boardEditLargeBytesMin: 1_000, boardPointsPerMinuteMax: 10 };
const [ann, bob] = ["ann", "bob"] as UserId[] as [UserId, UserId];
const NO_USE = { minute: 0, points: new Map<UserId, number>() };

test.each([
  [0, 1],
  [99, 1],
  [100, 3],
  [999, 3],
  [1_000, 5],
])("[SCORE1] an edit of %i bytes is worth %i", (bytes, points) => {
  expect(worthOf({ kind: "edit", user: ann, bytes }, OPTIONS)).toBe(points);
});

test("[SCORE2] in one minute a user gets no more than the cap, and the last points of it in part", () => {
  const cap = new MinuteCap(NO_USE, OPTIONS);
  expect([4, 4, 4, 4].map((points) => cap.grant(ann, points).granted)).toEqual([4, 4, 2, 0]);
  expect(cap.grant(bob, 4)).toEqual({ granted: 4, inMinute: 4 });
});

test("[SCORE3] the next minute begins anew for everyone", () => {
  const cap = new MinuteCap(NO_USE, OPTIONS);
  cap.grant(ann, 10);
  expect(cap.advance(59_999 as UnixMillis)).toBe(false);
  expect(cap.grant(ann, 1).granted).toBe(0);
  expect(cap.advance(60_000 as UnixMillis)).toBe(true);
  expect(cap.minute).toBe(1);
  expect(cap.grant(ann, 1).granted).toBe(1);
});

test("[SCORE4] whoever goes on counting from what was stored grants the same", () => {
  const cap = new MinuteCap({ minute: 7, points: new Map([[ann, 8]]) }, OPTIONS);
  cap.advance((7 * 60_000) as UnixMillis);
  expect(cap.grant(ann, 5).granted).toBe(2);
});

test("[SCORE5] a cap lowered within the minute takes nothing back", () => {
  const cap = new MinuteCap({ minute: 0, points: new Map([[ann, 30]]) }, OPTIONS);
  expect(cap.grant(ann, 5)).toEqual({ granted: 0, inMinute: 30 });
});
