import { expect, test } from "vitest";

import type { Checkpoint } from "../../shared/bus/checkpoint.ts";
import { encodeEditsRecord, encodeEpochRecord, type StoredRecord } from "../../shared/bus/record.ts";
import type { ClientId, Epoch, Millis, Seq, UnixMillis, UserId } from "../../shared/ids.ts";
import { EMPTY_STATE, mergeEdits } from "../merge.ts";
import { ann, deletedRecord, recordsOf, ROOM } from "../testing/one-room.ts";
import { Deletion } from "./deletion.ts";
import type { RoomReading } from "./record-intake.ts";
import type { DocumentRoomEffect, DocumentRoomInput, RoomJobRequest, StoreEffect, StoreFailure } from "./room-messages.ts";
import { DocumentRoom, type DocumentRoomOptions } from "./room.ts";

const OPTIONS: DocumentRoomOptions = {
  snapshotEditsMax: 2,
  snapshotBytesMax: 10_000,
  snapshotAgeMsMax: 1_000,
  snapshotIntervalMsMin: 100,
  replayWindowMs: 1_000,
  boardsHoldMsMax: 60_000,
  checkpointClientsMax: 10,
  checkpointClientMsMax: 60_000,
  checkpointClientsBytesMax: 10_000,
  mergeEditsMax: 3,
  mergeBytesMax: 10_000,
  mergeMsMax: 1_000,
  snapshotLagBytesMax: 200,
  stalledBytesMax: 400,
  documentIdleMsMax: 60_000,
  historyMsMax: 60_000,
  opaqueLogMsMax: 0,
};
const FAILURE: StoreFailure = { cause: "the store does not answer", isUndecodable: false };
const UNDECODABLE: StoreFailure = { cause: "the entry does not decode", isUndecodable: true };

/** One room without any store: the test gives it each outcome. */
class Rig {
  now = 0 as Millis;
  readonly deletion = new Deletion();
  readonly room: DocumentRoom;
  #namedCount = 0;

  constructor(options: Partial<DocumentRoomOptions> = {}, reading: RoomReading = { readAfter: 0 }) {
    this.room = new DocumentRoom(
      ROOM,
      { ...OPTIONS, ...options },
      { deletion: this.deletion, newName: () => `name${++this.#namedCount}`, boardsFloor: () => Number.POSITIVE_INFINITY, ...reading },
      this.now,
    );
  }

  static opened(checkpoint?: Checkpoint, revision = 0, options: Partial<DocumentRoomOptions> = {}): Rig {
    const rig = new Rig(options);
    rig.receive({ kind: "checkpoint-read", reader: "opening", found: { checkpoint, revision } });
    return rig;
  }

  receive(input: DocumentRoomInput): readonly DocumentRoomEffect[] {
    return this.room.receive(input, this.now, this.now as number as UnixMillis);
  }

  read(...records: readonly StoredRecord[]): readonly DocumentRoomEffect[] {
    return records.flatMap((stored) => this.receive({ kind: "record", stored }));
  }

  begin(job: RoomJobRequest): readonly DocumentRoomEffect[] {
    return this.receive({ kind: "job", job });
  }

  /** Merges what the last effects ask for. */
  merge(effects: readonly DocumentRoomEffect[]): readonly DocumentRoomEffect[] {
    const { base, edits } = effectOf(effects, "merge");
    return this.receive({ kind: "merge-ended", outcome: mergeEdits(base, edits) });
  }

  /** A save up to the write of the checkpoint. */
  saveUntilNamed(): StoreEffect & { kind: "write-checkpoint" } {
    const writing = effectOf(this.merge(this.begin({ kind: "save" })), "write-snapshot");
    const written = { object: writing.object, bytes: writing.state.byteLength, sha256: "" };
    this.receive({ kind: "snapshot-written", written });
    return effectOf(this.answerRecord(this.receive({ kind: "notifications-queued" })), "write-checkpoint");
  }

  /** A complete save as revision 1. */
  save(): Checkpoint {
    const { checkpoint } = this.saveUntilNamed();
    this.receive({ kind: "checkpoint-written", checkpoint, write: { kind: "written", revision: 1 } });
    this.receive({ kind: "snapshot-announced" });
    this.receive({ kind: "version-checked", isDue: false });
    return checkpoint;
  }

  /** The log still has the record that the last effects ask for. */
  answerRecord(effects: readonly DocumentRoomEffect[]): readonly DocumentRoomEffect[] {
    const { streamSeq } = effectOf(effects, "read-record");
    return this.receive({ kind: "record-read", stored: recordsOf("abcdefghij").find((stored) => stored.streamSeq === streamSeq) });
  }

  fail(effect: StoreEffect, failure = FAILURE): readonly DocumentRoomEffect[] {
    return this.receive({ kind: "failed", effect, failure });
  }
}

function effectOf<Kind extends DocumentRoomEffect["kind"]>(
  effects: readonly DocumentRoomEffect[],
  kind: Kind,
): DocumentRoomEffect & { kind: Kind } {
  const effect = effects.find((one): one is DocumentRoomEffect & { kind: Kind } => one.kind === kind);
  if (effect === undefined) throw new Error(`no ${kind} among ${kindsOf(effects).join(", ")}`);
  return effect;
}

function kindsOf(effects: readonly DocumentRoomEffect[]): string[] {
  return effects.map((effect) => (effect.kind === "report" ? `report ${effect.report.kind}` : effect.kind));
}

test("[DRM1] records that arrive before the checkpoint is known wait for it, and so do callers", () => {
  const rig = new Rig();
  expect(kindsOf(rig.room.open())).toEqual(["read-checkpoint"]);
  expect(kindsOf(rig.read(...recordsOf("ab")))).toEqual([]);
  expect(rig.receive({ kind: "serve", request: 1, freshness: "newest", minSeq: 0 })).toEqual([]);
  expect([rig.room.state, rig.room.uncoveredFrom]).toEqual(["opening", 10]);
  const opened = rig.receive({ kind: "checkpoint-read", reader: "opening", found: { checkpoint: undefined, revision: 0 } });
  expect(kindsOf(opened)).toEqual(["notify-edits", "opened", "looked-up", "merge"]);
  expect(rig.room.state).toBe("open");
  expect(effectOf(rig.merge(opened), "answer").served).toMatchObject({ kind: "snapshot", position: { seq: 2 } });
});

