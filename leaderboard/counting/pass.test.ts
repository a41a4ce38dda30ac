import { expect, test } from "vitest";

import { LogEndLost } from "../../shared/bus/record.ts";
import type { Millis, RoomKey, Seq, UnixMillis, UserId } from "../../shared/ids.ts";
import { NO_USES, NOTHING_APPLIED } from "../boards/board.ts";
import { windowAt } from "../boards/windows.ts";
import type { ProgressReport } from "../ports.ts";
import { PassAnswers } from "../testing/pass-answers.ts";
import { recordOf, SCORING } from "../testing/records.ts";
import { CountingPass } from "./pass.ts";
import type { PassEffect, PassInput, PassNotice, PassRequest } from "./pass-messages.ts";

const [ROOM, OTHER] = ["acme.notes", "acme.plan"] as [RoomKey, RoomKey];
const NOON = Date.UTC(2026, 6, 1, 12);
const SENTINEL = { service: "s", number: 1 };
const OPTIONS = {
  ...SCORING,
  service: "s",
  boardReadMs: 400,
  boardBatchMs: 100,
  boardWritesMax: 4,
  boardTotalsMs: 300,
  boardCheckpointMsMax: 1_000,
  boardCheckpointWritesMax: 4,
  boardPendingEditsMax: 100,
  boardRoomsMax: 100,
  boardOpeningsMax: 10,
  boardArchivedMax: 10,
  boardArchiveGraceMs: 0,
  logPartitions: 1,
};
const NOTICES: readonly string[] = [
  "follow",
  "floor-raised",
  "restoring",
  "caught-up",
  "counted",
  "edits-missing",
  "record-undecodable",
  "set-aside",
  "boards-removed",
  "archived",
  "failed",
] satisfies PassNotice["kind"][];

/** Requests are answered at once, but for those that `hold` names: they wait in `held`. */
function begin({
  floor = 0,
  sentinel = SENTINEL as typeof SENTINEL | undefined,
  watched = [] as RoomKey[],
  hold = new Set<string>(),
  acceptsGaps = false,
  through = 0,
} = {}) {
  const pass = new CountingPass(1, { floor: { edits: floor, sentinel, acceptsGaps }, through: through as UnixMillis }, OPTIONS, {
    watchedRooms: () => watched,
    countedPartitions: () => 1,
  });
  const answers = new PassAnswers();
  const [notices, requests, held]: [PassNotice[], string[], PassRequest[]] = [[], [], []];
  /** The progress that each sentinel reported. */
  const reports: ProgressReport[] = [];
  let now = 0;
  const nameOf = (request: PassRequest): string => (request.kind === "room" ? request.request.kind : request.kind);
  const feed = (...inputs: PassInput[]): void => {
    for (let input = inputs.shift(); input !== undefined; input = inputs.shift()) {
      for (const effect of pass.receiveInput(input, { now: now as Millis, wallNow: (NOON + now) as UnixMillis })) {
        if (isNotice(effect)) notices.push(effect);
        else {
          requests.push(nameOf(effect));
          if (effect.kind === "write-sentinel") reports.push(effect.report);
          if (hold.has(nameOf(effect))) held.push(effect);
          else inputs.push(answers.answer(effect));
        }
      }
    }
  };
  const advance = (ms: number): void => {
    for (const end = now + ms; ;) {
      const at = pass.nextTickAt;
      if (at > end) return void (now = end);
      now = Math.max(now, at);
      feed({ kind: "tick" });
    }
  };
  const edit = (room: RoomKey, seq: number, streamSeq: number): void => {
    answers.ends.edits = Math.max(answers.ends.edits, streamSeq);
    const bytes = recordOf(seq, [{ user: "ann" as UserId, bytes: 1, time: NOON as UnixMillis }]);
    feed({ kind: "record", source: "edits", stored: { room, streamSeq, time: NOON as UnixMillis, bytes } });
  };
  const release = (): void => {
    hold.clear();
    feed(...held.splice(0).map((request) => answers.answer(request)));
  };
  const take = (): string[] => requests.splice(0);
  return { pass, answers, feed, advance, edit, release, notices, requests, reports, take, held, now: () => now };
}

