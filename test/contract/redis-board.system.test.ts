/**
 * The board scripts on a real redis-server. One log is cut into random batches, sent twice by several writers, and
 * repeated after data loss. The boards must equal an independent calculation.
 */

import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";

import { Prng } from "../../shared/collections/prng.ts";
import type { Epoch, RoomKey, Seq, TenantId, UnixMillis, UserId } from "../../shared/ids.ts";
import { type RedisConnection, redisConnection } from "../../shared/io/redis.ts";
import { ownersRecordOf } from "../../shared/testing/owners-record.ts";
import { SILENT_LOG } from "../../shared/testing/silent-log.ts";
import type { Engine } from "../../engines/engine.ts";
import {
  bandOf,
  byRank,
  type CountedPosition,
  NO_USES,
  NOTHING_APPLIED,
  type RankEntry,
  SCORE_MAX,
  type ScoreBatch,
} from "../../leaderboard/boards/board.ts";
import { type BoardOwner, keysOf, type MemberRole, ROLES, tenantBoard } from "../../leaderboard/boards/keys.ts";
import { ALL_TIME, parseWindow, type Window, windowsAt } from "../../leaderboard/boards/windows.ts";
import { SHOWN_MEMBERS_MAX } from "../../leaderboard/config.ts";
import { RoomProjection } from "../../leaderboard/counting/room-projection.ts";
import { type RedisBoard, redisBoard } from "../../leaderboard/io/redis-boards.ts";
import { redisNames } from "../../leaderboard/io/redis-ports.ts";
import { redisTenants } from "../../leaderboard/io/redis-tenants.ts";
import { recordOf, SCORING } from "../../leaderboard/testing/records.ts";
import { type LoggedEdit, referenceBoards, type ReportedActivity } from "../../leaderboard/testing/reference-boards.ts";
import { startTestRedis } from "./test-engines.ts";

const HOT_MEMBERS = 6;

let dataDir: string;
let engine: Engine;
let connection: RedisConnection;
let boards: RedisBoard;
let rooms = 0;

beforeAll(async () => {
  dataDir = mkdtempSync(join(tmpdir(), "coroom-boards-"));
  engine = await startTestRedis({ dataDir });
  connection = redisConnection(engine.url, SILENT_LOG);
  await new Promise((resolve) => connection.redis.once("ready", resolve));
  boards = redisBoard(connection.redis, keysOf("contract"), { hotMembers: HOT_MEMBERS, tail: "ordered", roles: ROLES });
});
afterAll(async () => {
  connection?.stop();
  await engine?.stop();
  rmSync(dataDir, { recursive: true, force: true });
});

const unchanged = { period: 0, hasBegun: false, points: new Map<UserId, number>() };
const UNCHANGED: ScoreBatch["uses"] = { edits: unchanged, deeds: unchanged, present: unchanged };
const stale = (seq: number, activity = 0) => ({ kind: "stale", counted: { seq, activity } });
const newRoom = () => `acme.room-${++rooms}` as RoomKey;

/** The room must exist. */
async function loaded(room: RoomKey) {
  const stored = await boards.load(room);
  return stored === "deleted" ? undefined : stored;
}

function batchOf(after: number, seq: number, awards: readonly (readonly [string, number, number])[]): ScoreBatch {
  return {
    after: { seq: after as Seq, activity: 0, time: NOTHING_APPLIED.time },
    applied: { ...NOTHING_APPLIED, epoch: 1 as Epoch, seq: seq as Seq },
    uses: UNCHANGED,
    windows: [ALL_TIME],
    awards: new Map([
      ["everyone" as const, awards.map(([member, points, reachedAt]) => ({ member: member as UserId, points, reachedAt }))],
    ]),
  };
}

async function allOf(owner: BoardOwner, window = ALL_TIME, role: MemberRole = "everyone"): Promise<RankEntry[]> {
  const found: RankEntry[] = [];
  for await (const some of boards.all(owner, role, window)) found.push(...some);
  return found.sort(byRank);
}

/** Checks that each place of a board with a tail can be read by number and by participant, with its neighbours. */
async function expectInOrder(room: BoardOwner, role: MemberRole, window: Window, all: readonly RankEntry[]): Promise<void> {
  const aheadOf = (first: number): number => all.filter(({ score }) => score > all[first]!.score).length;
  for (const offset of [0, Math.floor(all.length / 2), all.length - 1]) {
    expect(await boards.places(room, role, window, { kind: "from", offset, limit: 4 })).toEqual({
      first: offset,
      ahead: aheadOf(offset),
      standings: all.slice(offset, offset + 4),
    });
  }
  for (const [place, { member }] of all.entries()) {
    const first = Math.max(0, place - 2);
    expect(await boards.places(room, role, window, { kind: "around", member, around: 2 })).toEqual({
      first,
      ahead: aheadOf(first),
      standings: all.slice(first, place + 3),
    });
  }
}

type Place = Pick<RankEntry, "member" | "score">;
const placesOf = (standings: readonly Place[]): Place[] => standings.map(({ member, score }) => ({ member, score }));