test("[DRM2] a checkpoint that cannot be read is read again after 0.5 s, and one that does not decode after 10 s", () => {
  const rig = new Rig();
  const [read] = rig.room.open() as [StoreEffect];
  const triesUntil = (end: number): number[] => {
    const tries: number[] = [];
    for (; rig.now < end; rig.now = (rig.now + 100) as Millis) {
      if (rig.receive({ kind: "tick", isPressed: false }).length > 0) tries.push(rig.now);
    }
    return tries;
  };
  expect(kindsOf(rig.fail(read))).toEqual(["report storage-failed"]);
  expect(triesUntil(1_000)).toEqual([500]);
  expect(kindsOf(rig.fail(read, UNDECODABLE))).toEqual(["looked-up", "report storage-failed"]);
  expect(rig.room.isUndecodable).toBe(true);
  expect(triesUntil(20_000)).toEqual([11_000]);
});

test("[DRM47] callers of a room whose checkpoint does not decode are answered at once, and none of them stays", () => {
  const rig = new Rig();
  const [read] = rig.room.open() as [StoreEffect];
  const loading = (request: number) => ({ kind: "answer", request, served: { kind: "loading" } });
  const serve = (request: number) => rig.receive({ kind: "serve", request, freshness: "newest", minSeq: 0 });
  expect(serve(1)).toEqual([]);
  rig.fail(read);
  expect(serve(2)).toEqual([]);
  expect(rig.fail(read, UNDECODABLE)).toEqual(expect.arrayContaining([loading(1), loading(2)]));
  expect(serve(3)).toEqual([loading(3)]);
  expect(rig.receive({ kind: "read-state", request: 4 })).toEqual([{ kind: "answer-state", request: 4, state: undefined }]);
  rig.read(...recordsOf("a"));
  const opened = rig.receive({ kind: "checkpoint-read", reader: "opening", found: { checkpoint: undefined, revision: 0 } });
  expect(kindsOf(opened)).not.toContain("merge");
  expect(kindsOf(serve(5))).toEqual(["merge"]);
});

test("[DRM3] a save writes the snapshot, then the checkpoint, and removes the old snapshot after that", () => {
  const rig = Rig.opened();
  rig.read(...recordsOf("ab").slice(0, 1));
  const first = rig.saveUntilNamed();
  expect(first).toMatchObject({ revision: 0, checkpoint: { seq: 1, streamSeq: 10, snapshot: { object: `${ROOM}/1-1-name1` } } });
  const named = rig.receive({ kind: "checkpoint-written", checkpoint: first.checkpoint, write: { kind: "written", revision: 5 } });
  expect(kindsOf(named)).toEqual(["announce-snapshot"]);
  expect(kindsOf(rig.receive({ kind: "snapshot-announced" }))).toEqual(["report save-ended", "check-version"]);
  expect(rig.room.uncoveredFrom).toBeUndefined();
  expect(kindsOf(rig.receive({ kind: "version-checked", isDue: false }))).toEqual(["job-ended"]);

  rig.read(...recordsOf("ab").slice(1));
  const second = rig.saveUntilNamed();
  expect(second.revision).toBe(5);
  const again = rig.receive({ kind: "checkpoint-written", checkpoint: second.checkpoint, write: { kind: "written", revision: 6 } });
  expect(again).toEqual([{ kind: "remove-snapshots", names: [`${ROOM}/1-1-name1`], isAwaited: true }]);
});

test("[DRM4] if another service saves first, a save continues from that service's checkpoint and removes its own snapshot", () => {
  const rig = Rig.opened();
  rig.read(...recordsOf("a"));
  const { checkpoint } = rig.saveUntilNamed();
  const superseded = rig.receive({ kind: "checkpoint-written", checkpoint, write: { kind: "superseded" } });
  expect(kindsOf(superseded)).toEqual(["report superseded", "read-checkpoint"]);
  const theirs: Checkpoint = {
    ...checkpoint,
    seq: 4 as typeof checkpoint.seq,
    streamSeq: 40,
    snapshot: { object: "theirs", bytes: 1, sha256: "" },
  };
  const found = rig.receive({ kind: "checkpoint-read", reader: "job", found: { checkpoint: theirs, revision: 9 } });
  expect(found).toEqual([{ kind: "remove-snapshots", names: [checkpoint.snapshot.object], isAwaited: true }]);
  expect(kindsOf(rig.receive({ kind: "snapshots-removed", isAwaited: true }))).toEqual(["report save-ended", "job-ended"]);
  expect([rig.room.uncoveredFrom, rig.room.isSaveDue(99_999 as Millis, true)]).toEqual([undefined, false]);
});

test("[DRM17] a stale checkpoint from a former leader removes no snapshot: the refused write shows that it is stale", () => {
  const rig = Rig.opened();
  rig.read(...recordsOf("ab").slice(0, 1));
  rig.fail(rig.saveUntilNamed()); // The bucket may have it: its answer was lost.
  rig.read(...recordsOf("ab").slice(1));
  rig.now = 500 as Millis;
  const { checkpoint } = rig.saveUntilNamed();
  rig.receive({ kind: "checkpoint-written", checkpoint, write: { kind: "superseded" } });
  const stale = rig.receive({ kind: "checkpoint-read", reader: "job", found: { checkpoint: undefined, revision: 0 } });
  expect(kindsOf(stale)).toEqual(["report save-ended", "job-ended"]);
});

test("[DRM5] a save whose store fails is due again after a pause, and names the snapshot that it has written", () => {
  const rig = Rig.opened();
  rig.read(...recordsOf("ab"));
  const naming = rig.saveUntilNamed();
  expect(kindsOf(rig.fail(naming))).toEqual(["report save-ended", "report storage-failed", "job-ended"]);
  const due = [0, 499, 500].map((now) => rig.room.isSaveDue(now as Millis, true));
  expect(due).toEqual([false, false, true]);
  rig.now = 500 as Millis;
  expect(kindsOf(rig.begin({ kind: "save" }))).toEqual(["queue-notifications"]);
  const again = rig.answerRecord(rig.receive({ kind: "notifications-queued" }));
  expect(effectOf(again, "write-checkpoint").checkpoint.snapshot).toEqual(naming.checkpoint.snapshot);
});

