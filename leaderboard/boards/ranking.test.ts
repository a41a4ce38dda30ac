import fc from "fast-check";
import { expect, test } from "vitest";

import { byRank, type RankEntry } from "./board.ts";
import { checksumOf, neighboursOf, percentileOf, rankAll } from "./ranking.ts";

const standings = (...scores: number[]): RankEntry[] =>
  scores.map((score, index) => ({ member: `user-${index}`, score, reachedAt: index + 1 }));

test("[RANK1] ties share a rank with a gap after it, share it without a gap, or get different ranks, as the ranking says", () => {
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