/** Checks that the stored data is consistent: the hot set contains the first places, and the bands count all participants. */
async function expectBoard(room: BoardOwner, windowId: string, expected: readonly Place[], role: MemberRole = "everyone"): Promise<void> {
  const window = parseWindow(windowId)!;
  const all = await allOf(room, window, role);
  expect(placesOf(all), `${role} ${windowId}`).toEqual(placesOf(expected));
  const state = await boards.read(room, role, window);
  expect(state.hot, windowId).toEqual(all.slice(0, HOT_MEMBERS));
  expect(state.members).toBe(expected.length);
  expect(state.points).toBe(expected.reduce((sum, { score }) => sum + score, 0));
  const bands = new Map<number, number>();
  for (const { score } of expected) bands.set(bandOf(score), (bands.get(bandOf(score)) ?? 0) + 1);
  expect(new Map([...state.bands].sort())).toEqual(new Map([...bands].sort()));
  if (expected.length > HOT_MEMBERS) await expectInOrder(room, role, window, all);
}

test("[BOARD1] a batch counts once: a repeat is answered with the room's mark, and changes nothing", async () => {
  const room = newRoom();
  const batch = batchOf(0, 3, [
    ["ann", 5, 3],
    ["bob", 2, 2],
  ]);
  expect(await boards.apply(room, batch)).toEqual({ kind: "written" });
  expect(await boards.apply(room, batch)).toEqual(stale(3));
  await expectBoard(room, "all", [
    { member: "ann", score: 5 },
    { member: "bob", score: 2 },
  ]);
});

test("[BOARD2] of several writers with the same batch one succeeds", async () => {
  const room = newRoom();
  const answers = await Promise.all(Array.from({ length: 8 }, () => boards.apply(room, batchOf(0, 1, [["ann", 1, 1]]))));
  expect(answers.filter(({ kind }) => kind === "written")).toHaveLength(1);
  await expectBoard(room, "all", [{ member: "ann", score: 1 }]);
});

test("[BOARD3] a batch that leaves a gap is refused", async () => {
  const room = newRoom();
  expect(await boards.apply(room, batchOf(4, 5, [["ann", 1, 5]]))).toEqual(stale(0));
  expect((await boards.read(room, "everyone", ALL_TIME)).applied).toBeUndefined();
});

test("[BOARD4] of equal scores the one reached first ranks higher, to the last digit of a double", async () => {
  const room = newRoom();
  const near = SCORE_MAX - 1;
  await boards.apply(
    room,
    batchOf(0, 4, [
      ["late", near, 4],
      ["first", near, 2],
      ["second", near, 3],
      ["top", SCORE_MAX, 1],
    ]),
  );
  const order = ["top", "first", "second", "late"];
  expect((await allOf(room)).map(({ member }) => member)).toEqual(order);
  expect((await boards.read(room, "everyone", ALL_TIME)).hot.map(({ member, score }) => [member, score])).toEqual(
    order.map((member) => [member, member === "top" ? SCORE_MAX : near]),
  );
  await boards.apply(room, batchOf(4, 5, [["late", 1, 5]]));
  expect((await allOf(room)).map(({ member }) => member)).toEqual(["top", "late", "first", "second"]);
});

test("[BOARD5] a score at the maximum of a double does not change, and neither does the moment when it was reached", async () => {
  const room = newRoom();
  await boards.apply(room, batchOf(0, 1, [["ann", SCORE_MAX, 1]]));
  await boards.apply(room, batchOf(1, 2, [["ann", 10, 2]]));
  expect(await allOf(room)).toEqual([{ member: "ann", score: SCORE_MAX, reachedAt: 1 }]);
});

test("[BOARD6] a participant from the tail enters the hot set with the full score, and replaces its last one", async () => {
  const room = newRoom();
  const many = Array.from({ length: 20 }, (_, index) => [`user-${index}`, 100 - index, index + 1] as const);
  await boards.apply(room, batchOf(0, 20, many));
  expect((await boards.read(room, "everyone", ALL_TIME)).hot.at(-1)?.member).toBe("user-5");
  await boards.apply(room, batchOf(20, 21, [["user-19", 14, 21]]));
  expect((await boards.read(room, "everyone", ALL_TIME)).hot.at(-1)?.member).toBe("user-5"); // A tie at 95, reached later.
  await boards.apply(room, batchOf(21, 22, [["user-19", 1, 22]]));
  expect((await boards.read(room, "everyone", ALL_TIME)).hot.slice(-2).map(({ member, score }) => [member, score])).toEqual([
    ["user-4", 96],
    ["user-19", 96],
  ]);
});

test("[BOARD7] a name with any content is stored as a name", async () => {
  const room = newRoom();
  const names = ["__proto__", "constructor", "seq", "points", "0", "ünïcode ✓", " ", "{x}", "a:b"];
  await boards.apply(
    room,
    batchOf(
      0,
      names.length,
      names.map((name, index) => [name, 1, index + 1] as const),
    ),
  );
  expect((await allOf(room)).map(({ member }) => member)).toEqual(names);
  expect((await boards.members(room, "everyone", ALL_TIME, ["__proto__", "nobody", "0"])).map(({ member }) => member)).toEqual([
    "__proto__",
    "0",
  ]);
  const dump = await boards.dump(room, [ALL_TIME]);
  expect(dump?.boards[0]?.standings.map(({ member }) => member)).toEqual(names);
});

test("[BOARD8] a reader during a batch sees complete batches only", async () => {
  const room = newRoom();
  let isWriting = true;
  const writing = (async () => {
    for (let after = 0; after < 300; after += 2)
      await boards.apply(
        room,
        batchOf(after, after + 2, [
          ["ann", 1, after + 1],
          ["bob", 1, after + 2],
        ]),
      );
    isWriting = false;
  })();
  let reads = 0;
  for (; isWriting; reads++) {
    const { applied, hot, points, members } = await boards.read(room, "everyone", ALL_TIME);
    if (applied === undefined) continue;
    expect({ scores: hot.map(({ score }) => score), points, members }).toEqual({
      scores: [applied.seq / 2, applied.seq / 2],
      points: applied.seq,
      members: 2,
    });
  }
  await writing;
  expect(reads).toBeGreaterThan(0);
});

