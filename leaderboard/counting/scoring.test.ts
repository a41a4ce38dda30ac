import { expect, test } from "vitest";
import * as Y from "yjs";

import type { UnixMillis, UserId } from "../../shared/ids.ts";
import { SCORING } from "../testing/records.ts";
import { capOf, pointsOfAction, pointsOfEdit } from "./scoring.ts";

const OPTIONS = {
  ...SCORING,
  boardEditPointsSmall: 1,
  boardEditPointsMedium: 3,
  boardEditPointsLarge: 5,
  boardEditMediumBytesMin: 100,
  boardEditLargeBytesMin: 1_000,
  boardPointsPerMinuteMax: 10,
};
const [ann, bob] = ["ann", "bob"] as UserId[] as [UserId, UserId];
const UNUSED = { period: 0, points: new Map<UserId, number>() };

test.each([
  [0, 1],
  [99, 1],
  [100, 3],
  [999, 3],
  [1_000, 5],
])("[SCORE1] an edit of %i bytes is worth %i", (bytes, points) => {
  expect(pointsOfEdit(new Uint8Array(bytes).fill(1), OPTIONS)).toBe(points);
});

test("[SCORE8] an edit whose Yjs update is empty is worth nothing", () => {
  expect(pointsOfEdit(Y.encodeStateAsUpdate(new Y.Doc()), OPTIONS)).toBe(0);
  expect(pointsOfEdit(Uint8Array.of(0, 1), OPTIONS)).toBe(1);
});

test("[SCORE2] a user gets no more points in a minute than the cap, and the last ones in part", () => {
  const cap = capOf("edits", UNUSED, OPTIONS);
  expect([4, 4, 4, 4].map((points) => cap.grant(ann, points).granted)).toEqual([4, 4, 2, 0]);
  expect(cap.grant(bob, 4)).toEqual({ granted: 4, used: 4 });
});

test("[SCORE3] the next minute begins at zero for everyone", () => {
  const cap = capOf("edits", UNUSED, OPTIONS);
  cap.grant(ann, 10);
  expect(cap.advance(59_999 as UnixMillis)).toBe(false);
  expect(cap.grant(ann, 1).granted).toBe(0);
  expect(cap.advance(60_000 as UnixMillis)).toBe(true);
  expect(cap.period).toBe(1);
  expect(cap.grant(ann, 1).granted).toBe(1);
});

test("[SCORE4] a cap that is restored from storage grants the same points", () => {
  const cap = capOf("edits", { period: 7, points: new Map([[ann, 8]]) }, OPTIONS);
  cap.advance((7 * 60_000) as UnixMillis);
  expect(cap.grant(ann, 5).granted).toBe(2);
});

test("[SCORE5] a cap that is lowered within the minute takes no points back", () => {
  const cap = capOf("edits", { period: 0, points: new Map([[ann, 30]]) }, OPTIONS);
  expect(cap.grant(ann, 5)).toEqual({ granted: 0, used: 30 });
});

test("[SCORE6] a backend's activity is worth what its kind is set to, on the boards of everyone and of the role", () => {
  expect(pointsOfAction({ user: ann, kind: "comment", times: 2 }, OPTIONS)).toEqual({ points: 6, roles: ["everyone", "commenters"] });
  expect(pointsOfAction({ user: ann, kind: "review", times: 1 }, OPTIONS)).toEqual({ points: 4, roles: ["everyone"] });
  expect(pointsOfAction({ user: ann, kind: "unheard-of", times: 9 }, OPTIONS)).toEqual({ points: 0, roles: [] });
});

test("[SCORE7] repeated presence reports of one period count once", () => {
  const cap = capOf("present", UNUSED, OPTIONS);
  expect([1, 2].map(() => cap.grant(ann, OPTIONS.boardSessionPoints).granted)).toEqual([2, 0]);
  cap.advance(OPTIONS.boardSessionMs as UnixMillis);
  expect(cap.grant(ann, OPTIONS.boardSessionPoints).granted).toBe(2);
});
