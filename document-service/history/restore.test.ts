import { expect, test } from "vitest";

import type { Checkpoint } from "../../shared/bus/checkpoint.ts";
import type { Epoch, Seq, UnixMillis } from "../../shared/ids.ts";
import { EMPTY_STATE } from "../merge.ts";
import { recordsOf, ROOM } from "../testing/one-room.ts";
import { type History, NO_HISTORY } from "./history.ts";
import { type RestoreEffect, type RestoreInput, RoomRestore } from "./restore.ts";
import { encodeSegment } from "./segments.ts";

const RECORDS = recordsOf("abcdef"); // Six records with stream sequences 10 to 60.
const TIME = 9 as UnixMillis;
const SNAPSHOT = { object: `${ROOM}/1-2-old`, bytes: 2, sha256: "x" };
const CHECKPOINT: Checkpoint = {
  epoch: 1 as Epoch,
  seq: 2 as Seq,
  streamSeq: 20,
  time: TIME,
  clients: [],
  epochs: [1, 0],
  snapshot: SNAPSHOT,
};
const VERSION = `${ROOM}/version-1-3-old`;
const SEGMENT = `${ROOM}/edits-1-4-old`;

const checkpointRead = (checkpoint: Checkpoint | undefined): RestoreInput => ({
  kind: "checkpoint-read",
  found: { checkpoint, revision: checkpoint === undefined ? 0 : 5 },
});
const historyRead = (history: History = NO_HISTORY, revision = 0): RestoreInput => ({ kind: "history-read", found: { history, revision } });
const logEnd: RestoreInput = { kind: "log-end-read", end: { kind: "at", seq: 6 as Seq } };
const objectRead = (bytes: Uint8Array | undefined): RestoreInput => ({ kind: "object-read", bytes });
const recordsRead = (from: number, to: number): RestoreInput => ({ kind: "records-read", records: RECORDS.slice(from - 1, to) });
const merged: RestoreInput = { kind: "merged", merged: { state: EMPTY_STATE, refused: 0 } };
const unread = (why: "busy" | "unreadable"): RestoreInput => ({ kind: "merged", merged: why });
const snapshotWritten: RestoreInput = { kind: "snapshot-written", written: { object: `${ROOM}/new`, bytes: 2, sha256: "y" } };
const historyWritten = (kind: "written" | "superseded"): RestoreInput => ({
  kind: "history-written",
  write: kind === "written" ? { kind, revision: 8 } : { kind },
});
const checkpointWritten = (kind: "written" | "superseded"): RestoreInput => ({
  kind: "checkpoint-written",
  write: kind === "written" ? { kind, revision: 6 } : { kind },
});
const readHistory = { kind: "read-history" };

/** Returns the effect of the last input. */
function restoreOf(snapshots: readonly string[], history: readonly string[] = []): (...inputs: readonly RestoreInput[]) => RestoreEffect {
  const restore = new RoomRestore(ROOM, { snapshots, history }, { newName: () => "new", digest: () => "digest" });
  let effect = restore.begin();
  return (...inputs) => {
    for (const input of inputs) effect = restore.receive(input, TIME);
    return effect;
  };
}

test("[RSO1] a room is complete if its checkpoint and snapshot exist, or if it never had a checkpoint", () => {
  const receive = restoreOf([SNAPSHOT.object]);
  expect(receive()).toEqual({ kind: "read-checkpoint" });
  expect(receive(checkpointRead(CHECKPOINT))).toEqual(readHistory);
  expect(receive(historyRead())).toEqual({ kind: "read-log-end" });
  expect(receive(logEnd)).toMatchObject({ kind: "read-verified-snapshot", object: SNAPSHOT.object });
  expect(receive(objectRead(EMPTY_STATE))).toEqual(readHistory);
  expect(receive(historyRead())).toEqual({ kind: "end", restored: { kind: "whole" } });
  expect(restoreOf([])(checkpointRead(undefined), historyRead(), logEnd, historyRead())).toEqual({
    kind: "end",
    restored: { kind: "whole" },
  });
});

test("[RSO2] a room that its log or its history knows to be deleted is marked deleted and not rebuilt", () => {
  const marked = { kind: "write-checkpoint", entry: { deleted: true, time: TIME, wiping: true }, revision: 5 };
  const byLog = restoreOf([SNAPSHOT.object]);
  const deletedEnd: RestoreInput = { kind: "log-end-read", end: { kind: "deleted", streamSeq: 70 } };
  expect(byLog(checkpointRead(CHECKPOINT), historyRead(), deletedEnd)).toEqual(marked);
  expect(byLog(checkpointWritten("superseded"))).toEqual({ kind: "end", restored: { kind: "deleted" } });
  const byHistory = restoreOf([SNAPSHOT.object]);
  expect(byHistory(checkpointRead(CHECKPOINT), historyRead({ ...NO_HISTORY, deleted: true }, 1), logEnd)).toEqual(marked);
});