test("[BOARD11] a new minute clears the counts of the previous minute, and no other cap's", async () => {
  const room = newRoom();
  const useOf = (period: number, user: string) => ({ period, hasBegun: true, points: new Map([[user as UserId, 7]]) });
  await boards.apply(room, { ...batchOf(0, 1, [["ann", 7, 1]]), uses: { ...UNCHANGED, edits: useOf(1, "ann"), deeds: useOf(1, "cy") } });
  await boards.apply(room, {
    ...batchOf(1, 2, [["bob", 7, 2]]),
    uses: { ...UNCHANGED, edits: useOf(2, "bob"), deeds: { ...unchanged, period: 1 } },
  });
  expect((await loaded(room))?.uses).toEqual({
    edits: { period: 2, points: new Map([["bob", 7]]) },
    deeds: { period: 1, points: new Map([["cy", 7]]) },
    present: { period: 0, points: new Map() },
  });
});

test("[BOARD21] a batch is refused if the counted edit has the same seq but another time: log and Redis lost their ends", async () => {
  const room = newRoom();
  const first = {
    ...batchOf(0, 3, [["ann", 3, 1]]),
    applied: { ...NOTHING_APPLIED, epoch: 1 as Epoch, seq: 3 as Seq, time: 100 as UnixMillis },
  };
  expect(await boards.apply(room, first)).toEqual({ kind: "written" });
  const next = (time: number): ScoreBatch => ({
    ...batchOf(3, 4, [["ann", 1, 2]]),
    after: { seq: 3 as Seq, activity: 0, time: time as UnixMillis },
  });
  expect(await boards.apply(room, next(200))).toEqual(stale(3));
  expect(await boards.apply(room, next(100))).toEqual({ kind: "written" });
  await expectBoard(room, "all", [{ member: "ann", score: 4 }]);
});

test("[BOARD12] a batch whose activities were counted already is refused, even if its edits were not", async () => {
  const room = newRoom();
  const batch = (after: number, activity: number): ScoreBatch => ({
    ...batchOf(0, 0, [["ann", 1, 1]]),
    after: { seq: 0 as Seq, activity: after, time: NOTHING_APPLIED.time },
    applied: { ...NOTHING_APPLIED, activity },
  });
  expect(await boards.apply(room, batch(0, 4))).toEqual({ kind: "written" });
  expect(await boards.apply(room, batch(0, 4))).toEqual(stale(0, 4));
  expect(await boards.apply(room, batchOf(0, 1, [["ann", 1, 1]]))).toEqual(stale(0, 4));
  await expectBoard(room, "all", [{ member: "ann", score: 1 }]);
});

test("[BOARD13] an earlier event that is counted later does not change the moment of a score", async () => {
  const room = newRoom();
  await boards.apply(
    room,
    batchOf(0, 1, [
      ["ann", 2, 40],
      ["bob", 3, 30],
    ]),
  );
  await boards.apply(room, batchOf(1, 2, [["ann", 1, 20]]));
  expect(await allOf(room)).toEqual([
    { member: "bob", score: 3, reachedAt: 30 },
    { member: "ann", score: 3, reachedAt: 40 },
  ]);
  expect(placesOf((await boards.read(room, "everyone", ALL_TIME)).hot)).toEqual([
    { member: "bob", score: 3 },
    { member: "ann", score: 3 },
  ]);
});

test("[BOARD14] a reader of a long board whose members change bands sees each of them once, in order", async () => {
  const room = newRoom();
  const members = Array.from({ length: 60 }, (_, index) => `user-${index}`);
  const prng = new Prng(14);
  await boards.apply(
    room,
    batchOf(
      0,
      60,
      members.map((member, index) => [member, 1, index + 1] as const),
    ),
  );
  let isWriting = true;
  const writing = (async () => {
    for (let seq = 60; seq < 400; seq++)
      await boards.apply(room, batchOf(seq, seq + 1, [[members[prng.below(60)]!, 1 + prng.below(40), seq + 1]]));
    isWriting = false;
  })();
  let reads = 0;
  for (; isWriting; reads++) {
    const { standings } = (await boards.places(room, "everyone", ALL_TIME, { kind: "from", offset: 0, limit: 100 }))!;
    expect(new Set(standings.map(({ member }) => member)).size).toBe(60);
    expect(standings).toEqual([...standings].sort((a, b) => b.score - a.score || a.reachedAt - b.reachedAt));
    const member = members[reads % 60]!;
    const around = (await boards.places(room, "everyone", ALL_TIME, { kind: "around", member, around: 1 }))!;
    expect(around.standings.map((standing) => standing.member)).toContain(member);
  }
  await writing;
  expect(reads).toBeGreaterThan(0);
});