function isNotice(effect: PassEffect): effect is PassNotice {
  return NOTICES.includes(effect.kind);
}

test("[PASS1] a pass that finds its sentinel restores nothing and follows both streams from the floor", () => {
  const { feed, notices, take } = begin({ floor: 7 });
  feed({ kind: "begin" });
  expect(take().slice(0, 3)).toEqual(["read-forgotten", "read-progress", "write-sentinel"]);
  expect(notices.filter(({ kind }) => kind === "follow")).toEqual([
    { kind: "follow", source: "edits", after: 7 },
    { kind: "follow", source: "activities", after: 0 },
  ]);
});

test("[PASS2] a pass that finds no sentinel restores the rooms that have checkpoints before it reads on", () => {
  const { feed, answers, notices, take } = begin({ floor: 7 });
  answers.beat = { kind: "lost" };
  for (const room of [ROOM, OTHER]) {
    const dump = { applied: { ...NOTHING_APPLIED, seq: 3 as Seq }, uses: NO_USES, names: new Map(), boards: [] };
    answers.checkpoints.set(room, { dump, revision: 1 });
  }
  feed({ kind: "begin" });
  const requests = take();
  expect(requests.filter((kind) => kind === "restore")).toHaveLength(2);
  expect(requests.lastIndexOf("load")).toBeLessThan(requests.indexOf("begin-progress"));
  expect(notices.map(({ kind }) => kind).slice(0, 4)).toEqual(["restoring", "floor-raised", "follow", "follow"]);
});

test("[PASS20] regular work looks only at rooms with work left, and never at rooms that are only restored", () => {
  const { pass, feed, answers, advance, edit, release } = begin({ hold: new Set(["load"]) });
  const dump = { applied: { ...NOTHING_APPLIED, seq: 3 as Seq }, uses: NO_USES, names: new Map(), boards: [] };
  answers.checkpoints.set(OTHER, { dump, revision: 1 });
  answers.beat = { kind: "lost" };
  feed({ kind: "begin" });
  const active = () => [...pass.rooms.active].map(({ key }) => key);
  expect(active()).toEqual([]);
  release();
  for (const seq of [1, 2]) {
    edit(ROOM, seq, seq);
    expect(active()).toEqual([ROOM]);
    advance(2_000);
    expect([active(), pass.rooms.size]).toEqual([[], 1]);
  }
});

test("[PASS3] all rooms are counted once in the batch interval, and the pass has caught up once the ends are counted", () => {
  const { pass, feed, advance, edit, notices, answers } = begin();
  feed({ kind: "begin" });
  edit(ROOM, 1, 1);
  edit(OTHER, 1, 2);
  advance(99);
  expect(notices.filter(({ kind }) => kind === "counted")).toEqual([]);
  advance(1);
  expect(notices.filter(({ kind }) => kind === "counted")).toHaveLength(2);
  expect(pass.hasCaughtUp).toBe(true);
  expect(answers.applied.size).toBe(2);
});

test("[PASS4] a room with a watched board is counted four times in the batch interval, the others once in the reading interval", () => {
  const { feed, advance, edit, notices } = begin({ watched: [ROOM] });
  feed({ kind: "begin" });
  edit(ROOM, 1, 1);
  edit(OTHER, 1, 2);
  advance(400);
  notices.splice(0);
  edit(ROOM, 2, 3);
  edit(OTHER, 2, 4);
  advance(25);
  expect(notices.flatMap((notice) => (notice.kind === "counted" ? [notice.room] : []))).toEqual([ROOM]);
  advance(374);
  expect(notices.flatMap((notice) => (notice.kind === "counted" ? [notice.room] : []))).toEqual([ROOM]);
  advance(1);
  expect(notices.flatMap((notice) => (notice.kind === "counted" ? [notice.room] : []))).toEqual([ROOM, OTHER]);
});

test("[PASS5] the floor rises to what checkpoints cover, and only with a sentinel that was sent after them", () => {
  const { feed, advance, edit, notices } = begin();
  feed({ kind: "begin" });
  edit(ROOM, 1, 1);
  advance(1_500);
  const floorOf = (): number | undefined => notices.findLast((notice) => notice.kind === "floor-raised")?.floor.edits;
  expect(floorOf()).toBe(0);
  advance(600);
  expect(floorOf()).toBe(1);
});