test("[RSO3] a rebuilt room begins from its newest readable state and merges the log behind the checkpoint's place", () => {
  const receive = restoreOf([`${ROOM}/1-2-a`, `${ROOM}/1-1-b`]);
  expect(receive(checkpointRead(CHECKPOINT), historyRead(), logEnd, objectRead(undefined))).toMatchObject({ object: `${ROOM}/1-2-a` });
  expect(receive(objectRead(Uint8Array.of(1)))).toEqual({ kind: "merge", state: Uint8Array.of(1), edits: [] });
  expect(receive(unread("unreadable"))).toMatchObject({ kind: "read-object", store: "snapshots", object: `${ROOM}/1-1-b` });
  expect(receive(objectRead(EMPTY_STATE), merged)).toEqual({ kind: "read-records", through: 20 });
  expect(receive(recordsRead(1, 2))).toMatchObject({ kind: "merge", state: EMPTY_STATE, edits: { length: 1 } });
  expect(receive(merged)).toMatchObject({ kind: "write-snapshot", object: `${ROOM}/1-2-new` });
  expect(receive(snapshotWritten)).toMatchObject({ kind: "write-checkpoint", entry: { seq: 2, streamSeq: 20 }, revision: 5 });
  expect(receive(checkpointWritten("written"), historyRead())).toEqual({ kind: "end", restored: { kind: "rebuilt", seq: 2, missing: 0 } });
});

test("[RSO4] an object ahead of the checkpoint adds the complete log to the merge, and edits that no source contains are counted", () => {
  const receive = restoreOf([], [SEGMENT]);
  expect(receive(checkpointRead(CHECKPOINT), historyRead(), logEnd)).toEqual({ kind: "read-object", store: "history", object: SEGMENT });
  receive(objectRead(encodeSegment(ROOM, RECORDS.slice(0, 4))));
  expect(receive(objectRead(undefined))).toEqual({ kind: "read-records", through: Number.MAX_SAFE_INTEGER });
  receive(recordsRead(6, 6), merged);
  expect(receive(snapshotWritten)).toMatchObject({ entry: { seq: 6, streamSeq: 60, leftOut: 1 } });
  receive(checkpointWritten("superseded"));
  expect(receive(historyRead())).toMatchObject({
    kind: "write-history",
    history: { segments: [{ object: SEGMENT, lastSeq: 4 }], through: 40 },
  });
  expect(receive(historyWritten("written"))).toEqual({ kind: "end", restored: { kind: "superseded" } });
});

test("[RSO7] a room whose history another process wrote during the restore counts as not restored", () => {
  const receive = restoreOf([], [SEGMENT]);
  receive(checkpointRead(undefined), historyRead(), logEnd, objectRead(encodeSegment(ROOM, RECORDS.slice(0, 4))));
  receive(recordsRead(6, 6), merged, snapshotWritten, checkpointWritten("written"));
  expect(receive(historyRead())).toMatchObject({ kind: "write-history" });
  expect(receive(historyWritten("superseded"))).toEqual({ kind: "end", restored: { kind: "superseded" } });
});

test("[RSO5] the restored entry names every segment and version that is there, and keeps known facts of a version", () => {
  const known = { object: VERSION, id: "v", bytes: 2, sha256: "z", epoch: 1 as Epoch, seq: 3 as Seq, time: TIME, name: "draft" };
  const before: History = { ...NO_HISTORY, versions: [known], through: 10 };
  const receive = restoreOf([SNAPSHOT.object], [SEGMENT, VERSION]);
  receive(checkpointRead(CHECKPOINT), historyRead(before, 3), logEnd, objectRead(encodeSegment(ROOM, RECORDS.slice(0, 4))));
  expect(receive(objectRead(EMPTY_STATE), historyRead(before, 3))).toEqual({ kind: "read-object", store: "history", object: VERSION });
  expect(receive(objectRead(EMPTY_STATE))).toMatchObject({
    kind: "write-history",
    history: { versions: [known], segments: [{ object: SEGMENT }], through: 40 },
    revision: 3,
  });
});

test("[RSO6] a state that could not be checked makes the restore fail, so that no older state replaces it", () => {
  const receive = restoreOf([`${ROOM}/1-2-a`]);
  receive(checkpointRead(undefined), historyRead(), logEnd, objectRead(EMPTY_STATE));
  expect(receive(unread("busy"))).toMatchObject({ kind: "fail", why: expect.stringContaining(`${ROOM}/1-2-a`) as string });
});