test("[BOARD15] a board that was only counted is put in order on request, and released afterwards", async () => {
  const room = newRoom();
  const counted = redisBoard(connection.redis, keysOf("contract"), { hotMembers: HOT_MEMBERS, tail: "counted", roles: ROLES });
  const places = () => boards.places(room, "everyone", ALL_TIME, { kind: "from", offset: 0, limit: 20 });
  const isOrdered = async () => (await boards.read(room, "everyone", ALL_TIME)).isOrdered;
  const many = Array.from({ length: 20 }, (_, index) => [`user-${index}`, 100 - index, index + 1] as const);
  await counted.apply(room, batchOf(0, 20, many));
  expect([await places(), await isOrdered()]).toEqual([undefined, false]);
  await boards.apply(room, batchOf(20, 21, [["user-19", 50, 21]]));
  expect(await isOrdered()).toBe(true);
  expect((await places())?.standings.map(({ member }) => member)).toEqual(["user-19", ...many.slice(0, 19).map(([member]) => member)]);
  await counted.apply(room, batchOf(21, 22, [["user-0", 1, 22]]));
  expect([await places(), await isOrdered()]).toEqual([undefined, false]);
  expect(await connection.redis.keys(`contract:board:{${room}}:everyone:all:in:*`)).toEqual([]);
  const dump = (await counted.dump(room, [ALL_TIME]))!;
  const copy = newRoom();
  await boards.restore(copy, dump);
  expect((await boards.places(copy, "everyone", ALL_TIME, { kind: "from", offset: 0, limit: 20 }))?.standings).toEqual(
    dump.boards[0]!.standings,
  );
});

test.each([
  [20, 12],
  [6_000, HOT_MEMBERS],
])(
  "[BOARD20] in a board of %i whose ordered part grows to %i members, none ranks before one with more points",
  async (members, standing) => {
    const room = newRoom();
    const applied = { ...NOTHING_APPLIED, seq: members as Seq };
    const standings = Array.from({ length: members }, (_, index) => ({
      member: `user-${index}`,
      score: members - index,
      reachedAt: index + 1,
    }));
    await boards.restore(room, { applied, uses: NO_USES, names: new Map(), boards: [{ role: "everyone", window: ALL_TIME, standings }] });
    const more = redisBoard(connection.redis, keysOf("contract"), { hotMembers: 12, tail: "counted", roles: ROLES });
    await more.apply(
      room,
      batchOf(members, members + 1, [
        [`user-${members - 1}`, 1, members + 1],
        ["user-0", 1, members + 1],
      ]),
    );
    const { hot } = await more.read(room, "everyone", ALL_TIME);
    expect(hot.map(({ member }) => member)).toEqual(standings.slice(0, standing).map(({ member }) => member));
  },
);

const USERS = ["ann", "bob", "cy", "dee", "__proto__", "eve", "fay", "gus", "hal", "ida"] as UserId[];
/** Pauses of minutes and hours, from just before the boundaries of every window. */
const pause = fc.oneof(fc.constant(0), fc.nat(1_000), fc.nat(90_000), fc.nat(7_200_000));
const user = fc.constantFrom(...USERS);
const edited = fc.record({ user, bytes: fc.constantFrom(0, 5, 10, 29, 30), pause });
const userAction = fc.record({ user, kind: fc.constantFrom("comment", "review", "unheard-of"), times: fc.integer({ min: 1, max: 3 }) });
const reported = fc.record({
  pause,
  activity: fc.oneof(
    fc.record({ kind: fc.constant("deeds" as const), deeds: fc.array(userAction, { minLength: 1, maxLength: 3 }) }),
    fc.record({ kind: fc.constant("present" as const), users: fc.uniqueArray(user, { minLength: 1, maxLength: 4 }) }),
  ),
});
const steps = fc.array(fc.oneof({ arbitrary: edited, weight: 3 }, { arbitrary: reported, weight: 1 }), { minLength: 1, maxLength: 80 });
const start = fc
  .constantFrom("2026-12-31T23:58:00Z", "2027-01-03T23:59:30Z", "2028-02-29T23:59:59Z", "2026-07-15T10:20:00Z")
  .map((text) => Date.parse(text));
const cuts = fc.array(
  fc.record({
    edits: fc.integer({ min: 0, max: 7 }),
    activities: fc.integer({ min: 0, max: 3 }),
    next: fc.constantFrom("on", "on", "again", "crash", "crash after", "stale", "lost"),
  }),
  { minLength: 1, maxLength: 40 },
);

type TenantStep =
  | { readonly kind: "earn"; readonly room: number; readonly users: readonly (readonly [user: number, points: number])[] }
  | { readonly kind: "send" | "send-one" | "crash" | "remove"; readonly room: number };
const tenantRoom = fc.integer({ min: 0, max: 3 });
const tenantSteps = fc.array(
  fc.oneof(
    {
      weight: 6,
      arbitrary: fc.record({
        kind: fc.constant("earn" as const),
        room: tenantRoom,
        users: fc.uniqueArray(fc.tuple(fc.integer({ min: 0, max: 9 }), fc.integer({ min: 1, max: 30 })), {
          minLength: 1,
          maxLength: 5,
          selector: ([user]) => user,
        }),
      }),
    },
    { weight: 3, arbitrary: fc.record({ kind: fc.constantFrom("send" as const, "send-one" as const), room: tenantRoom }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constantFrom("crash" as const, "remove" as const), room: tenantRoom }) },
  ),
  { minLength: 1, maxLength: 40 },
);

