/** A reader that follows the cursors reaches the last available page without an error. The last answer names the members after it. */

import { expect, test } from "vitest";

import type { Clock } from "../../shared/time/clock.ts";
import type { Millis, RoomKey, UnixMillis } from "../../shared/ids.ts";
import { bandOf, type BoardContents, NOTHING_APPLIED, type RankEntry, type Ranking } from "../boards/board.ts";
import { WINDOW_KINDS, type WindowKind } from "../boards/windows.ts";
import type { ArchivedWindow } from "../ports.ts";
import { BoardReader } from "./reads-host.ts";

const NOON = Date.UTC(2026, 6, 2, 12) as UnixMillis;
/** The default options. */
const OPTIONS = {
  logPartitions: 1,
  boardRoles: ["everyone" as const],
  boardShownMax: 100,
  boardReadMembersMax: 2_000,
  boardBehindMsMax: 5_000,
  boardPushMs: 500,
};
const HOT_MEMBERS = 200;
const STATE: BoardContents = { applied: NOTHING_APPLIED, hot: [], members: 0, points: 0, bands: new Map(), isOrdered: false };

/** Two with each score. */
const board = (members: number): RankEntry[] =>
  Array.from({ length: members }, (_, place) => ({ member: `user-${place}`, score: 10_000 - Math.floor(place / 2), reachedAt: place }));

function readerOf(
  state: BoardContents,
  standings: readonly RankEntry[],
  archived?: ArchivedWindow,
  boardWindows: readonly WindowKind[] = WINDOW_KINDS,
): BoardReader {
  const clock: Clock = { now: () => 0 as Millis, wallNow: () => NOON, after: () => () => {} };
  const none = () => Promise.reject(new Error("only read"));
  const report = { service: "s", through: NOON, totalsSent: NOON, isRebuilding: false };
  return new BoardReader(
    {
      reads: {
        read: () => Promise.resolve(state),
        members: (_room, _role, _window, members) => Promise.resolve(standings.filter(({ member }) => members.includes(member))),
        places: (_room, _role, _window, places) => {
          if (!state.isOrdered || places.kind !== "from") return Promise.resolve(undefined);
          const score = standings[places.offset]?.score;
          return Promise.resolve({
            first: places.offset,
            ahead: standings.findIndex((standing) => standing.score === score),
            standings: standings.slice(places.offset, places.offset + places.limit),
          });
        },
        all: async function* () {
          yield standings;
        },
      },
      archive: { write: none, remove: none, read: () => Promise.resolve(archived) },
      progress: { read: () => Promise.resolve(report) },
    },
    { ...OPTIONS, boardWindows },
    clock,
  );
}

/** The users and ranks of all pages, in order. */
async function follow(reader: BoardReader, window: string, ranking: Ranking, limit: number) {
  const found = [];
  for (let offset: number | undefined = 0; offset !== undefined;) {
    const page = await reader.page({ owner: "acme.notes" as RoomKey, role: "everyone", window, ranking }, { offset, limit });
    if (page.kind !== "page") throw new Error(`${page.kind} at ${offset}`);
    expect(page.ranking).not.toEqual([]);
    found.push(...page.ranking);
    offset = page.nextOffset;
  }
  return found;
}

test.each([
  { members: 200, tail: "counted", ranking: "competition", limit: 100, reached: 200 },
  { members: 201, tail: "counted", ranking: "competition", limit: 100, reached: 201 },
  { members: 2_000, tail: "counted", ranking: "dense", limit: 70, reached: 2_000 },
  { members: 2_001, tail: "counted", ranking: "competition", limit: 100, reached: HOT_MEMBERS },
  { members: 2_001, tail: "counted", ranking: "unique", limit: 70, reached: HOT_MEMBERS },
  { members: 2_001, tail: "ordered", ranking: "competition", limit: 100, reached: 2_001 },
  { members: 2_001, tail: "ordered", ranking: "unique", limit: 70, reached: 2_001 },
  { members: 2_001, tail: "ordered", ranking: "dense", limit: 70, reached: HOT_MEMBERS },
] as const)(
  "[BPAGE1] with $members members and the tail $tail, $ranking pages of $limit show $reached",
  async ({ members, tail, ranking, limit, reached }) => {
    const standings = board(members);
    const state = { ...STATE, hot: standings.slice(0, HOT_MEMBERS), members, isOrdered: tail === "ordered" };
    const found = await follow(readerOf(state, standings), "all", ranking, limit);
    const rankAt = (place: number): number =>
      ({ unique: place + 1, competition: 2 * Math.floor(place / 2) + 1, dense: Math.floor(place / 2) + 1 })[ranking];
    expect(found).toEqual(standings.slice(0, reached).map(({ member, score }, place) => ({ rank: rankAt(place), user: member, score })));
  },
);

