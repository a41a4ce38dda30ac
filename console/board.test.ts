import type { RankedUser } from "@coroom/client/leaderboard";
import { expect, test } from "vitest";

import { boardRemark, rowsOf, type ShownBoard } from "./board.ts";

const ranked = (...scores: number[]): RankedUser[] =>
  scores.map((score, index) => ({ rank: index + 1, user: `u${index}` as RankedUser["user"], name: `User ${index}`, score }));
const shown = (change: Partial<ShownBoard>): ShownBoard => ({
  state: "live",
  ranking: ranked(9, 3),
  own: undefined,
  members: 2,
  ...change,
});

test("[PAGE20] each row shows the person, the score and the share of the leader's score", () => {
  expect(rowsOf(ranked(12_000, 3_000), "u1")).toMatchObject([
    { rank: 1, name: "User 0", score: "12,000", share: 1, self: false },
    { rank: 2, name: "User 1", score: "3,000", share: 0.25, self: true },
  ]);
  expect(rowsOf([], "u1")).toEqual([]);
});

test("[PAGE21] the board remark explains missing or late data, and is empty when the rows show everything", () => {
  expect(boardRemark(shown({}), "hour")).toBe("");
  expect(boardRemark(shown({ ranking: [] }), "hour")).toBe("No edits this hour yet.");
  expect(boardRemark(shown({ own: { rank: 1_234, score: 2 }, members: 5_000 }), "hour")).toBe(
    "You are number 1,234 of 5,000, with a score of 2.",
  );
  expect(boardRemark(shown({ own: { rank: 2, score: 3 } }), "hour")).toBe("");
  expect(boardRemark(shown({ own: { rank: 0, score: 0 } }), "hour")).toBe("");
  expect(boardRemark(shown({ state: "waiting", ranking: [] }), "day")).toBe("Loading the ranking…");
  expect(boardRemark(shown({ state: "waiting" }), "day")).toBe("");
  expect(boardRemark(shown({ state: "behind" }), "day")).toMatch(/out of date/);
  expect(boardRemark(shown({ state: "read" }), "last-week")).toBe("");
  expect(boardRemark(shown({ state: "read", ranking: [] }), "last-week")).toBe("No edits last week.");
  expect(boardRemark(shown({ state: "read", own: { rank: 9, score: 1 }, members: 12 }), "last-week")).toMatch(/^You are number 9 of 12/);
  expect(boardRemark(shown({ state: "unread", ranking: [] }), "last-week")).toMatch(/could not be loaded/);
  expect(boardRemark(shown({ state: "unavailable", ranking: [] }), "day")).toMatch(/no leaderboard/);
});