test("[DRM6] a save is due by edits or by age, at once if memory is short, and never while another save runs", () => {
  const rig = Rig.opened();
  const [first, second] = recordsOf("ab") as [StoredRecord, StoredRecord];
  rig.read(first);
  const isDue = (now: number, isPressed = false) => rig.room.isSaveDue(now as Millis, isPressed);
  expect([isDue(499), isDue(1_000), isDue(0, true)]).toEqual([false, true, true]);
  rig.read(second);
  expect(isDue(0)).toBe(true);
  rig.begin({ kind: "save" });
  expect([rig.room.isBusy, isDue(1_000, true)]).toEqual([true, false]);
});

test("[DRM7] a trim archives first, removes from the log after that, and goes no further than it is asked to", () => {
  const rig = Rig.opened();
  rig.read(...recordsOf("ab"));
  const checkpoint = rig.save();
  expect([1_000, 1_001].map((now) => rig.room.trimThrough(now as Millis))).toEqual([undefined, 20]);
  rig.now = 1_001 as Millis;
  expect(rig.room.trimRange(20, 0)).toMatchObject({ after: 0, from: 9, through: 20, records: 2 });
  expect(rig.room.trimRange(20, 20)).toBeUndefined();
  const reread = { kind: "checkpoint-read", reader: "job", found: { checkpoint, revision: 1 } } as const;
  expect(rig.answerRecord(rig.begin({ kind: "trim", before: 15 }))).toEqual([{ kind: "read-checkpoint", reader: "job" }]);
  expect(rig.receive(reread)).toEqual([{ kind: "verify-snapshot", checkpoint }]);
  expect(rig.receive({ kind: "snapshot-verified", isReadable: true })).toEqual([{ kind: "archive", before: 15 }]);
  expect(rig.receive({ kind: "archived" })).toEqual([{ kind: "trim-log", before: 15 }]);
  expect(rig.receive({ kind: "log-trimmed" })).toContainEqual({ kind: "job-ended", isTrimmed: true });
  expect(rig.room.isTrimDue(rig.now)).toBe(true);
  rig.answerRecord(rig.begin({ kind: "trim", before: undefined }));
  rig.receive(reread);
  const archive = effectOf(rig.receive({ kind: "snapshot-verified", isReadable: true }), "archive");
  expect(kindsOf(rig.fail(archive))).toEqual(["report trim-ended", "report storage-failed", "job-ended"]);
  expect(rig.room.isTrimDue(rig.now)).toBe(false);
});

test("[DRM8] callers that ask during a merge share one second merge", () => {
  const rig = Rig.opened();
  const [one, two] = recordsOf("ab") as [StoredRecord, StoredRecord];
  rig.read(one);
  const serve = (request: number) => rig.receive({ kind: "serve", request, freshness: "newest", minSeq: 0 });
  const merging = serve(1);
  rig.read(two);
  expect([serve(2), serve(3)]).toEqual([[], []]);
  const again = rig.merge(merging);
  expect(kindsOf(again)).toEqual(["report merged", "answer", "merge"]);
  expect(rig.merge(again).filter(({ kind }) => kind === "answer")).toMatchObject([
    { request: 2, served: { position: { seq: 2 } } },
    { request: 3, served: { position: { seq: 2 } } },
  ]);
});

test("[DRM28] a merge is awaited if a caller waits for it when it begins, and in the background if only a save does", () => {
  const rig = Rig.opened();
  const serve = (request: number) => rig.receive({ kind: "serve", request, freshness: "newest", minSeq: 0 });
  const [one, two] = recordsOf("ab") as [StoredRecord, StoredRecord];
  rig.read(one);
  const saving = rig.begin({ kind: "save" });
  rig.read(two);
  expect(serve(1)).toEqual([]);
  const second = rig.merge(saving);
  expect([saving, second].map((effects) => effectOf(effects, "merge").urgency)).toEqual(["background", "awaited"]);
});

test("[DRM9] a merge that fails answers every caller, and the save that waited for it, with the failure", () => {
  const rig = Rig.opened();
  rig.read(...recordsOf("ab"));
  const merge = effectOf(rig.receive({ kind: "read-state", request: 1 }), "merge");
  expect(rig.begin({ kind: "save" })).toEqual([]);
  expect(kindsOf(rig.fail(merge))).toEqual(["answer-failure", "report save-ended", "report storage-failed", "job-ended"]);
});

test("[DRM10] a gap in the log causes one read of the checkpoint; later records wait, and a gap that no checkpoint covers is reported", () => {
  const rig = Rig.opened();
  const [a, , c, d] = recordsOf("abcd") as [StoredRecord, StoredRecord, StoredRecord, StoredRecord];
  rig.read(a);
  expect(kindsOf(rig.read(c, d))).toEqual(["read-checkpoint"]);
  expect([rig.room.isLookingUp, rig.room.isSaveDue(9_999 as Millis, true)]).toEqual([true, false]);
  const crossed = rig.receive({ kind: "checkpoint-read", reader: "gap", found: { checkpoint: undefined, revision: 0 } });
  expect(kindsOf(crossed)).toEqual(["report gap-crossed", "notify-edits", "merge"]);
  expect([rig.room.isLookingUp, rig.room.isSaveDue(9_999 as Millis, true)]).toEqual([false, true]);
});

