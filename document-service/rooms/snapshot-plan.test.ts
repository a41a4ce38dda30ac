import { expect, test } from "vitest";

import type { Checkpoint } from "../../shared/bus/checkpoint.ts";
import type { Millis, UnixMillis } from "../../shared/ids.ts";
import { recordsOf, ROOM } from "../testing/one-room.ts";
import { Document } from "./document.ts";
import { SnapshotPlan, type SnapshotPlanOptions } from "./snapshot-plan.ts";

const OPTIONS: SnapshotPlanOptions = {
  snapshotEditsMax: 100,
  snapshotBytesMax: 100_000,
  snapshotAgeMsMax: 1_000,
  snapshotIntervalMsMin: 100,
  replayWindowMs: 1_000,
  boardsHoldMsMax: 60_000,
  mergeEditsMax: 100,
  mergeBytesMax: 200,
  stalledBytesMax: 400,
  documentIdleMsMax: 60_000,
  historyMsMax: 60_000,
  opaqueLogMsMax: 5_000,
};
const at = (ms: number) => ms as Millis;
const CHECKPOINT = {
  epoch: 1,
  seq: 1,
  streamSeq: 10,
  time: 0,
  clients: [],
  snapshot: { object: "named", bytes: 1, sha256: "" },
} as unknown as Checkpoint;

/** A room whose checkpoint covers the first record, and which has read `text` since. */
function roomAt(text: string, checkpoint: Checkpoint | undefined = CHECKPOINT): { plan: SnapshotPlan; document: Document } {
  const document = new Document(checkpoint, { silenceMsMax: 60_000, clientsMax: 10, bytesMax: 10_000 });
  const plan = new SnapshotPlan(ROOM, OPTIONS, at(0));
  plan.receiveCheckpoint(document, at(0), 0 as UnixMillis);
  for (const stored of recordsOf(text).slice(checkpoint?.seq ?? 0)) {
    document.receiveRecord(stored);
    plan.receiveTaken(stored, document, at(0));
  }
  return { plan, document };
}

test("[SPN1] a room with edits that no snapshot covers stays in memory, also if memory is short", () => {
  const { plan, document } = roomAt("ab");
  expect([plan.canRetire(document, true, at(99_999)), plan.canRetire(document, false, at(99_999))]).toEqual([false, false]);
});

test("[SPN2] a covered room leaves at once if memory is short, otherwise after its trim and the idle time", () => {
  const { plan, document } = roomAt("a");
  expect(plan.canRetire(document, true, at(0))).toBe(true);
  expect(plan.canRetire(document, false, at(99_999)), "its log is not trimmed yet").toBe(false);
  plan.receiveTrimmed(10);
  expect([60_000, 60_001].map((now) => plan.canRetire(document, false, at(now)))).toEqual([false, true]);
});

test("[SPN3] a room without any edit leaves after ten seconds", () => {
  const document = new Document(undefined, { silenceMsMax: 60_000, clientsMax: 10, bytesMax: 10_000 });
  const plan = new SnapshotPlan(ROOM, OPTIONS, at(0));
  expect([10_000, 10_001].map((now) => plan.canRetire(document, false, at(now)))).toEqual([false, true]);
});

test("[SPN4] many pending bytes cause a merge, and are set aside only in a room that cannot be merged", () => {
  const { plan, document } = roomAt("abcdefghij");
  expect(document.pending.bytes).toBeGreaterThan(OPTIONS.stalledBytesMax);
  expect([plan.nextMergeStep(document, false), plan.nextMergeStep(document, true)]).toEqual(["merge", "set-aside"]);
  const few = roomAt("ab");
  expect(few.plan.nextMergeStep(few.document, true)).toBe("wait");
});

test("[SPN5] edits that arrived during a successful save count from its start, after a failed one from the first edit", () => {
  for (const [isSaved, since] of [
    [true, 500],
    [false, 0],
  ] as const) {
    const { plan, document } = roomAt("ab");
    plan.receiveSaveEnd(document, at(500), isSaved);
    expect(plan.uncoveredSince).toBe(since);
  }
});

test("[SPN6] a checkpoint that the plan does not know yet trims nothing, and a known one keeps its age when it is received again", () => {
  const { plan, document } = roomAt("a");
  expect([1_000, 1_001].map((now) => plan.trimBefore(document, Number.POSITIVE_INFINITY, at(now)))).toEqual([undefined, 10]);
  plan.receiveCheckpoint(document, at(1_001), 0 as UnixMillis);
  expect(plan.trimBefore(document, Number.POSITIVE_INFINITY, at(1_001))).toBe(10);
  const newer = roomAt("a", { ...CHECKPOINT });
  expect(plan.trimBefore(newer.document, Number.POSITIVE_INFINITY, at(99_999))).toBeUndefined();
});