test("[PASS6] a sentinel that shows that Redis was unreachable ends the pass", () => {
  const { pass, feed, advance, answers, notices } = begin();
  feed({ kind: "begin" });
  answers.beat = { kind: "doubtful", sentinel: SENTINEL };
  advance(1_000);
  expect([pass.isOver, pass.reason, notices.at(-1)?.kind]).toEqual([true, "doubtful", "failed"]);
  expect(pass.nextTickAt).toBe(Number.POSITIVE_INFINITY);
});

test("[PASS7] boards with another mark than expected end the pass, and later inputs begin no work", () => {
  const { pass, feed, advance, edit, answers, take } = begin();
  feed({ kind: "begin" });
  edit(ROOM, 1, 1);
  answers.applied.set(ROOM, { ...NOTHING_APPLIED, seq: 7 as Seq });
  advance(100);
  expect([pass.isOver, pass.reason]).toEqual([true, "stale"]);
  take();
  edit(ROOM, 2, 2);
  edit(OTHER, 1, 3);
  expect(take()).toEqual([]);
});

test("[PASS8] a stream of activities that ends before what was read of it ends the pass", () => {
  const { pass, feed, advance, edit, answers } = begin();
  feed({ kind: "begin" });
  edit(ROOM, 1, 9);
  answers.ends.activities = -1;
  advance(1_000);
  expect([pass.isOver, pass.reason]).toEqual([true, "failed"]);
});

test("[PASS9] one sentinel is written at a time", () => {
  const hold = new Set<string>();
  const { feed, advance, take, release } = begin({ hold });
  feed({ kind: "begin" });
  take();
  hold.add("write-sentinel");
  advance(5_000);
  expect(take().filter((kind) => kind === "write-sentinel")).toHaveLength(1);
  release();
  advance(1_000);
  expect(take().filter((kind) => kind === "write-sentinel")).toHaveLength(1);
});

test("[PASS10] a pass that stops ends the batch under way, and its drain saves every room and raises the floor", () => {
  const hold = new Set(["apply-batch"]);
  const { pass, feed, advance, edit, release, answers, notices, held, now } = begin({ hold });
  feed({ kind: "begin" });
  edit(ROOM, 1, 1);
  edit(OTHER, 1, 2);
  advance(100);
  expect(held).toHaveLength(2);
  feed({ kind: "stop" });
  release();
  expect([pass.reason, answers.checkpoints.size, answers.applied.size]).toEqual(["lease", 0, 2]);
  feed({ kind: "drain", until: (now() + 1_000) as Millis });
  expect(answers.checkpoints.size).toBe(2);
  expect(notices.findLast((notice) => notice.kind === "floor-raised")?.floor.edits).toBe(2);
});

test("[PASS11] a drain begins no checkpoint after its time", () => {
  const { feed, edit, answers, now } = begin();
  feed({ kind: "begin" });
  edit(ROOM, 1, 1);
  feed({ kind: "stop" });
  feed({ kind: "drain", until: now() as Millis });
  expect(answers.checkpoints.size).toBe(0);
});

test("[PASS12] a request that fails ends the pass, with its cause", () => {
  const { pass, feed, notices } = begin();
  feed({ kind: "begin" });
  const cause = new Error("Redis is away");
  feed({ kind: "failed", cause });
  expect([pass.reason, notices.at(-1)]).toMatchObject(["failed", { kind: "failed", cause, floor: { edits: 0, sentinel: SENTINEL } }]);
});

test("[PASS13] a pass that has caught up counts its rooms in parts, and one that catches up counts all at once", () => {
  const { pass, feed, advance, edit, notices } = begin();
  const rooms = Array.from({ length: 10 }, (_, index) => `acme.room-${index}` as RoomKey);
  const counted = (): number => notices.splice(0).filter(({ kind }) => kind === "counted").length;
  feed({ kind: "begin" });
  rooms.forEach((room, index) => edit(room, 1, 1 + index));
  advance(100);
  expect([counted(), pass.hasCaughtUp]).toEqual([10, true]);
  rooms.forEach((room, index) => edit(room, 2, 11 + index));
  const inEachTurn = Array.from({ length: 6 }, () => (advance(100), counted()));
  expect(inEachTurn).toEqual([2, 2, 2, 2, 2, 0]);
});