test("[DRM11] a deleted room takes no more records, is wiped once, and can then be forgotten", () => {
  const rig = Rig.opened();
  rig.read(...recordsOf("a"), deletedRecord(50));
  expect([rig.room.state, rig.room.uncoveredFrom, rig.read(...recordsOf("ab").slice(1))]).toEqual(["deleting", 50, []]);
  expect(rig.receive({ kind: "serve", request: 1, freshness: "newest", minSeq: 0 })).toMatchObject([{ served: { kind: "deleted" } }]);
  expect([rig.room.isWipeDue(rig.now), rig.room.canRetire(rig.now, true)]).toEqual([true, false]);
  expect(rig.begin({ kind: "wipe" })).toEqual([{ kind: "wipe" }]);
  rig.receive({ kind: "wiped", isWiped: false });
  expect([0, 500].map((now) => rig.room.isWipeDue(now as Millis))).toEqual([false, true]);
  rig.deletion.receiveEntry({ deleted: true, time: 0 as UnixMillis });
  expect(rig.room.state).toBe("deleting");
});

test("[DRM12] orphans are removed after the checkpoint is written again, and stay if another service wrote it first", () => {
  const snapshot = { object: "named", bytes: 1, sha256: "" };
  const checkpoint = { epoch: 1, seq: 1, streamSeq: 10, time: 0, clients: [], snapshot } as unknown as Checkpoint;
  const rig = Rig.opened(checkpoint, 3);
  const begin = () => rig.answerRecord(rig.begin({ kind: "remove-orphans", names: ["named", "orphan"] }));
  expect(begin()).toMatchObject([{ kind: "write-checkpoint", revision: 3 }]);
  expect(rig.receive({ kind: "checkpoint-written", checkpoint, write: { kind: "written", revision: 4 } })).toEqual([
    { kind: "remove-snapshots", names: ["orphan"], isAwaited: true },
  ]);
  expect(kindsOf(rig.receive({ kind: "snapshots-removed", isAwaited: true }))).toEqual(["job-ended"]);
  begin();
  rig.receive({ kind: "checkpoint-written", checkpoint, write: { kind: "superseded" } });
  expect(kindsOf(rig.receive({ kind: "checkpoint-read", reader: "job", found: { checkpoint, revision: 8 } }))).toEqual(["job-ended"]);
});

test("[DRM22] a checkpoint is not written again before orphans are removed if the log has lost its last record", () => {
  const snapshot = { object: "named", bytes: 1, sha256: "" };
  const checkpoint = { epoch: 1, seq: 1, streamSeq: 10, recordId: "lost", time: 0, clients: [], snapshot } as unknown as Checkpoint;
  const rig = Rig.opened(checkpoint, 3);
  expect(rig.begin({ kind: "remove-orphans", names: ["orphan"] })).toEqual([{ kind: "read-record", streamSeq: 10 }]);
  expect(kindsOf(rig.receive({ kind: "record-read", stored: recordsOf("a")[0] }))).toEqual(["report storage-failed", "read-checkpoint"]);
});

test("[DRM13] a room that cannot be merged drops its pending edits over their limit, and reads them again once it can", () => {
  const snapshot = { object: "lost", bytes: 1, sha256: "" };
  const checkpoint = { epoch: 1, seq: 1, streamSeq: 10, time: 0, clients: [], snapshot } as unknown as Checkpoint;
  const rig = Rig.opened(checkpoint, 3, { stalledBytesMax: 50 });
  rig.read(...recordsOf("abcdefghij").slice(1, 3));
  rig.receive({ kind: "read-state", request: 1 });
  expect(kindsOf(rig.receive({ kind: "snapshot-read", state: undefined }))).toEqual(["read-checkpoint"]);
  const unread = rig.receive({ kind: "checkpoint-read", reader: "merge", found: { checkpoint, revision: 3 } });
  expect(unread).toEqual([{ kind: "read-covered", checkpoint }]);
  const lost = rig.receive({ kind: "covered-read", first: recordsOf("ab")[1], last: undefined });
  expect(kindsOf(lost)).toEqual(["report snapshot-lost", "answer-state"]);
  const effects = rig.read(...recordsOf("abcdefghij").slice(3));
  expect(kindsOf(effects)).toContain("report set-aside");
  expect([rig.room.heldBytes, rig.room.canBeCovered, rig.room.readAgainFrom, rig.room.uncoveredFrom]).toEqual([0, false, undefined, 20]);
  rig.receive({ kind: "read-state", request: 2 });
  rig.receive({ kind: "snapshot-read", state: new Uint8Array([0, 0]) });
  expect(rig.room.readAgainFrom).toBe(20);
});

test("[DRM25] records are not trimmed behind a lost snapshot: a room that has the state in memory saves it again", () => {
  const rig = Rig.opened();
  rig.read(...recordsOf("ab"));
  const checkpoint = rig.save();
  rig.now = 2_000 as Millis;
  rig.answerRecord(rig.begin({ kind: "trim", before: undefined }));
  rig.receive({ kind: "checkpoint-read", reader: "job", found: { checkpoint, revision: 1 } });
  const refused = rig.receive({ kind: "snapshot-verified", isReadable: false });
  expect(kindsOf(refused)).toEqual(["report trim-ended", "job-ended", "report snapshot-lost"]);
  expect([2_499, 2_500].map((now) => rig.room.isSaveDue(now as Millis, true))).toEqual([false, true]);
  rig.now = 3_000 as Millis;
  expect([rig.room.uncoveredFrom, rig.room.isTrimDue(rig.now), rig.room.isSaveDue(rig.now, false)]).toEqual([1, false, true]);
  const writing = effectOf(rig.begin({ kind: "save" }), "write-snapshot");
  rig.receive({ kind: "snapshot-written", written: { object: writing.object, bytes: writing.state.byteLength, sha256: "" } });
  const again = effectOf(rig.answerRecord(rig.receive({ kind: "notifications-queued" })), "write-checkpoint");
  expect(again).toMatchObject({ revision: 1, checkpoint: { seq: 2, streamSeq: 20, snapshot: { object: writing.object } } });
});

