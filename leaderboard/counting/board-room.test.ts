import { expect, test } from "vitest";

import type { Epoch, Millis, RoomKey, Seq, UnixMillis, UserId } from "../../shared/ids.ts";
import { type BoardsDump, NO_USES, NOTHING_APPLIED } from "../boards/board.ts";
import { ALL_TIME, type Window, windowAt } from "../boards/windows.ts";
import { PassAnswers } from "../testing/pass-answers.ts";
import { recordOf, SCORING } from "../testing/records.ts";
import { BoardRoom } from "./board-room.ts";
import type { BoardRoomEffect, BoardRoomInput, BoardRoomRequest } from "./board-room-messages.ts";
import { decodeReceived } from "./received.ts";

const ROOM = "acme.notes" as RoomKey;
const NOON = Date.UTC(2026, 6, 1, 12) as UnixMillis;
const CHECKPOINT_MS = 1_000;
const at = (ms: number) => ms as Millis;
const dumpTo = (seq: number): BoardsDump => ({
  applied: { ...NOTHING_APPLIED, seq: seq as Seq },
  uses: NO_USES,
  names: new Map(),
  boards: [],
});

/** The room's requests wait until the test answers them. */
function begin() {
  const [room, answers] = [new BoardRoom(ROOM, { ...SCORING, boardCheckpointMsMax: CHECKPOINT_MS }), new PassAnswers()];
  const waiting: BoardRoomRequest[] = [];
  const notices: BoardRoomEffect[] = [];
  const feed = (input: BoardRoomInput, now = 0): void => {
    for (const effect of room.receiveInput(input, at(now))) {
      switch (effect.kind) {
        case "confirm-activities":
          feed({ kind: "activities-confirmed" }, now);
          break;
        case "set-aside":
        case "fail":
        case "counted":
        case "edits-missing":
        case "boards-removed":
          notices.push(effect);
          break;
        default:
          waiting.push(effect);
      }
    }
  };
  /** Returns the kind of the request that was answered. */
  const answerNext = (now = 0): string | undefined => {
    const request = waiting.shift();
    if (request !== undefined) feed(answers.answerRoom(ROOM, request), now);
    return request?.kind;
  };
  const answerAll = (now = 0): string[] => {
    const kinds: string[] = [];
    for (let kind = answerNext(now); kind !== undefined; kind = answerNext(now)) kinds.push(kind);
    return kinds;
  };
  const edit = (seq: number, now = 0, time = NOON): void => {
    const bytes = recordOf(seq, [{ user: "ann" as UserId, bytes: 1, time }]);
    const decoded = decodeReceived("edits", { room: ROOM, streamSeq: seq, time, bytes });
    if (decoded.kind === "received") feed({ kind: "received", received: decoded.received }, now);
  };
  return { room, answers, feed, answerNext, answerAll, edit, notices, waiting };
}

test("[BROOM1] edits that arrive during the look-up are counted after it, and only if they are not counted yet", () => {
  const { room, answers, feed, answerAll, edit } = begin();
  answers.applied.set(ROOM, { ...NOTHING_APPLIED, epoch: 1 as Epoch, seq: 1 as Seq, time: NOON });
  feed({ kind: "open" });
  edit(1);
  edit(2);
  expect([room.pending, room.isOpening]).toEqual([2, true]);
  expect(answerAll()).toEqual(["look-up"]);
  expect([room.pending, room.isOpening]).toEqual([1, false]);
});

test("[BROOM2] boards that lack what the checkpoint has are restored before the room counts", () => {
  const { answers, feed, answerAll, edit, room } = begin();
  answers.checkpoints.set(ROOM, { dump: dumpTo(5), revision: 3 });
  feed({ kind: "open" });
  edit(6);
  expect(answerAll()).toEqual(["look-up", "read-checkpoint", "open-windows", "restore", "load"]);
  expect([answers.applied.get(ROOM)?.seq, room.pending]).toEqual([5, 1]);
});

test("[BROOM3] a batch registers its windows first, and an hour's next batch has nothing new to register", () => {
  const { feed, answerAll, edit, notices } = begin();
  feed({ kind: "open" });
  answerAll();
  edit(1);
  feed({ kind: "apply" });
  expect(answerAll()).toEqual(["open-windows", "apply-batch"]);
  edit(2);
  feed({ kind: "apply" });
  expect(answerAll()).toEqual(["apply-batch"]);
  expect(notices).toEqual([
    { kind: "counted", edits: 1 },
    { kind: "counted", edits: 1 },
  ]);
});

test("[BROOM4] one batch is under way at a time, and what arrives meanwhile is applied after it", () => {
  const { feed, answerAll, edit, waiting, room } = begin();
  feed({ kind: "open" });
  answerAll();
  edit(1);
  feed({ kind: "apply" });
  edit(2);
  feed({ kind: "apply" });
  expect([waiting.length, room.isApplying]).toEqual([1, true]);
  expect(answerAll()).toEqual(["open-windows", "apply-batch", "apply-batch"]);
  expect([room.isApplying, room.pending]).toEqual([false, 0]);
});