test("[BOARD22] a tenant's boards are the sums of its rooms' boards, however scores were sent, repeated or forgotten, and without deleted rooms", async () => {
  const tenants = redisTenants(connection.redis, keysOf("contract"), { roles: ["everyone"], hotMembers: HOT_MEMBERS });
  let runs = 0;
  const run = async (steps: readonly TenantStep[]): Promise<void> => {
    const tenant = `sums-${++runs}` as TenantId;
    const state = Array.from({ length: 4 }, (_, index) => ({
      room: `${tenant}.room-${index}` as RoomKey,
      seq: 0,
      unsent: new Set<string>(),
      isUnknown: false,
      isGone: false,
    }));
    /** Of each person and each room: the score, and the instant of its last point. */
    const earned = new Map<string, Map<number, number>>();
    const reached = new Map<string, number>();
    const lostPart = new Set<string>();
    let instant = 0;
    for (const step of steps) {
      const own = state[step.room]!;
      if (own.isGone) continue;
      const { room } = own;
      if (step.kind === "earn") {
        const awards = step.users.map(([user, points]) => [`user-${user}`, points, ++instant] as const);
        await boards.apply(room, batchOf(own.seq, (own.seq += 1), awards));
        for (const [user, points, at] of awards) {
          own.unsent.add(user);
          for (const member of [user, `room-${step.room}`]) {
            const parts = earned.get(member) ?? new Map<number, number>();
            earned.set(member, parts.set(step.room, (parts.get(step.room) ?? 0) + points));
            reached.set(member, at);
          }
        }
      } else if (step.kind === "crash") own.isUnknown = true;
      else if (step.kind === "send-one") {
        const [member] = own.unsent; // As if the other members had earned points after the list was taken.
        if (member !== undefined) await tenants.sendTotals(room, [{ window: ALL_TIME, members: new Set([member]) }]);
      } else if (step.kind === "send") {
        const changes = [{ window: ALL_TIME, members: own.isUnknown ? ("all" as const) : own.unsent }];
        for (let times = 0; times < 2; times++) await tenants.sendTotals(room, changes);
        own.unsent = new Set();
        own.isUnknown = false;
      } else {
        await tenants.sendTotals(room, [{ window: ALL_TIME, members: "all" }]);
        for (let times = 0; times < 2; times++) await tenants.remove(room, [ALL_TIME]);
        own.isGone = true;
        for (const [member, parts] of earned) if (parts.delete(step.room)) lostPart.add(member);
      }
    }
    for (const { room, isGone } of state) if (!isGone) await tenants.sendTotals(room, [{ window: ALL_TIME, members: "all" }]);
    const expected = [...earned].flatMap(([member, parts]): RankEntry[] => {
      const score = [...parts.values()].reduce((sum, points) => sum + points, 0);
      return score === 0 ? [] : [{ member, score, reachedAt: reached.get(member)! }];
    });
    for (const [board, kind] of [
      ["people", "user"],
      ["rooms", "room"],
    ] as const) {
      const owner = tenantBoard(tenant, board);
      const shown = (await allOf(owner)).map(({ member }) => member);
      const entries = expected.filter(({ member }) => member.startsWith(kind));
      /** Of equal scores, the instant of a point in a deleted room may or may not count. */
      const isOpen = (score: number): boolean => entries.some((entry) => entry.score === score && lostPart.has(entry.member));
      const inOrder = entries.sort((a, b) =>
        a.score === b.score && isOpen(a.score) ? shown.indexOf(a.member) - shown.indexOf(b.member) : byRank(a, b),
      );
      await expectBoard(owner, "all", placesOf(inOrder));
    }
  };
  await fc.assert(fc.asyncProperty(tenantSteps, run), { numRuns: 60 });
});

test("[BOARD23] a room's place among equal rooms depends on its last point, even if its total arrived before that point's member", async () => {
  const tenants = redisTenants(connection.redis, keysOf("contract"), { roles: ["everyone"], hotMembers: HOT_MEMBERS });
  const [first, second] = ["ties.first", "ties.second"] as [RoomKey, RoomKey];
  const rooms = async () => (await boards.read(tenantBoard("ties" as TenantId, "rooms"), "everyone", ALL_TIME)).hot;
  const send = (room: RoomKey, ...members: string[]) => tenants.sendTotals(room, [{ window: ALL_TIME, members: new Set(members) }]);
  await boards.apply(second, batchOf(0, 1, [["ann", 3, 20]]));
  await send(second, "ann");
  await boards.apply(first, batchOf(0, 1, [["ann", 1, 10]]));
  await boards.apply(first, batchOf(1, 2, [["bob", 2, 30]]));
  await send(first, "ann"); // The members were listed before bob's batch.
  for (let times = 0; times < 2; times++) await send(first, "bob");
  await send(first, "ann");
  expect(await rooms()).toEqual([
    { member: "second", score: 3, reachedAt: 20 },
    { member: "first", score: 3, reachedAt: 30 },
  ]);
  expect(await boards.read(tenantBoard("ties" as TenantId, "rooms"), "everyone", ALL_TIME)).toMatchObject({ members: 2, points: 6 });

  const many = Array.from({ length: 501 }, (_, index) => [`user-${String(index).padStart(3, "0")}`, 1, 1_000 + index] as const);
  await boards.apply(first, batchOf(2, 3, many));
  await send(first, ...many.map(([user]) => user)); // In two parts. The first part has the total already.
  expect((await rooms())[0]).toEqual({ member: "first", score: 504, reachedAt: 1_500 });
});