test.each([
  [100, 100],
  [1_500, 1_000],
])("[BPAGE2] pages of a closed window with %i members show the %i members that the archive names", async (members, named) => {
  const archived = { applied: NOTHING_APPLIED, boards: [{ role: "everyone" as const, members, points: 1, standings: board(named) }] };
  const found = await follow(readerOf(STATE, [], archived), "2026-07-01", "unique", 70);
  expect(found.map(({ user }) => user)).toEqual(board(named).map(({ member }) => member));
});

test.each([
  [100, "not-ranked"],
  [1_500, "beyond-archive"],
] as const)("[BPAGE3] in a closed window with %i members, a member whom the archive does not name is %s", async (members, kind) => {
  const archived = {
    applied: NOTHING_APPLIED,
    boards: [{ role: "everyone" as const, members, points: 1, standings: board(Math.min(members, 1_000)) }],
  };
  const question = { owner: "acme.notes" as RoomKey, role: "everyone" as const, window: "2026-07-01", ranking: "unique" as const };
  expect(await readerOf(STATE, [], archived).member(question, "nobody", 0)).toEqual({ kind });
  expect(await readerOf(STATE, [], archived).member(question, "user-99", 0)).toMatchObject({ kind: "member", own: { rank: 100 } });
});

test("[BPAGE4] a window that is no longer counted is unknown, also if Redis still has it, and its archive stays readable", async () => {
  const archived = { applied: NOTHING_APPLIED, boards: [{ role: "everyone" as const, members: 100, points: 1, standings: board(100) }] };
  const pageOf = (reader: BoardReader, window: string) =>
    reader.page({ owner: "acme.notes" as RoomKey, role: "everyone", window, ranking: "unique" }, { offset: 0, limit: 3 });
  const left = { ...STATE, hot: board(5), members: 5 };
  expect(await pageOf(readerOf(left, board(5), undefined, ["month", "all"]), "day")).toEqual({ kind: "unknown-window" });
  expect(await pageOf(readerOf(left, board(5), undefined, ["month", "all"]), "month")).toMatchObject({ kind: "page" });
  expect(await pageOf(readerOf(STATE, [], archived, ["month", "all"]), "last-day")).toMatchObject({ kind: "page" });
});

test("[BPAGE5] a member among the last that are kept in order has its exact rank, with the neighbours that are known", async () => {
  const archived = {
    applied: NOTHING_APPLIED,
    boards: [{ role: "everyone" as const, members: 1_500, points: 1, standings: board(1_000) }],
  };
  const question = { owner: "acme.notes" as RoomKey, role: "everyone" as const, ranking: "unique" as const };
  const last = await readerOf(STATE, [], archived).member({ ...question, window: "2026-07-01" }, "user-998", 5);
  expect(last).toMatchObject({ kind: "member", own: { rank: 999 } });
  expect(last.kind === "member" && last.neighbours.at(-1)).toMatchObject({ rank: 1_000 });

  const standings = board(2_001);
  const bands = new Map<number, number>();
  for (const { score } of standings) bands.set(bandOf(score), (bands.get(bandOf(score)) ?? 0) + 1);
  const reader = readerOf({ ...STATE, hot: standings.slice(0, HOT_MEMBERS), members: 2_001, bands }, standings);
  expect(await reader.member({ ...question, window: "all" }, "user-198", 5)).toMatchObject({ own: { rank: 199 } });
  const behind = await reader.member({ ...question, window: "all" }, "user-300", 5);
  expect(behind, "the ranks of the hot set are taken").toMatchObject({ own: { rankFirst: HOT_MEMBERS + 1, rankLast: 1_570 } });
});