test.each([
  ["has every record", 0, 1, true],
  ["lacks the first record", 1, 1, false],
  ["lacks the last covered record", 0, 0, false],
])("[DRM26] a room whose snapshot is lost is read again from a log that %s only if nothing is missing", (_, first, last, isRead) => {
  const snapshot = { object: "lost", bytes: 1, sha256: "" };
  const checkpoint = { epoch: 1, seq: 2, streamSeq: 20, recordId: "server.2", time: 0, clients: [], snapshot } as unknown as Checkpoint;
  const rig = Rig.opened(checkpoint, 3);
  const [records, found] = [recordsOf("abc"), { checkpoint, revision: 3 }];
  rig.receive({ kind: "read-state", request: 1 });
  rig.receive({ kind: "snapshot-read", state: undefined });
  rig.receive({ kind: "checkpoint-read", reader: "merge", found });
  rig.receive({ kind: "covered-read", first: records[first], last: records[last] });
  expect([rig.room.readAgainFrom, rig.room.lostSnapshot]).toEqual(isRead ? [1, "lost"] : [undefined, undefined]);
});

test("[DRM27] a room that is read again without its lost snapshot replaces the checkpoint that names it", () => {
  const snapshot = { object: "lost", bytes: 1, sha256: "" };
  const checkpoint = { epoch: 1, seq: 2, streamSeq: 20, recordId: "server.2", time: 0, clients: [], snapshot } as unknown as Checkpoint;
  const rig = new Rig({}, { readAfter: 0, lostSnapshot: "lost" });
  rig.receive({ kind: "checkpoint-read", reader: "opening", found: { checkpoint, revision: 3 } });
  rig.read(...recordsOf("ab"));
  expect(rig.saveUntilNamed()).toMatchObject({
    revision: 3,
    checkpoint: { seq: 2, streamSeq: 20, snapshot: { object: expect.not.stringMatching("lost") } },
  });
});

test("[DRM14] a closed room answers the callers that wait for it, and reports no more failures", () => {
  const rig = new Rig();
  const [read] = rig.room.open() as [StoreEffect];
  rig.receive({ kind: "serve", request: 1, freshness: "newest", minSeq: 0 });
  rig.receive({ kind: "read-state", request: 2 });
  expect(rig.receive({ kind: "close" })).toEqual([
    { kind: "answer", request: 1, served: { kind: "loading" } },
    { kind: "answer-state", request: 2, state: undefined },
    { kind: "opened", isOpen: false },
    { kind: "looked-up" },
  ]);
  expect(rig.fail(read)).toEqual([]);
  rig.now = 99_999 as Millis;
  expect(rig.receive({ kind: "tick", isPressed: false })).toEqual([]);
});

test("[DRM15] a checkpoint is written only while the log has its last record, and a log without the checkpoint's record is not trimmed", () => {
  const rig = Rig.opened();
  rig.read(...recordsOf("ab"));
  const writing = effectOf(rig.merge(rig.begin({ kind: "save" })), "write-snapshot");
  rig.receive({ kind: "snapshot-written", written: { object: writing.object, bytes: writing.state.byteLength, sha256: "" } });
  expect(rig.receive({ kind: "notifications-queued" })).toEqual([{ kind: "read-record", streamSeq: 20 }]);
  const [other] = recordsOf("x") as [StoredRecord];
  const refused = rig.receive({ kind: "record-read", stored: { ...other, streamSeq: 20 } });
  expect(kindsOf(refused)).toEqual(["report storage-failed", "read-checkpoint"]);
  const found = { checkpoint: undefined, revision: 0 };
  expect(kindsOf(rig.receive({ kind: "checkpoint-read", reader: "job", found }))).toEqual(["report save-ended", "job-ended"]);

  rig.now = 500 as Millis;
  const again = effectOf(rig.begin({ kind: "save" }), "write-snapshot");
  rig.receive({ kind: "snapshot-written", written: { object: again.object, bytes: again.state.byteLength, sha256: "" } });
  const { checkpoint } = effectOf(rig.answerRecord(rig.receive({ kind: "notifications-queued" })), "write-checkpoint");
  expect(checkpoint).toMatchObject({ streamSeq: 20, recordId: "server.2" });
  expect(rig.receive({ kind: "checkpoint-written", checkpoint, write: { kind: "written", revision: 1 } })).toEqual([
    { kind: "remove-snapshots", names: [writing.object], isAwaited: true },
  ]);
  rig.receive({ kind: "snapshots-removed", isAwaited: true });
  rig.receive({ kind: "snapshot-announced" });
  rig.receive({ kind: "version-checked", isDue: false });
  rig.now = 2_000 as Millis;
  rig.begin({ kind: "trim", before: undefined });
  expect(kindsOf(rig.receive({ kind: "record-read", stored: undefined }))).toEqual(["report trim-ended", "job-ended"]);
  expect(rig.room.isTrimDue(rig.now)).toBe(false);
});

test("[DRM16] a room whose checkpoint is not stored any more is not trimmed, and is read again from the stored one", () => {
  const rig = Rig.opened();
  rig.read(...recordsOf("ab"));
  const checkpoint = rig.save();
  expect([rig.room.readAgainFrom, rig.room.uncoveredFrom]).toEqual([undefined, undefined]);
  rig.now = 2_000 as Millis;
  rig.answerRecord(rig.begin({ kind: "trim", before: undefined }));
  const older = { ...checkpoint, seq: 1 as Seq, streamSeq: 10, snapshot: { ...checkpoint.snapshot, object: "older" } };
  const ended = rig.receive({ kind: "checkpoint-read", reader: "job", found: { checkpoint: older, revision: 1 } });
  expect(kindsOf(ended)).toEqual(["report trim-ended", "job-ended"]);
  expect([rig.room.readAgainFrom, rig.room.uncoveredFrom]).toEqual([11, 11]);
  expect([2_499, 2_500].map((now) => rig.room.isTrimDue(now as Millis))).toEqual([false, true]);
});

/** Saves two edits as revision 2, over an older checkpoint at seq 1, and releases the state. */
test("[DRM23] a checkpoint never replaces one that the room adopted after the decision to write it", () => {
  const snapshot = { object: "named", bytes: 1, sha256: "" };
  const checkpoint = { epoch: 1, seq: 1, streamSeq: 10, time: 0, clients: [], snapshot } as unknown as Checkpoint;
  const newer = { ...checkpoint, seq: 3, streamSeq: 12, snapshot: { ...snapshot, object: "newer" } } as Checkpoint;
  const rig = Rig.opened(checkpoint, 3);
  const reading = rig.begin({ kind: "remove-orphans", names: ["orphan"] });
  rig.read(recordsOf("abcd")[3]!); // A gap, so the room looks for a newer checkpoint.
  rig.receive({ kind: "checkpoint-read", reader: "gap", found: { checkpoint: newer, revision: 4 } });
  expect(rig.answerRecord(reading)).toMatchObject([{ kind: "write-checkpoint", revision: 3 }]);
});