test("[BOARD28] a leaderboard that was paused while a room was deleted elsewhere gives the tenant none of the room's points again, even if it is killed after that write", async () => {
  const paused = redisConnection(engine.url, SILENT_LOG);
  await new Promise((resolve) => paused.redis.once("ready", resolve));
  const options = { roles: ["everyone"] as const, hotMembers: HOT_MEMBERS };
  const [tenants, late] = [
    redisTenants(connection.redis, keysOf("contract"), options),
    redisTenants(paused.redis, keysOf("contract"), options),
  ];
  const [kept, gone] = ["pauses.kept", "pauses.gone"] as [RoomKey, RoomKey];
  const change = [{ window: ALL_TIME, members: new Set(["ann"]) }];
  for (const room of [kept, gone]) await boards.apply(room, batchOf(0, 1, [["ann", 3, 20]]));
  await tenants.sendTotals(kept, change);
  /** The room's points are read. They are sent after the deletion. */
  const read = paused.redis.multi.bind(paused.redis);
  paused.redis.multi = ((commands: unknown[][]) => {
    const chain = read(commands);
    const exec = chain.exec.bind(chain);
    chain.exec = async () => {
      const answers = await exec();
      await boards.remove(gone, [ALL_TIME]);
      await tenants.remove(gone, [ALL_TIME]);
      return answers;
    };
    return chain;
  }) as typeof paused.redis.multi;
  const die = () => Promise.reject(new Error("killed"));
  Object.assign(paused.redis, { zadd: die, hexists: die });
  await late.sendTotals(gone, change).catch((error: Error) => expect(error.message).toBe("killed"));
  paused.stop();
  const hot = async (ranking: "people" | "rooms") =>
    (await boards.read(tenantBoard("pauses" as TenantId, ranking), "everyone", ALL_TIME)).hot.map(({ member, score }) => [member, score]);
  expect([await hot("people"), await hot("rooms")]).toEqual([[["ann", 3]], [["kept", 3]]]);
});

test("[BOARD16] a tenant's boards receive all members of a large restored board, and each place is exact", async () => {
  const tenants = redisTenants(connection.redis, keysOf("contract"), { roles: ["everyone"], hotMembers: HOT_MEMBERS });
  const room = "crowd.room-1" as RoomKey;
  const [hour] = windowsAt(Date.UTC(2126, 6, 1, 12) as UnixMillis);
  const count = 6_000;
  const standings = Array.from({ length: count }, (_, index) => ({ member: `user-${index}`, score: count - index, reachedAt: index }));
  const applied = { ...NOTHING_APPLIED, seq: 9 as Seq };
  await boards.restore(room, { applied, uses: NO_USES, names: new Map(), boards: [{ role: "everyone", window: hour!, standings }] });
  await tenants.sendTotals(room, [{ window: hour!, members: "all" }]);
  const people = tenantBoard("crowd" as TenantId, "people");
  const { members, isOrdered, hot } = await boards.read(people, "everyone", hour!);
  expect([members, isOrdered, hot.map(({ member }) => member)]).toEqual([
    count,
    true,
    standings.slice(0, HOT_MEMBERS).map(({ member }) => member),
  ]);
  expect(await boards.places(people, "everyone", hour!, { kind: "around", member: "user-4321", around: 1 })).toEqual({
    first: 4_320,
    ahead: 4_320,
    standings: standings.slice(4_320, 4_323),
  });
  expect(await tenants.due((hour!.end + 1) as UnixMillis, 10)).toContainEqual({ tenant: "crowd", window: hour! });
  await tenants.finish({ tenant: "crowd" as TenantId, window: hour! }, (hour!.end + 9) as UnixMillis);
  const left = await connection.redis.keys("contract:tenant:{crowd}:*");
  expect(left.length).toBeGreaterThan(8);
  for (const key of left) expect(await connection.redis.pexpiretime(key), key).toBe(hour!.end + 9);
  await tenants.remove(room, [hour!]);
  expect(await connection.redis.keys("contract:tenant:{crowd}:*:full")).toEqual([]);
  expect(await boards.read(people, "everyone", hour!)).toMatchObject({ members: 0, points: 0, hot: [] });
});

test("[BOARD27] after a window of a tenant with many rooms is archived, every key of it expires", async () => {
  const tenants = redisTenants(connection.redis, keysOf("contract"), { roles: ["everyone"], hotMembers: HOT_MEMBERS });
  const [hour] = windowsAt(Date.UTC(2126, 6, 1, 12) as UnixMillis);
  const count = 1_001;
  const manyRooms = Array.from({ length: count }, (_, index) => `expiry.room-${index}` as RoomKey);
  await Promise.all(
    manyRooms.map(async (room) => {
      await boards.apply(room, { ...batchOf(0, 1, [["ann", 1, 1]]), windows: [hour!] });
      await tenants.sendTotals(room, [{ window: hour!, members: "all" }]);
    }),
  );
  const left = await connection.redis.keys("contract:tenant:{expiry}:*");
  expect(left.length).toBeGreaterThan(count);
  const expiries = async () => new Set(await Promise.all(left.map((key) => connection.redis.pexpiretime(key))));
  expect(await expiries()).toEqual(new Set([-1]));
  await tenants.finish({ tenant: "expiry" as TenantId, window: hour! }, (hour!.end + 9) as UnixMillis);
  expect(await expiries()).toEqual(new Set([hour!.end + 9]));
});

test("[BOARD25] a tenant's board behind the longest hot set is in order", async () => {
  const hotMembers = 2 * SHOWN_MEMBERS_MAX;
  const tenants = redisTenants(connection.redis, keysOf("contract"), { roles: ["everyone"], hotMembers });
  const room = "longest.room-1" as RoomKey;
  const standings = Array.from({ length: 6_000 }, (_, index) => ({ member: `user-${index}`, score: 6_000 - index, reachedAt: index }));
  const applied = { ...NOTHING_APPLIED, seq: 9 as Seq };
  await boards.restore(room, { applied, uses: NO_USES, names: new Map(), boards: [{ role: "everyone", window: ALL_TIME, standings }] });
  await tenants.sendTotals(room, [{ window: ALL_TIME, members: "all" }]);
  const people = tenantBoard("longest" as TenantId, "people");
  const { isOrdered, hot } = await boards.read(people, "everyone", ALL_TIME);
  expect([isOrdered, hot.length]).toEqual([true, hotMembers]);
  expect(await boards.places(people, "everyone", ALL_TIME, { kind: "around", member: "user-5000", around: 0 })).toEqual({
    first: 5_000,
    ahead: 5_000,
    standings: [standings[5_000]],
  });
});