test("[BROOM5] boards with another mark than expected make the room fail", () => {
  const { answers, feed, answerAll, edit, notices } = begin();
  feed({ kind: "open" });
  answerAll();
  edit(1);
  answers.applied.set(ROOM, { ...NOTHING_APPLIED, seq: 7 as Seq });
  feed({ kind: "apply" });
  answerAll();
  expect(notices.map(({ kind }) => kind)).toEqual(["fail"]);
});

test("[BROOM6] a checkpoint is due after its time, is applied and sent first, and covers what came before it", () => {
  const { feed, answerAll, answerNext, edit, room } = begin();
  feed({ kind: "open" });
  answerAll();
  edit(1, 100);
  const isDue = (now: number): boolean => room.isCheckpointDue(at(now), { isPressed: false });
  expect([isDue(100 + CHECKPOINT_MS - 1), isDue(100 + CHECKPOINT_MS)]).toEqual([false, true]);
  feed({ kind: "save" });
  expect([room.isSaving, isDue(5_000)]).toEqual([true, false]);
  expect([answerNext()]).toEqual(["open-windows"]);
  edit(2, 200);
  expect(answerAll()).toEqual(["apply-batch", "apply-batch", "send-totals", "dump", "write-checkpoint"]);
  expect([room.isSaving, room.uncoveredFrom("edits"), room.canRetire]).toEqual([false, 2, false]);
});

test("[BROOM7] a room can leave memory once it is idle, covered by a checkpoint, and its totals are sent", () => {
  const { feed, answerAll, edit, room } = begin();
  feed({ kind: "open" });
  answerAll();
  edit(1);
  expect(room.canRetire).toBe(false);
  expect(room.isCheckpointDue(at(0), { isPressed: true })).toBe(false);
  feed({ kind: "apply" });
  answerAll();
  expect(room.isCheckpointDue(at(0), { isPressed: true })).toBe(true);
  feed({ kind: "save" });
  answerAll();
  expect(room.canRetire).toBe(true);
});

test("[BROOM8] a deleted room removes its boards once its batch has ended, the checkpoint first, and only once", () => {
  const { feed, answerAll, answerNext, edit, room, notices } = begin();
  feed({ kind: "open" });
  answerAll();
  edit(1);
  feed({ kind: "apply" });
  feed({ kind: "deleted", streamSeq: 2 });
  expect([room.pending, room.uncoveredFrom("edits"), room.isCheckpointDue(at(0), { isPressed: false })]).toEqual([0, 2, true]);
  feed({ kind: "save" });
  expect([answerNext(), answerNext()]).toEqual(["open-windows", "apply-batch"]);
  expect(answerAll()).toEqual(Array.from({ length: 6 }, () => "remove"));
  expect(notices.at(-1)).toEqual({ kind: "boards-removed" });
  expect([room.isCovered, room.canRetire]).toEqual([true, true]);
});

test("[BROOM9] a room that is deleted during its look-up waits for the end of the look-up before it is removed", () => {
  const { feed, answerAll, room } = begin();
  feed({ kind: "open" });
  feed({ kind: "deleted", streamSeq: 2 });
  expect(room.isCheckpointDue(at(0), { isPressed: true })).toBe(false);
  expect(answerAll()).toEqual(["look-up"]);
  expect(room.isCheckpointDue(at(0), { isPressed: true })).toBe(true);
});

test("[BROOM10] a room whose checkpoint does not decode holds back its streams' floor and keeps no entries", () => {
  const { feed, edit, room, notices } = begin();
  feed({ kind: "open" });
  edit(4);
  feed({ kind: "undecodable", cause: new Error("it does not decode") });
  edit(5);
  expect([room.isAside, room.pending, room.uncoveredFrom("edits"), room.canRetire]).toEqual([true, 0, 4, false]);
  expect(notices.map(({ kind }) => kind)).toEqual(["set-aside"]);
});

test("[BROOM11] boards that have less than the room has counted are not saved as a checkpoint", () => {
  const { feed, answerAll, answerNext, edit, notices, waiting } = begin();
  feed({ kind: "open" });
  answerAll();
  edit(1);
  feed({ kind: "save" });
  while (waiting[0]?.kind !== "dump") answerNext();
  feed({ kind: "dumped", dump: dumpTo(0) });
  expect(notices.at(-1)).toMatchObject({ kind: "fail", reason: "stale" });
  expect(waiting.map(({ kind }) => kind)).toEqual(["dump"]);
});

