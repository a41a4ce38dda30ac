/** A question that ranks a given set of users among themselves, compared with a simple model. */

import fc from "fast-check";
import { expect, test } from "vitest";

import { encodeJson } from "../../shared/bus/json-messages.ts";
import type { Millis, UnixMillis } from "../../shared/ids.ts";
import { RANKED_USERS_BYTES_MAX, RANKED_USERS_MAX } from "../../shared/settings/board-settings.ts";
import type { Clock } from "../../shared/time/clock.ts";
import { byRank, NOTHING_APPLIED, RANKINGS, type RankEntry } from "../boards/board.ts";
import { WINDOW_KINDS } from "../boards/windows.ts";
import { parseQuestion } from "./questions.ts";
import { BoardReader } from "./reads-host.ts";

const NOON = Date.UTC(2026, 6, 2, 12) as UnixMillis;
const OPTIONS = {
  logPartitions: 1,
  boardRoles: ["everyone" as const],
  boardWindows: WINDOW_KINDS,
  boardReadMembersMax: 20,
  boardBehindMsMax: 5_000,
  boardPushMs: 500,
};

type World = { readonly standings: readonly RankEntry[]; readonly hotMembers: number; readonly isArchived: boolean };

function readerOf({ standings, hotMembers, isArchived }: World): BoardReader {
  const clock: Clock = { now: () => 0 as Millis, wallNow: () => NOON, after: () => () => {} };
  const none = () => Promise.reject(new Error("only the named users are read"));
  const inOrder = [...standings].sort(byRank);
  const here = isArchived ? [] : inOrder;
  const state = { applied: NOTHING_APPLIED, hot: here.slice(0, hotMembers), members: here.length, points: 0, bands: new Map() };
  const archived = {
    applied: NOTHING_APPLIED,
    boards: [{ role: "everyone" as const, members: inOrder.length, points: 0, standings: inOrder }],
  };
  return new BoardReader(
    {
      reads: {
        read: () => Promise.resolve({ ...state, isOrdered: false }),
        members: (_owner, _role, _window, users) => Promise.resolve(here.filter(({ member }) => users.includes(member))),
        places: none,
        all: () => {
          throw new Error("the board is not read completely");
        },
      },
      archive: { write: none, remove: none, read: () => Promise.resolve(archived) },
      progress: { read: () => Promise.resolve({ service: "s", through: NOON, totalsSent: NOON, isRebuilding: false }) },
    },
    OPTIONS,
    clock,
  );
}

const request = (window: string, ranking: string, body: unknown) => ({
  tenant: "acme",
  segments: ["rooms", "notes", "leaderboard", "members"],
  query: new URLSearchParams({ window, ranking }),
  body: encodeJson(body),
});

/** Few scores and instants, so that many are equal. */
const entry = fc.record({
  member: fc.integer({ min: 0, max: 59 }).map((index) => `user-${index}`),
  score: fc.integer({ min: 1, max: 4 }),
});
const world = fc.record({
  standings: fc
    .uniqueArray(entry, { maxLength: 60, selector: ({ member }) => member })
    .map((entries): RankEntry[] => entries.map((each, reachedAt) => ({ ...each, reachedAt }))),
  hotMembers: fc.integer({ min: 1, max: 70 }),
  isArchived: fc.boolean(),
});
const users = fc.array(
  fc.integer({ min: 0, max: 69 }).map((index) => `user-${index}`),
  { minLength: 1, maxLength: 80 },
);

test("[BTEAM1] the rank of each named user is one more than the number of named users, scores or distinct scores ahead", async () => {
  await fc.assert(
    fc.asyncProperty(world, users, fc.constantFrom(...RANKINGS), async (board, named, ranking) => {
      const question = parseQuestion(request(board.isArchived ? "2026-07-01" : "all", ranking, { users: named }), { boardShownMax: 1 });
      if (question.kind !== "members") throw new Error(`read as ${question.kind}`);
      const answer = await readerOf(board).members(question.board, question.users);
      if (answer.kind !== "members") throw new Error(`answered ${answer.kind}`);
      const team = board.standings.filter(({ member }) => named.includes(member));
      const rankOf = (own: RankEntry): number => {
        const higher = team.filter(({ score }) => score > own.score);
        if (ranking === "competition") return higher.length + 1;
        if (ranking === "dense") return new Set(higher.map(({ score }) => score)).size + 1;
        return higher.length + team.filter(({ score, reachedAt }) => score === own.score && reachedAt < own.reachedAt).length + 1;
      };
      const ranks = new Map(answer.ranking.map(({ user, rank, score }) => [user, `${rank} with ${score}`]));
      expect(ranks).toEqual(new Map(team.map((own) => [own.member, `${rankOf(own)} with ${own.score}`])));
      expect(answer.ranking.map(({ rank }) => rank)).toEqual(answer.ranking.map(({ rank }) => rank).sort((one, other) => one - other));
    }),
  );
});

test("[BTEAM2] a question names 1 to 1,000 users of the longest ids, and an error names the limit", () => {
  const longest = Array.from({ length: RANKED_USERS_MAX }, (_, index) => String(index).padStart(128, "\u4e16"));
  const limits = { boardShownMax: 1 };
  const escaped = JSON.stringify({ users: longest }).replace(/[^ -~]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`);
  expect(escaped.length).toBeLessThanOrEqual(RANKED_USERS_BYTES_MAX);
  const asked = { ...request("all", "unique", {}), body: new TextEncoder().encode(escaped) };
  expect(parseQuestion(asked, limits)).toMatchObject({ kind: "members", users: longest });
  for (const named of [[], [...longest, "one more"], ["x".repeat(129)], ["\u0001"], ["\ud800"]]) {
    expect(parseQuestion(request("all", "unique", { users: named }), limits)).toMatchObject({
      error: "bad-user",
      message: expect.stringContaining("name 1 to 1000 users") as string,
    });
  }
  for (const body of [{}, { users: "ann" }, { users: [1] }, { users: ["ann"], more: 1 }, "ann", null])
    expect(parseQuestion(request("all", "unique", body), limits)).toMatchObject({ error: "bad-body" });
  for (const segments of [
    ["rooms", "notes", "leaderboard"],
    ["rooms", "notes", "leaderboard", "members", "ann"],
    ["leaderboard", "rooms", "notes"],
  ])
    expect(parseQuestion({ ...request("all", "unique", { users: ["ann"] }), segments }, limits)).toMatchObject({
      error: "method-not-allowed",
    });
});