test("[BOARD26] the documented pattern for keys of version 0.2.0 finds these, and no key of this version", async () => {
  const page = readFileSync(new URL("../../docs/operations/leaderboard.md", import.meta.url), "utf8");
  const pattern = /--pattern 'prod(\S+)'/.exec(page)![1]!;
  const tenants = redisTenants(connection.redis, keysOf("upgraded"), { roles: ["everyone"], hotMembers: HOT_MEMBERS });
  const upgraded = redisBoard(connection.redis, keysOf("upgraded"), { hotMembers: HOT_MEMBERS, tail: "ordered", roles: ROLES });
  for (const room of ["acme.all", "all.all"] as RoomKey[]) {
    const many = Array.from({ length: 2 * HOT_MEMBERS }, (_, index) => [`user-${index}`, index + 1, index + 1] as const);
    await upgraded.apply(room, batchOf(0, 1, many));
    await tenants.sendTotals(room, [{ window: ALL_TIME, members: "all" }]);
  }
  expect(await connection.redis.keys("upgraded:tenant:*")).not.toEqual([]);
  expect(await connection.redis.keys(`upgraded${pattern}`)).toEqual([]);
  const earlier = ["upgraded:tenant:{acme}:all", "upgraded:tenant:{acme}:all:people"];
  for (const key of earlier) await connection.redis.set(key, "");
  expect((await connection.redis.keys(`upgraded${pattern}`)).sort()).toEqual(earlier);
});

test("[BOARD17] a large board is restored completely, with all its windows and names", async () => {
  const [room, windows] = [newRoom(), windowsAt(Date.UTC(2126, 6, 1, 12) as UnixMillis)];
  const users = Array.from({ length: 8_000 }, (_, index) => `user-${index}` as UserId);
  const standings = users.map((member, index) => ({ member, score: users.length - index, reachedAt: index + 1 }));
  const applied = { ...NOTHING_APPLIED, seq: users.length as Seq };
  const dump = {
    applied,
    uses: { ...NO_USES, edits: { period: 1, points: new Map(users.map((user) => [user, 3])) } },
    names: new Map(users.map((user) => [user, user.toUpperCase()])),
    boards: windows.map((window) => ({ role: "everyone" as const, window, standings })),
  };
  expect(await boards.restore(room, dump)).toEqual({ kind: "written" });
  expect(await boards.dump(room, windows)).toEqual(dump);
  expect(await boards.restore(room, dump)).toEqual(stale(users.length));
});

/** The counted position of each stream in the room. */
type Fed = { readonly edits: number; readonly activities: number };

test("[BOARD9] after random edits and activities, one stream ahead of the other, repeats, crashes, stale writers and lost memory, every board equals the reference, ties included", async () => {
  await fc.assert(
    fc.asyncProperty(steps, start, cuts, async (done, begin, plan) => {
      const room = newRoom();
      let time = begin;
      const edits: LoggedEdit[] = [];
      const activities: ReportedActivity[] = [];
      for (const step of done) {
        time += step.pause;
        if ("bytes" in step) edits.push({ user: step.user, bytes: step.bytes, time: time as UnixMillis });
        else activities.push({ activity: step.activity, time: time as UnixMillis });
      }
      const windows = [
        ...new Map([...edits, ...activities].flatMap((one) => windowsAt(one.time)).map((window) => [window.id, window])).values(),
      ];
      const load = async (): Promise<RoomProjection> => {
        const stored = await loaded(room);
        return new RoomProjection(stored?.applied ?? NOTHING_APPLIED, stored?.uses ?? NO_USES, SCORING);
      };
      const feed = (projection: RoomProjection, from: Fed, to: Fed): void => {
        for (let first = from.edits + 1; first <= to.edits; first++)
          projection.receiveRecord(ownersRecordOf(recordOf(first, edits.slice(first - 1, first))), first, edits[first - 1]!.time);
        for (const [index, { activity, time: at }] of activities.slice(from.activities, to.activities).entries())
          projection.receiveActivity(activity, from.activities + index + 1, at);
      };
      const NOTHING: Fed = { edits: 0, activities: 0 };
      let projection = await load();
      let checkpoint = await boards.dump(room, windows);
      let fed = NOTHING;
      const isFed = (): boolean => fed.edits === edits.length && fed.activities === activities.length;
      for (let round = 0; !isFed() || projection.entries > 0; round++) {
        const cut = plan[round % plan.length]!;
        const further = round % 4 === 3 ? 1 : 0; // A plan may leave out one of the streams.
        const to: Fed = {
          edits: Math.min(edits.length, fed.edits + cut.edits + further),
          activities: Math.min(activities.length, fed.activities + cut.activities + further),
        };
        feed(projection, fed, to);
        fed = to;
        if (cut.next === "crash") {
          projection = await load();
          feed(projection, NOTHING, fed); // The streams are read again from an earlier position.
        }
        const late = cut.next === "stale" ? await load() : undefined;
        for (let batch = projection.takeBatch(); batch !== undefined; batch = projection.takeBatch()) {
          expect(await boards.apply(room, batch)).toEqual({ kind: "written" });
          if (cut.next === "again") expect((await boards.apply(room, batch)).kind).toBe("stale");
        }
        if (late !== undefined) {
          feed(late, NOTHING, fed);
          for (let batch = late.takeBatch(); batch !== undefined; batch = late.takeBatch())
            expect((await boards.apply(room, batch)).kind).toBe("stale");
        }
        if (cut.next === "crash after") projection = await load();
        if (cut.next === "lost" && !isFed()) {
          const keys = await connection.redis.keys(`contract:board:{${room}}:*`);
          if (keys.length > 0) await connection.redis.del(...keys);
          if (checkpoint !== undefined) expect(await boards.restore(room, checkpoint)).toEqual({ kind: "written" });
          projection = await load();
          feed(projection, NOTHING, fed);
        }
        if (round % 3 === 0 && cut.next !== "lost") checkpoint = await boards.dump(room, windows);
      }
      for (const role of ROLES)
        for (const [id, places] of referenceBoards({ edits, activities }, SCORING, role)) await expectBoard(room, id, places, role);
      expect((await loaded(room))?.applied).toMatchObject({ seq: edits.length, activity: activities.length, missing: 0 } satisfies
        Partial<CountedPosition> | object);
      // A restore older than the counted state is refused.
      if (checkpoint !== undefined) expect((await boards.restore(room, checkpoint)).kind).toBe("stale");
    }),
    { numRuns: 60 },
  );
});

