import fc from "fast-check";
import { expect, test } from "vitest";

import type { Epoch, Seq, UnixMillis } from "../../shared/ids.ts";
import {
  bandFloor,
  bandOf,
  byRank,
  checksumOf,
  countsEdit,
  neighboursOf,
  percentileOf,
  rankAll,
  type RankEntry,
  ranksWithin,
} from "./board.ts";

const standings = (...scores: number[]): RankEntry[] =>
  scores.map((score, index) => ({ member: `user-${index}`, score, reachedAt: index + 1 }));

test("[RANK1] competition ranks leave a gap after a tie, dense ranks leave none, and unique ranks differ", () => {
  const tied = standings(9, 9, 7, 7, 7, 1);
  const ranks = (how: "unique" | "competition" | "dense") => rankAll(tied, how).map(({ rank }) => rank);
  expect(ranks("unique")).toEqual([1, 2, 3, 4, 5, 6]);
  expect(ranks("competition")).toEqual([1, 1, 3, 3, 3, 6]);
  expect(ranks("dense")).toEqual([1, 1, 2, 2, 2, 3]);
});

test("[RANK2] a competition rank is one more than the members with more points, a dense rank one more than the higher scores", () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 1, max: 9 }), { maxLength: 40 }), (scores) => {
      const sorted = standings(...scores).sort(byRank);
      for (const { rank, score } of rankAll(sorted, "competition")) expect(rank).toBe(1 + scores.filter((other) => other > score).length);
      for (const { rank, score } of rankAll(sorted, "dense")) expect(rank).toBe(1 + new Set(scores.filter((other) => other > score)).size);
    }),
  );
});

test("[RANK3] neighbours are the next members above and below, and fewer at the ends", () => {
  const ranked = rankAll(standings(9, 8, 7, 6, 5), "unique");
  expect(neighboursOf(ranked, "user-2", 1)?.neighbours.map(({ user }) => user)).toEqual(["user-1", "user-2", "user-3"]);
  expect(neighboursOf(ranked, "user-0", 2)?.neighbours.map(({ user }) => user)).toEqual(["user-0", "user-1", "user-2"]);
  expect(neighboursOf(ranked, "user-9", 2)).toBeUndefined();
});

test.each([
  [1, 1, 100],
  [1, 101, 100],
  [101, 101, 0],
  [51, 101, 50],
  [2, 3, 50],
])("[RANK4] place %i of %i has %i percent behind", (place, members, percent) => {
  expect(percentileOf(place, members)).toBe(percent);
});

test("[RANK5] the checksum changes when two entries change places, or when names are split differently", () => {
  const [a, b] = [
    { user: "a", score: 1 },
    { user: "b", score: 1 },
  ];
  expect(checksumOf([a, b])).toBe(checksumOf([{ ...a }, { ...b }]));
  expect(checksumOf([a, b])).not.toBe(checksumOf([b, a]));
  expect(checksumOf([{ user: "a1", score: 1 }])).not.toBe(checksumOf([{ user: "a", score: 11 }]));
});

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

test("[MARK1] an edit of a later epoch or with a later time is not counted yet, although its seq was given before", () => {
  const mark = { seq: 10 as Seq, activity: 0, epoch: 2 as Epoch, time: 100 as UnixMillis };
  const counts = (epoch: number, seq: number, time: number): boolean =>
    countsEdit(mark, { epoch: epoch as Epoch, seq: seq as Seq, time: time as UnixMillis });
  expect([counts(2, 10, 100), counts(1, 5, 90), counts(2, 11, 100)]).toEqual([true, true, false]);
  expect([counts(3, 5, 100), counts(1, 5, 101)]).toEqual([false, false]);
});