test("[DRM24] a write of the checkpoint that is answered after a newer one was read removes no snapshot", () => {
  const rig = Rig.opened();
  rig.read(...recordsOf("ab"));
  const { checkpoint } = rig.saveUntilNamed();
  const newer = { ...checkpoint, seq: 3, streamSeq: 12, snapshot: { ...checkpoint.snapshot, object: "newer" } } as Checkpoint;
  rig.read(recordsOf("abcd")[3]!);
  rig.receive({ kind: "checkpoint-read", reader: "gap", found: { checkpoint: newer, revision: 2 } });
  const answered = rig.receive({ kind: "checkpoint-written", checkpoint, write: { kind: "written", revision: 1 } });
  expect(kindsOf(answered)).toEqual(["report save-ended", "job-ended"]);
});

function released(): { rig: Rig; checkpoint: Checkpoint; older: Checkpoint } {
  const rig = Rig.opened();
  rig.read(...recordsOf("ab"));
  const { checkpoint } = rig.saveUntilNamed();
  rig.receive({ kind: "checkpoint-written", checkpoint, write: { kind: "written", revision: 2 } });
  rig.receive({ kind: "snapshot-announced" });
  rig.receive({ kind: "version-checked", isDue: false });
  rig.receive({ kind: "tick", isPressed: true });
  expect(rig.room.heldBytes).toBe(0);
  return { rig, checkpoint, older: { ...checkpoint, seq: 1 as Seq, streamSeq: 10, snapshot: { ...checkpoint.snapshot, object: "older" } } };
}

test("[DRM18] after the stores lost the snapshot with its released state, a room saves nothing and is read again", () => {
  const { rig, older } = released();
  const { checkpoint } = effectOf(rig.answerRecord(rig.begin({ kind: "remove-orphans", names: ["older"] })), "write-checkpoint");
  rig.receive({ kind: "checkpoint-written", checkpoint, write: { kind: "superseded" } });
  rig.receive({ kind: "checkpoint-read", reader: "job", found: { checkpoint: older, revision: 1 } });
  rig.read(...recordsOf("abcd").slice(2));
  expect(rig.room.isSaveDue(99_999 as Millis, true)).toBe(false);
  expect([rig.room.readAgainFrom, rig.room.uncoveredFrom]).toEqual([11, 11]);
});

test("[DRM19] a stale checkpoint that is read because of a gap removes no snapshot, and the gap is not crossed", () => {
  const { rig, older } = released();
  expect(kindsOf(rig.read(...recordsOf("abcd").slice(3)))).toEqual(["read-checkpoint"]);
  expect(rig.receive({ kind: "checkpoint-read", reader: "gap", found: { checkpoint: older, revision: 1 } })).toEqual([]);
  expect(rig.room.readAgainFrom).toBe(11);
});

test("[DRM20] content that crossed a gap is not saved over a checkpoint that covers the missing edits", () => {
  const rig = Rig.opened();
  const [a, , c, , e] = recordsOf("abcde");
  rig.read(a!, c!);
  rig.receive({ kind: "checkpoint-read", reader: "gap", found: { checkpoint: undefined, revision: 0 } }); // A former leader answers.
  const writing = effectOf(rig.merge(rig.begin({ kind: "save" })), "write-snapshot");
  const snapshot = { object: writing.object, bytes: writing.state.byteLength, sha256: "" };
  rig.receive({ kind: "snapshot-written", written: snapshot });
  rig.read(e!);
  const theirs = { epoch: 1, seq: 2, streamSeq: 20, time: 0, clients: [], snapshot: { ...snapshot, object: "theirs" } };
  rig.receive({ kind: "checkpoint-read", reader: "gap", found: { checkpoint: theirs as unknown as Checkpoint, revision: 1 } });
  expect(kindsOf(rig.receive({ kind: "notifications-queued" }))).toEqual(["report save-ended", "job-ended"]);
  expect([rig.room.readAgainFrom, rig.room.isSaveDue(99_999 as Millis, true)]).toEqual([21, false]);
});

test("[DRM21] a gap is crossed only if the room was given each record since its last one; otherwise the log is read again", () => {
  const rig = new Rig({}, { readAfter: 30 }); // The records up to 30 were read before the room was created.
  rig.receive({ kind: "checkpoint-read", reader: "opening", found: { checkpoint: undefined, revision: 0 } });
  rig.read(...recordsOf("abcd").slice(3));
  expect(rig.receive({ kind: "checkpoint-read", reader: "gap", found: { checkpoint: undefined, revision: 0 } })).toEqual([]);
  expect([rig.room.readAgainFrom, rig.room.isSaveDue(99_999 as Millis, true)]).toEqual([1, false]);
});

test("[DRM29] a job that begins before the room is opened ends without an effect", () => {
  expect(new Rig().begin({ kind: "save" })).toEqual([{ kind: "job-ended", isTrimmed: false }]);
});

test("[DRM30] a caller's merge that ends while a snapshot is written changes nothing about the save", () => {
  const rig = Rig.opened();
  const [one, two] = recordsOf("ab") as [StoredRecord, StoredRecord];
  rig.read(one);
  const writing = effectOf(rig.merge(rig.begin({ kind: "save" })), "write-snapshot");
  rig.read(two);
  const served = rig.merge(rig.receive({ kind: "serve", request: 1, freshness: "newest", minSeq: 0 }));
  expect(kindsOf(served)).toEqual(["report merged", "answer"]);
  rig.receive({ kind: "snapshot-written", written: { object: writing.object, bytes: writing.state.byteLength, sha256: "" } });
  expect(effectOf(rig.answerRecord(rig.receive({ kind: "notifications-queued" })), "write-checkpoint").checkpoint.seq).toBe(1);
});