test("[BOARD11] a deleted room leaves no board, and no late writer counts into it or restores it", async () => {
  const [room, other] = [newRoom(), newRoom()];
  const many = Array.from({ length: 2 * HOT_MEMBERS }, (_, index) => [`user-${index}`, index + 1, index + 1] as const);
  for (const one of [room, other]) await boards.apply(one, batchOf(0, 10, many));
  const dump = (await boards.dump(room, [ALL_TIME]))!;
  await boards.remove(room, [ALL_TIME]);
  await boards.remove(room, [ALL_TIME]); // Any number of times.
  const left = await connection.redis.keys(`contract:board:{${room}}*`);
  expect(left).toEqual([`contract:board:{${room}}:applied`]);
  expect([await boards.load(room), await boards.dump(room, [ALL_TIME]), (await boards.read(room, "everyone", ALL_TIME)).applied]).toEqual([
    "deleted",
    undefined,
    undefined,
  ]);
  for (const after of [0, 10]) expect(await boards.apply(room, batchOf(after, 11, many))).toMatchObject({ kind: "stale" });
  expect(await boards.restore(room, dump)).toMatchObject({ kind: "stale" });
  expect(await connection.redis.keys(`contract:board:{${room}}*`)).toEqual(left);
  expect((await boards.read(other, "everyone", ALL_TIME)).members).toBe(many.length);
});

test("[BOARD19] no name of a deleted room returns, by a late writer or by a checkpoint; a restored room has its names", async () => {
  const [doomed, other] = [newRoom(), newRoom()];
  const stored = redisNames(connection.redis, keysOf("contract"), { perRoom: 2, perTenant: 3 });
  for (const room of [doomed, other]) {
    await boards.apply(room, batchOf(0, 10, [["ann", 1, 1]]));
    for (const [user, name] of [
      ["ann", "Ann"],
      ["bob", "Bob"],
      ["cy", "Cy"],
      ["ann", "Anna"],
    ] as const)
      await stored.write(room, user, name);
    expect(await stored.read(room, ["ann", "bob", "cy"])).toEqual(
      new Map([
        ["ann", "Anna"],
        ["bob", "Bob"],
      ]),
    );
  }
  const [dump, ofOther] = [(await boards.dump(doomed, [ALL_TIME]))!, (await boards.dump(other, [ALL_TIME]))!];
  await Promise.all([stored.write(doomed, "ann", "Annie"), boards.remove(doomed, [ALL_TIME])]); // Requested before the removal, answered after it.
  const left = [`contract:board:{${doomed}}:applied`];
  expect(await connection.redis.keys(`contract:board:{${doomed}}*`)).toEqual(left);
  expect(await boards.restore(doomed, dump)).toMatchObject({ kind: "stale" });
  expect(await connection.redis.keys(`contract:board:{${doomed}}*`)).toEqual(left);
  await connection.redis.del(await connection.redis.keys(`contract:board:{${other}}*`));
  expect(await boards.restore(other, ofOther)).toEqual({ kind: "written" });
  expect(await stored.read(other, ["ann", "bob"])).toEqual(
    new Map([
      ["ann", "Anna"],
      ["bob", "Bob"],
    ]),
  );
});

test("[BOARD24] a room and a tenant each store names up to their own maximum", async () => {
  const room = newRoom();
  const stored = redisNames(connection.redis, keysOf("contract"), { perRoom: 1, perTenant: 3 });
  const people = tenantBoard("names" as TenantId, "people");
  const users = ["ann", "bob", "cy", "dee"];
  const write = async (owner: BoardOwner) => {
    const outcomes: string[] = [];
    for (const user of users) outcomes.push(await stored.write(owner, user, user.toUpperCase()));
    return outcomes;
  };
  expect(await write(room)).toEqual(["written", "full", "full", "full"]);
  expect(await write(people)).toEqual(["written", "written", "written", "full"]);
  expect([...(await stored.read(people, users)).keys()]).toEqual(users.slice(0, 3));
  expect([await stored.write(people, "ann", "Anna"), await stored.read(people, ["ann"])]).toEqual(["written", new Map([["ann", "Anna"]])]);
});
