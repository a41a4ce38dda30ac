import { expect, test } from "vitest";

import type { Checkpoint } from "../../shared/bus/checkpoint.ts";
import type { UnixMillis } from "../../shared/ids.ts";
import { Deletion, type DeletionEffect, type DeletionInput } from "./deletion.ts";

const TIME = 7 as UnixMillis;
const RECORD = 50;
const written = (revision: number): DeletionInput => ({ kind: "checkpoint-written", write: { kind: "written", revision } });
const superseded: DeletionInput = { kind: "checkpoint-written", write: { kind: "superseded" } };
const owner = (answer: "nobody" | "somebody", attempt = 1): DeletionInput => ({ kind: "owner-answered", attempt, answer });
const checkpoint = { snapshot: { object: "s1", bytes: 1, sha256: "" } } as Checkpoint;
const found: DeletionInput = { kind: "checkpoint-read", found: { checkpoint, revision: 3 } };
const fenced: DeletionInput = {
  kind: "checkpoint-read",
  found: { checkpoint: { deleted: true, time: TIME, wiping: true, snapshot: "s1" }, revision: 4 },
};
const done: DeletionInput = { kind: "checkpoint-read", found: { checkpoint: { deleted: true, time: TIME }, revision: 5 } };
const logEnd: DeletionInput = { kind: "log-end-read", end: { kind: "deleted", streamSeq: RECORD } };
const [snapshotRemoved, historyRemoved, logTrimmed, announced, failed] = (
  ["snapshot-removed", "history-removed", "log-trimmed", "announced", "failed"] as const
).map((kind) => ({ kind })) as [DeletionInput, DeletionInput, DeletionInput, DeletionInput, DeletionInput];

function begun(): Deletion {
  const deletion = new Deletion();
  deletion.receiveRecord(RECORD);
  deletion.receive({ kind: "begin", time: TIME });
  return deletion;
}

/** The kinds of the effects that follow each input. */
function kindsAfter(deletion: Deletion, ...inputs: readonly DeletionInput[]): string[] {
  return inputs.map((input) => deletion.receive(input).map(kindOf).join("+"));
}

function kindOf(effect: DeletionEffect): string {
  return effect.kind === "end" ? `end ${effect.outcome}` : effect.kind;
}

test("[DLN1] a deletion fences the checkpoint before it removes anything, and marks it done after everything else", () => {
  const deletion = new Deletion();
  deletion.receiveRecord(RECORD);
  expect(deletion.receive({ kind: "begin", time: TIME }).map(kindOf)).toEqual(["notify-owner", "read-checkpoint"]);
  expect(deletion.receive(found)).toEqual([
    { kind: "write-checkpoint", entry: { deleted: true, time: TIME, wiping: true, snapshot: "s1" }, revision: 3 },
  ]);
  expect(deletion.receive(written(4))).toEqual([{ kind: "remove-snapshot", object: "s1" }]);
  expect(kindsAfter(deletion, owner("nobody"), snapshotRemoved, historyRemoved)).toEqual(["", "remove-history", "read-log-end"]);
  expect(deletion.receive(logEnd)).toEqual([{ kind: "trim-log", before: RECORD }]);
  expect(kindsAfter(deletion, logTrimmed, announced)).toEqual(["announce", "read-checkpoint"]);
  expect(deletion.uncoveredFrom).toBe(RECORD);
  expect(deletion.receive(fenced)).toEqual([{ kind: "write-checkpoint", entry: { deleted: true, time: TIME }, revision: 4 }]);
  expect(deletion.receive(written(5)).map(kindOf)).toEqual(["end wiped"]);
  expect([deletion.isDue, deletion.isDeleted, deletion.uncoveredFrom]).toEqual([false, true, undefined]);
});

test("[DLN2] a room server that holds the room is notified twice; then the attempt ends and the room stays due", () => {
  const deletion = begun();
  kindsAfter(deletion, found, written(4), owner("somebody"), snapshotRemoved, historyRemoved, logEnd);
  expect(kindsAfter(deletion, logTrimmed, owner("somebody"))).toEqual(["notify-owner", "end owned"]);
  expect([deletion.isDue, deletion.uncoveredFrom]).toEqual([true, RECORD]);
});

test("[DLN3] a deletion waits for the owner's answer before it announces, and ignores an answer to an earlier attempt", () => {
  const deletion = begun();
  expect(kindsAfter(deletion, found, failed)).toEqual(["write-checkpoint", "end failed"]);
  expect(kindsAfter(deletion, owner("nobody"))).toEqual([""]);
  deletion.receive({ kind: "begin", time: TIME });
  kindsAfter(deletion, fenced, snapshotRemoved, historyRemoved, logEnd);
  expect(kindsAfter(deletion, owner("nobody", 1), logTrimmed)).toEqual(["", ""]);
  expect(kindsAfter(deletion, owner("nobody", 2))).toEqual(["announce"]);
});

test("[DLN4] a deletion that another service finished only trims the log again", () => {
  expect(kindsAfter(begun(), done, logEnd, logTrimmed)).toEqual(["read-log-end", "trim-log", "end wiped"]);
  const entered = new Deletion();
  entered.receiveEntry({ deleted: true, time: TIME });
  expect([entered.isDeleted, entered.isDue]).toEqual([true, false]);
});

test("[DLN5] a checkpoint that another service writes at each try ends the attempt", () => {
  expect(kindsAfter(begun(), found, superseded, found, superseded, found, superseded)).toEqual([
    "write-checkpoint",
    "read-checkpoint",
    "write-checkpoint",
    "read-checkpoint",
    "write-checkpoint",
    "end contended",
  ]);
});

test("[DLN7] a refused mark is written again with the revision read anew, unless another service has written it", () => {
  const marking = (): Deletion => {
    const deletion = begun();
    kindsAfter(deletion, fenced, snapshotRemoved, historyRemoved, logEnd, logTrimmed, owner("nobody"), announced, found);
    return deletion;
  };
  expect(kindsAfter(marking(), superseded, fenced, written(6)), "the first read was stale").toEqual([
    "read-checkpoint",
    "write-checkpoint",
    "end wiped",
  ]);
  expect(kindsAfter(marking(), superseded, done)).toEqual(["read-checkpoint", "end wiped"]);
  const contended = marking();
  expect(kindsAfter(contended, superseded, fenced, superseded, fenced, superseded).at(-1)).toBe("end contended");
  expect(contended.isDue).toBe(true);
});

test("[DLN6] a deletion record that was read before does not start the deletion again", () => {
  const deletion = begun();
  kindsAfter(deletion, done, logEnd, logTrimmed);
  deletion.receiveRecord(RECORD);
  expect(deletion.isDue).toBe(false);
  deletion.receiveRecord(RECORD + 10);
  expect([deletion.isDue, deletion.uncoveredFrom]).toEqual([true, RECORD + 10]);
});