test("[PASS14] an edit after a gap is not counted, and the next pass reads the log from its first record", () => {
  const counting = begin({ floor: 7 });
  counting.feed({ kind: "begin" });
  counting.edit(ROOM, 1, 8);
  counting.edit(OTHER, 3, 9);
  expect([counting.pass.isOver, counting.pass.reason]).toEqual([true, "gap"]);
  const notice = counting.notices.at(-1);
  expect(notice?.kind === "failed" ? notice.floor : notice).toEqual({ edits: 0, sentinel: SENTINEL });
  counting.feed({ kind: "stop" }, { kind: "drain", until: 1_000 as Millis });
  expect(counting.answers.applied.get(OTHER)?.seq ?? 0).toBe(0);
});

test("[PASS15] a pass that reads the log from its first record counts edits after a gap", () => {
  const { pass, feed, advance, edit, answers, notices } = begin();
  feed({ kind: "begin" });
  edit(ROOM, 3, 9);
  advance(100);
  expect([pass.isOver, answers.applied.get(ROOM)?.seq]).toEqual([false, 3]);
  expect(notices).toContainEqual({ kind: "edits-missing", room: ROOM, streamSeq: 9, missing: 2 });
});

test("[PASS16] a gap ends no further pass until Redis may have lost data again", () => {
  const { pass, feed, advance, edit, answers, notices } = begin({ floor: 7, acceptsGaps: true });
  const floorOf = () => notices.findLast((notice) => notice.kind === "floor-raised")?.floor;
  feed({ kind: "begin" });
  edit(ROOM, 3, 9);
  advance(2_100);
  expect([pass.isOver, answers.applied.get(ROOM)?.seq, floorOf()?.acceptsGaps]).toEqual([false, 3, true]);
  answers.beat = { kind: "doubtful", sentinel: SENTINEL };
  advance(1_000);
  expect([pass.reason, floorOf()?.acceptsGaps]).toEqual(["doubtful", false]);
});

test("[PASS17] after the log has lost its end, the next pass reads it from its first record", () => {
  const { feed, notices } = begin({ floor: 40 });
  feed({ kind: "begin" });
  feed({ kind: "failed", cause: new LogEndLost("the log ends before the last record that was read", true) });
  expect(notices.slice(-2)).toMatchObject([
    { kind: "floor-raised", floor: { edits: 0 } },
    { kind: "failed", floor: { edits: 0 } },
  ]);
});

test("[PASS18] while a room with read entries is looked up, the pass is not up to date: it reports no totals and archives nothing", () => {
  const { pass, feed, edit, advance, release, reports, take } = begin({ hold: new Set(["look-up"]), through: NOON - 50 });
  feed({ kind: "begin" });
  edit(ROOM, 1, 1);
  advance(5_000);
  expect([pass.hasCaughtUp, pass.through, take().includes("archiving")]).toEqual([false, NOON - 50, false]);
  expect(reports.length).toBeGreaterThan(2);
  expect(reports.every(({ totalsSent, isRebuilding }) => totalsSent === 0 && isRebuilding)).toBe(true);
  release();
  advance(5_000);
  expect([pass.hasCaughtUp, take().includes("archiving"), reports.at(-1)!.totalsSent > NOON]).toEqual([true, true, true]);
});

test("[PASS19] boards count as restored only after the tenants' boards have received their points", () => {
  const { feed, answers, release, held, take } = begin({ hold: new Set(["send-totals"]) });
  answers.beat = { kind: "lost" };
  const hour = windowAt("hour", NOON as UnixMillis);
  const boards = [{ role: "everyone" as const, window: hour, standings: [] }];
  const dump = { applied: { ...NOTHING_APPLIED, seq: 3 as Seq }, uses: NO_USES, names: new Map(), boards };
  answers.checkpoints.set(ROOM, { dump, revision: 1 });
  feed({ kind: "begin" });
  expect([held.length, take().includes("begin-progress")]).toEqual([1, false]);
  release();
  expect(take()).toContain("begin-progress");
});