test("[DRM31] a version that is due contains the edits that arrived during the save", () => {
  const rig = Rig.opened();
  const [one, two] = recordsOf("ab") as [StoredRecord, StoredRecord];
  rig.read(one);
  const { checkpoint } = rig.saveUntilNamed();
  rig.read(two);
  rig.receive({ kind: "checkpoint-written", checkpoint, write: { kind: "written", revision: 1 } });
  rig.receive({ kind: "snapshot-announced" });
  const added = rig.merge(rig.receive({ kind: "version-checked", isDue: true }));
  expect(effectOf(added, "add-version").present.applied.seq).toBe(2);
  expect(kindsOf(rig.receive({ kind: "version-added" }))).toEqual(["job-ended"]);
});

test("[DRM32] a wiped room holds no edits in memory", () => {
  const rig = Rig.opened();
  rig.read(...recordsOf("abc"), deletedRecord(50));
  expect(rig.room.heldBytes).toBeGreaterThan(50);
  rig.begin({ kind: "wipe" });
  expect(rig.room.heldBytes).toBe(EMPTY_STATE.byteLength);
});

test("[DRM33] the removal of a snapshot that a newer checkpoint replaced ends no step of the running job", () => {
  const snapshot = { object: "named", bytes: 1, sha256: "" };
  const checkpoint = { epoch: 1, seq: 1, streamSeq: 10, time: 0, clients: [], snapshot } as unknown as Checkpoint;
  const newer = { ...checkpoint, seq: 3, streamSeq: 30, snapshot: { ...snapshot, object: "newer" } } as Checkpoint;
  const rig = Rig.opened(checkpoint, 3);
  const reading = rig.begin({ kind: "remove-orphans", names: ["orphan"] });
  rig.read(recordsOf("abcd")[3]!);
  const adopted = rig.receive({ kind: "checkpoint-read", reader: "gap", found: { checkpoint: newer, revision: 4 } });
  expect(effectOf(adopted, "remove-snapshots")).toMatchObject({ names: ["named"], isAwaited: false });
  expect(rig.receive({ kind: "snapshots-removed", isAwaited: false })).toEqual([]);
  expect(rig.room.isBusy).toBe(true);
  expect(kindsOf(rig.answerRecord(reading))).toEqual(["write-checkpoint"]);
});

test("[DRM34] a room whose entry says before a trim that it is deleted is not trimmed, and is read again completely", () => {
  const rig = Rig.opened();
  rig.read(...recordsOf("ab"));
  rig.save();
  rig.now = 2_000 as Millis;
  rig.answerRecord(rig.begin({ kind: "trim", before: undefined }));
  const deleted = { deleted: true, time: 0 as UnixMillis } as const;
  const ended = rig.receive({ kind: "checkpoint-read", reader: "job", found: { checkpoint: deleted, revision: 2 } });
  expect(kindsOf(ended)).toEqual(["report trim-ended", "job-ended"]);
  expect(rig.room.readAgainFrom).toBe(1);
});

test("[DRM35] a lost snapshot that a newer checkpoint has replaced during a trim is not reported", () => {
  const rig = Rig.opened();
  const records = recordsOf("abcde");
  rig.read(...records.slice(0, 2));
  const checkpoint = rig.save();
  rig.now = 2_000 as Millis;
  rig.answerRecord(rig.begin({ kind: "trim", before: undefined }));
  rig.receive({ kind: "checkpoint-read", reader: "job", found: { checkpoint, revision: 1 } });
  rig.read(records[4]!);
  const newer = { ...checkpoint, seq: 4 as Seq, streamSeq: 40, snapshot: { ...checkpoint.snapshot, object: "newer" } };
  rig.receive({ kind: "checkpoint-read", reader: "gap", found: { checkpoint: newer, revision: 2 } });
  expect(kindsOf(rig.receive({ kind: "snapshot-verified", isReadable: false }))).toEqual(["report trim-ended", "job-ended"]);
});

test("[DRM36] a room that has not its state in memory looks for a lost snapshot when a trim does not find it", () => {
  const { rig, checkpoint } = released();
  rig.now = 2_000 as Millis;
  rig.answerRecord(rig.begin({ kind: "trim", before: undefined }));
  rig.receive({ kind: "checkpoint-read", reader: "job", found: { checkpoint, revision: 2 } });
  expect(kindsOf(rig.receive({ kind: "snapshot-verified", isReadable: false }))).toEqual([
    "report trim-ended",
    "job-ended",
    "read-snapshot",
  ]);
});

test("[DRM37] a save whose snapshot reads back damaged is due again after a pause", () => {
  const rig = Rig.opened();
  rig.read(...recordsOf("ab"));
  rig.merge(rig.begin({ kind: "save" }));
  expect(kindsOf(rig.receive({ kind: "snapshot-written", written: undefined }))).toEqual([
    "report snapshot-damaged",
    "report save-ended",
    "job-ended",
  ]);
  expect([499, 500].map((now) => rig.room.isSaveDue(now as Millis, true))).toEqual([false, true]);
});

test("[DRM38] a room that is deleted during its save gets no version", () => {
  const rig = Rig.opened();
  rig.read(...recordsOf("ab"));
  const { checkpoint } = rig.saveUntilNamed();
  rig.read(deletedRecord(50));
  rig.receive({ kind: "checkpoint-written", checkpoint, write: { kind: "written", revision: 1 } });
  expect(kindsOf(rig.receive({ kind: "snapshot-announced" }))).toEqual(["report save-ended", "job-ended"]);
  expect(rig.room.isWipeDue(rig.now)).toBe(true);
});

test("[DRM39] after a failed save the age of unsaved edits counts from the first of them", () => {
  const rig = Rig.opened();
  rig.read(recordsOf("a")[0]!);
  rig.now = 600 as Millis;
  rig.merge(rig.begin({ kind: "save" }));
  rig.receive({ kind: "snapshot-written", written: undefined });
  expect([1_099, 1_100].map((now) => rig.room.isSaveDue(now as Millis, false))).toEqual([false, true]);
});

const snapshotOf = (object: string) => ({ object, bytes: 1, sha256: "" });
const checkpointAt = (seq: number, object: string) =>
  ({ epoch: 1, seq, streamSeq: seq * 10, time: 0, clients: [], snapshot: snapshotOf(object) }) as unknown as Checkpoint;