test("[BROOM12] the totals of a room are sent again after a change of the leaderboard: of windows in its checkpoint, and of entries already counted", () => {
  const looked = (windows: readonly Window[]) => {
    const started = begin();
    const mark = { seq: 1 as Seq, activity: 0, windows, revision: 1, isDeleted: false };
    started.feed({ kind: "open" });
    started.waiting.length = 0;
    const applied = { ...NOTHING_APPLIED, epoch: 1 as Epoch, seq: 1 as Seq, time: NOON };
    started.feed({ kind: "looked-up", stored: { applied, uses: NO_USES }, mark });
    return started;
  };
  expect(looked([ALL_TIME]).room.hasUnsentTotals).toBe(true);
  const { room, edit } = looked([]);
  expect(room.hasUnsentTotals).toBe(false);
  edit(1);
  expect(room.hasUnsentTotals).toBe(true);
});

test("[BROOM13] a deleted room whose checkpoint does not decode is removed, and not set aside", () => {
  const { feed, answerAll, room, waiting } = begin();
  feed({ kind: "open" });
  feed({ kind: "deleted", streamSeq: 2 });
  waiting.length = 0;
  feed({ kind: "undecodable", cause: new Error("it does not decode") });
  expect([room.isAside, room.isCheckpointDue(at(0), { isPressed: false })]).toEqual([false, true]);
  feed({ kind: "save" });
  expect(answerAll()).toEqual(Array.from({ length: 6 }, () => "remove"));
});

test("[BROOM14] entries that arrived during the look-up hold back the floor only if the stored checkpoint does not cover them", () => {
  const { answers, feed, answerAll, edit, room } = begin();
  answers.checkpoints.set(ROOM, { dump: dumpTo(5), revision: 3 });
  answers.applied.set(ROOM, { ...NOTHING_APPLIED, epoch: 1 as Epoch, seq: 5 as Seq, time: NOON });
  feed({ kind: "open" });
  for (const seq of [4, 5, 6]) edit(seq);
  expect(room.uncoveredFrom("edits")).toBe(4);
  expect(answerAll()).toEqual(["look-up"]);
  expect(room.uncoveredFrom("edits")).toBe(6);
});

test("[BROOM15] a checkpoint is written only after the totals that were being sent, and those that it covers, have arrived", () => {
  const { feed, answerAll, answerNext, edit, waiting } = begin();
  feed({ kind: "open" });
  answerAll();
  edit(1);
  feed({ kind: "apply" });
  answerAll();
  feed({ kind: "send-totals" });
  edit(2);
  feed({ kind: "save" });
  expect(waiting.map(({ kind }) => kind)).toEqual(["send-totals", "apply-batch"]);
  waiting.reverse();
  expect([answerNext(), waiting.map(({ kind }) => kind)]).toEqual(["apply-batch", ["send-totals"]]);
  expect([answerNext(), waiting.map(({ kind }) => kind)]).toEqual(["send-totals", ["send-totals"]]);
  expect(answerAll()).toEqual(["send-totals", "dump", "write-checkpoint"]);
});

test("[BROOM16] a checkpoint names the windows of a batch that is being applied, because the boards may already have its points", () => {
  const { feed, answerAll, answerNext, edit, waiting } = begin();
  feed({ kind: "open" });
  answerAll();
  edit(1);
  feed({ kind: "save" });
  while (waiting[0]?.kind !== "send-totals") answerNext();
  const later = (NOON + 3_600_000) as UnixMillis;
  edit(2, 0, later);
  feed({ kind: "apply" });
  waiting.reverse();
  expect(answerNext()).toBe("open-windows");
  expect(waiting.map(({ kind }) => kind)).toEqual(["send-totals", "apply-batch"]);
  answerNext();
  const [, dump] = waiting;
  expect(dump?.kind === "dump" ? dump.windows.map(({ id }) => id) : dump).toContain(windowAt("hour", later).id);
});

test("[BROOM17] boards that another leaderboard has counted further are not saved: the room does not know all of their windows", () => {
  const { answers, feed, answerAll, edit, notices, waiting, answerNext } = begin();
  feed({ kind: "open" });
  answerAll();
  edit(1);
  feed({ kind: "save" });
  while (waiting[0]?.kind !== "dump") answerNext();
  answers.applied.set(ROOM, { ...NOTHING_APPLIED, epoch: 1 as Epoch, seq: 2 as Seq, time: (NOON + 3_600_000) as UnixMillis });
  expect(answerAll()).toEqual(["dump"]);
  expect(notices.at(-1)).toMatchObject({ kind: "fail", reason: "stale" });
});

test("[BROOM18] a room that is deleted while its checkpoint waits for totals is removed, not saved", () => {
  const { feed, answerAll, answerNext, edit, waiting, room } = begin();
  feed({ kind: "open" });
  answerAll();
  edit(1);
  feed({ kind: "save" });
  while (waiting[0]?.kind !== "send-totals") answerNext();
  feed({ kind: "deleted", streamSeq: 2 });
  expect([answerAll(), room.isSaving]).toEqual([["send-totals"], false]);
  feed({ kind: "save" });
  expect(answerAll()).toEqual(Array.from({ length: 6 }, () => "remove"));
});