test("[DRM40] a job that adds a version ends if the room's state is lost meanwhile", () => {
  const rig = Rig.opened();
  rig.read(recordsOf("a")[0]!);
  const { checkpoint } = rig.saveUntilNamed();
  rig.receive({ kind: "checkpoint-written", checkpoint, write: { kind: "written", revision: 1 } });
  rig.receive({ kind: "snapshot-announced" });
  rig.receive({ kind: "tick", isPressed: true });
  expect(kindsOf(rig.receive({ kind: "version-checked", isDue: true }))).toEqual(["read-snapshot"]);
  rig.receive({ kind: "snapshot-read", state: undefined });
  rig.receive({ kind: "checkpoint-read", reader: "merge", found: { checkpoint, revision: 1 } });
  expect(kindsOf(rig.receive({ kind: "covered-read", first: undefined, last: undefined }))).toEqual(["report snapshot-lost", "job-ended"]);
});

test("[DRM41] a snapshot that was read for a checkpoint replaced meanwhile is not used", () => {
  const rig = Rig.opened(checkpointAt(1, "named"), 3);
  expect(kindsOf(rig.receive({ kind: "read-state", request: 1 }))).toEqual(["read-snapshot"]);
  rig.read(recordsOf("abcde")[4]!);
  rig.receive({ kind: "checkpoint-read", reader: "gap", found: { checkpoint: checkpointAt(4, "newer"), revision: 4 } });
  const late = rig.receive({ kind: "snapshot-read", state: EMPTY_STATE });
  expect(late).toEqual([{ kind: "answer-state", request: 1, state: undefined }]);
  expect(effectOf(rig.receive({ kind: "read-state", request: 2 }), "read-snapshot").checkpoint.snapshot.object).toBe("newer");
});

test("[DRM42] a room whose snapshot another service replaced is not stalled, and reads the new one", () => {
  const rig = Rig.opened(checkpointAt(1, "named"), 3);
  rig.receive({ kind: "read-state", request: 1 });
  rig.receive({ kind: "snapshot-read", state: undefined });
  const replaced = rig.receive({ kind: "checkpoint-read", reader: "merge", found: { checkpoint: checkpointAt(4, "newer"), revision: 4 } });
  expect(kindsOf(replaced)).not.toContain("read-covered");
  expect(rig.room.isStalled).toBe(false);
  expect(effectOf(rig.receive({ kind: "read-state", request: 2 }), "read-snapshot").checkpoint.snapshot.object).toBe("newer");
});

test("[DRM43] a room whose lost snapshot was replaced during the read of the covered records continues from the new one", () => {
  const records = recordsOf("abcde");
  const lost = { ...checkpointAt(2, "lost"), recordId: "server.2" };
  const rig = Rig.opened(lost, 3);
  rig.receive({ kind: "read-state", request: 1 });
  rig.receive({ kind: "snapshot-read", state: undefined });
  rig.receive({ kind: "checkpoint-read", reader: "merge", found: { checkpoint: lost, revision: 3 } });
  rig.read(records[4]!);
  rig.receive({ kind: "checkpoint-read", reader: "gap", found: { checkpoint: checkpointAt(4, "newer"), revision: 4 } });
  rig.receive({ kind: "covered-read", first: records[0], last: records[1] });
  expect([rig.room.readAgainFrom, rig.room.lostSnapshot]).toEqual([undefined, undefined]);
});

test("[DRM44] a checkpoint keeps the writers of a room whose server has a date that is years ahead", () => {
  const bob = "bobbobbobbobbob1" as ClientId;
  const rig = Rig.opened();
  const [first] = recordsOf("a") as [StoredRecord];
  const edits = [{ client: bob, counter: 1, parentSeq: 1 as Seq, payload: new Uint8Array([0, 0]) }];
  const bytes = encodeEditsRecord({
    id: "server.2",
    time: (10 ** 12) as UnixMillis,
    users: new Map([[bob, "bob" as UserId]]),
    edits: { epoch: 1 as Epoch, firstSeq: 2 as Seq, edits },
  });
  rig.read(first, { ...first, streamSeq: 20, bytes });
  expect(rig.saveUntilNamed().checkpoint.clients.map(({ client }) => client)).toEqual([ann, bob]);
});

test("[DRM45] a room whose merges overrun is tried again after pauses that double up to 64 times the limit", () => {
  const rig = Rig.opened();
  rig.read(recordsOf("a")[0]!);
  const pauses: number[] = [];
  for (let tries = 0; tries < 8; tries++) {
    rig.receive({ kind: "read-state", request: tries });
    const ended = rig.receive({ kind: "merge-ended", outcome: "overran" });
    const { report } = effectOf(ended, "report");
    if (report.kind === "merge-abandoned") pauses.push(report.pauseMs);
    rig.now = (rig.now + pauses.at(-1)!) as Millis;
  }
  expect(pauses).toEqual([2_000, 4_000, 8_000, 16_000, 32_000, 64_000, 64_000, 64_000]);
});

test("[DRM46] a log that begins with the epoch record of a later owner has not every record of a lost snapshot", () => {
  const lost = { ...checkpointAt(2, "lost"), recordId: "server.2" };
  for (const [head, from] of [
    [0, 1],
    [1, undefined],
  ] as const) {
    const rig = Rig.opened(lost, 3);
    const epochRecord = encodeEpochRecord({
      id: "server.0",
      time: 0 as UnixMillis,
      epoch: 1 as Epoch,
      head: head as Seq,
      before: 0 as Epoch,
    });
    const [record] = recordsOf("a") as [StoredRecord];
    rig.receive({ kind: "read-state", request: 1 });
    rig.receive({ kind: "snapshot-read", state: undefined });
    rig.receive({ kind: "checkpoint-read", reader: "merge", found: { checkpoint: lost, revision: 3 } });
    rig.receive({ kind: "covered-read", first: { ...record, bytes: epochRecord }, last: recordsOf("ab")[1] });
    expect(rig.room.readAgainFrom).toBe(from);
  }
});
