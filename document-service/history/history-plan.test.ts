import { expect, test } from "vitest";

import type { Epoch, Millis, Seq, UnixMillis } from "../../shared/ids.ts";
import { EMPTY_STATE } from "../merge.ts";
import { recordsOf, ROOM } from "../testing/one-room.ts";
import { type DocumentVersion, type History, type HistoryPolicy, NO_HISTORY, type Segment } from "./history.ts";
import type { HistoryEffect, HistoryInput, HistoryJob } from "./history-messages.ts";
import { HistoryPlan } from "./history-plan.ts";
import { encodeSegment } from "./segments.ts";

const POLICY: HistoryPolicy = {
  historyMsMax: 1_000_000,
  historyBytesMax: 1_000_000,
  historyVersionMsMin: 600,
  historyVersionEditsMax: 50,
  historyVersionsMax: 10,
  historyNamedMax: 1,
  historySegmentBytesMax: 10_000,
  historySegmentMsMin: 1,
};
const NOW = 1_000 as UnixMillis;
const RECORDS = recordsOf("abcd"); // Four records with stream sequences 10 to 40.

const DOCUMENT = { state: EMPTY_STATE, applied: { epoch: 1 as Epoch, seq: 4 as Seq }, leftOut: 0 };
const addVersion = (name?: string): HistoryInput => ({ kind: "job", job: { kind: "add-version", document: DOCUMENT, name } });
const job = (one: HistoryJob): HistoryInput => ({ kind: "job", job: one });
const archive = job({ kind: "archive", before: 40 });
const entryRead = (history: History, revision = 1): HistoryInput => ({ kind: "entry-read", found: { history, revision } });
const objectWritten = (object: string): HistoryInput => ({ kind: "object-written", written: { object, bytes: 5, sha256: "x" } });
const entryWritten = (revision: number): HistoryInput => ({ kind: "entry-written", write: { kind: "written", revision } });
const superseded: HistoryInput = { kind: "entry-written", write: { kind: "superseded" } };
const removed: HistoryInput = { kind: "objects-removed" };
const recordsRead = (from: number, to: number): HistoryInput => ({
  kind: "records-read",
  records: RECORDS.slice(from, to),
  isComplete: true,
});
const segment = (firstSeq: number, lastSeq: number): Segment => ({
  object: `${ROOM}/edits-${firstSeq}-${lastSeq}-old`,
  bytes: 50,
  sha256: "",
  firstSeq: firstSeq as Seq,
  lastSeq: lastSeq as Seq,
  firstTime: 0 as UnixMillis,
  lastTime: 0 as UnixMillis,
});
const version = (seq: number): DocumentVersion => ({
  object: `${ROOM}/version-1-${seq}-old`,
  id: `v${seq}`,
  bytes: 5,
  sha256: "",
  epoch: 1 as Epoch,
  seq: seq as Seq,
  time: NOW,
});

function planOf(
  policy: Partial<HistoryPolicy> = {},
  { date = NOW, storeDate = NOW } = {},
): (...inputs: readonly HistoryInput[]) => HistoryEffect[] {
  let names = 0;
  const plan = new HistoryPlan(ROOM, { ...POLICY, ...policy }, () => `new${++names}`, 0 as Millis);
  /** Returns the effects of the last input. */
  return (...inputs) => inputs.map((input) => plan.receive(input, date, storeDate)).at(-1) ?? [];
}

test("[HJB1] an archive job writes records into a segment, then names it in the entry, until no record is left before the bound", () => {
  const receive = planOf();
  expect(receive(archive)).toEqual([{ kind: "read-entry" }]);
  expect(receive(entryRead(NO_HISTORY, 0))).toEqual([{ kind: "read-records", after: 0, before: 40, bytesMax: 10_000 }]);
  const object = `${ROOM}/edits-1-3-new1`;
  expect(receive(recordsRead(0, 3))).toEqual([{ kind: "write-object", object, bytes: encodeSegment(ROOM, RECORDS.slice(0, 3)) }]);
  expect(receive(objectWritten(object))).toMatchObject([
    { kind: "write-entry", history: { segments: [{ object, firstSeq: 1, lastSeq: 3 }], through: 30 }, revision: 0 },
  ]);
  expect(receive(entryWritten(1))).toEqual([{ kind: "read-entry" }]);
  const named: History = { ...NO_HISTORY, segments: [{ ...segment(1, 3), object }], through: 30 };
  expect(receive(entryRead(named))).toEqual([{ kind: "read-records", after: 30, before: 40, bytesMax: 10_000 }]);
  expect(receive(recordsRead(3, 3))).toEqual([{ kind: "end", result: { kind: "done" } }]);
});

test("[HJB2] a new segment replaces a readable earlier one, whose object is removed once the entry no longer names it", () => {
  const receive = planOf();
  const history: History = { ...NO_HISTORY, segments: [segment(1, 2)], through: 20 };
  expect(receive(archive, entryRead(history), recordsRead(2, 3))).toEqual([{ kind: "read-segment", segment: segment(1, 2) }]);
  const object = `${ROOM}/edits-1-3-new1`;
  const bytes = encodeSegment(ROOM, RECORDS.slice(0, 2));
  expect(receive({ kind: "segment-read", bytes })).toMatchObject([{ kind: "write-object", object }]);
  expect(receive(objectWritten(object))).toMatchObject([{ kind: "write-entry", history: { segments: [{ object }] }, revision: 1 }]);
  expect(receive(entryWritten(2))).toEqual([{ kind: "remove-objects", objects: [segment(1, 2).object] }]);
});

test("[HJB3] a damaged earlier segment stays named beside the new one", () => {
  const receive = planOf();
  const history: History = { ...NO_HISTORY, segments: [segment(1, 2)], through: 20 };
  const object = `${ROOM}/edits-3-3-new1`;
  expect(receive(archive, entryRead(history), recordsRead(2, 3), { kind: "segment-read", bytes: undefined })).toMatchObject([
    { kind: "write-object", object },
  ]);
  expect(receive(objectWritten(object))).toMatchObject([
    { kind: "write-entry", history: { segments: [{ object: segment(1, 2).object }, { object }] } },
  ]);
});

test("[HJB4] an archive job ends at an empty log, and fails if the log does not show a record that exists", () => {
  const missing: HistoryInput = { kind: "records-read", records: [], isComplete: false };
  const endAt = (end: (HistoryInput & { kind: "log-end-read" })["end"]) =>
    planOf()(archive, entryRead(NO_HISTORY), missing, { kind: "log-end-read", end });
  expect(planOf()(archive, entryRead(NO_HISTORY), missing)).toEqual([{ kind: "read-log-end" }]);
  expect(endAt({ kind: "empty" })).toEqual([{ kind: "end", result: { kind: "done" } }]);
  expect(endAt({ kind: "at", seq: 4 as Seq })).toMatchObject([{ kind: "end", result: { kind: "failed" } }]);
});

test("[HJB5] a superseded job begins again from the other service's entry, three times at most", () => {
  const receive = planOf();
  receive(addVersion(), entryRead(NO_HISTORY));
  for (const tries of [1, 2, 3]) {
    const after = receive(objectWritten(`${ROOM}/version-1-4-new${tries}`), superseded);
    expect(after).toMatchObject([tries < 3 ? { kind: "read-entry" } : { kind: "end", result: { kind: "failed" } }]);
    if (tries < 3) receive(entryRead(NO_HISTORY, tries + 1));
  }
});

test("[HJB12] the object of a superseded job is removed only after a later entry that does not name it was written", () => {
  const superfluous = planOf();
  const [first, second] = [`${ROOM}/version-1-4-new1`, `${ROOM}/version-1-4-new2`];
  superfluous(addVersion(), entryRead(NO_HISTORY), objectWritten(first), superseded, entryRead(NO_HISTORY, 2), objectWritten(second));
  expect(superfluous(entryWritten(3))).toEqual([{ kind: "remove-objects", objects: [first] }]);

  // The refused write was a repeat: the store had the entry already, and a former leader answered with the one before.
  const named = planOf();
  named(addVersion(), entryRead(NO_HISTORY), objectWritten(first), superseded);
  const history: History = { ...NO_HISTORY, versions: [{ ...version(4), object: first }] };
  named(entryRead(history, 2), objectWritten(second));
  expect(named(entryWritten(3))).toMatchObject([{ kind: "end", result: { kind: "named" } }]);
});

test("[HJB13] a superseded job that finds the room deleted removes its object, because no later entry is written", () => {
  const receive = planOf();
  const object = `${ROOM}/version-1-4-new1`;
  receive(addVersion(), entryRead(NO_HISTORY), objectWritten(object), superseded);
  expect(receive(entryRead({ ...NO_HISTORY, deleted: true }, 2))).toEqual([{ kind: "remove-objects", objects: [object] }]);
  expect(receive(removed)).toEqual([{ kind: "end", result: { kind: "deleted" } }]);
});

test("[HJB6] an object that a failed write may have named is removed with the next write that does not name it", () => {
  const receive = planOf();
  const first = `${ROOM}/version-1-4-new1`;
  receive(addVersion(), entryRead(NO_HISTORY), objectWritten(first), { kind: "failed" });
  receive(addVersion(), entryRead(NO_HISTORY), objectWritten(`${ROOM}/version-1-4-new2`));
  expect(receive(entryWritten(2))).toEqual([{ kind: "remove-objects", objects: [first] }]);
  expect(receive(removed)).toMatchObject([{ kind: "end", result: { kind: "named", version: { id: "new2", time: NOW } } }]);
});

test("[HJB7] jobs run one after another, and a failed job does not stop the next one", () => {
  const receive = planOf();
  receive(addVersion());
  expect(receive(archive)).toEqual([]);
  expect(receive({ kind: "failed" })).toEqual([{ kind: "read-entry" }]);
  expect(receive(entryRead(NO_HISTORY))).toMatchObject([{ kind: "read-records" }]);
});

test("[HJB8] a named version is rejected beyond the limit, and a deleted room keeps no version", () => {
  const full: History = { ...NO_HISTORY, versions: [{ ...version(1), name: "draft" }] };
  expect(planOf()(addVersion("two"), entryRead(full))).toEqual([{ kind: "end", result: { kind: "too-many" } }]);
  expect(planOf()(addVersion(), entryRead(full))).toMatchObject([{ kind: "write-object" }]);
  expect(planOf()(addVersion(), entryRead({ ...full, deleted: true }))).toEqual([{ kind: "end", result: { kind: "deleted" } }]);
});

test("[HJB9] orphans are removed only after the entry was written again, and never without an entry", () => {
  const history: History = { ...NO_HISTORY, versions: [version(1)] };
  const sweep = job({ kind: "remove-orphans", names: [version(1).object, "orphan"] });
  const receive = planOf();
  expect(receive(sweep, entryRead(history, 7))).toEqual([{ kind: "write-entry", history, revision: 7 }]);
  expect(receive(entryWritten(8))).toEqual([{ kind: "remove-objects", objects: ["orphan"] }]);
  expect(planOf()(sweep, entryRead(history, 7), superseded)).toEqual([{ kind: "end", result: { kind: "done" } }]);
  expect(planOf()(sweep, entryRead(NO_HISTORY, 0))).toEqual([{ kind: "end", result: { kind: "done" } }]);
});

test("[HJB10] a wipe marks the entry deleted, then removes every object, then empties the entry", () => {
  const receive = planOf();
  const history: History = { ...NO_HISTORY, versions: [version(1)], segments: [segment(1, 2)], through: 20 };
  expect(receive(job({ kind: "wipe" }), entryRead(history, 3))).toEqual([
    { kind: "write-entry", history: { ...history, deleted: true }, revision: 3 },
  ]);
  expect(receive(superseded)).toEqual([{ kind: "read-entry" }]);
  receive(entryRead(history, 4));
  expect(receive(entryWritten(5))).toEqual([{ kind: "erase-objects", objects: [version(1).object, segment(1, 2).object] }]);
  expect(receive(removed)).toEqual([{ kind: "write-entry", history: { ...NO_HISTORY, deleted: true }, revision: 5 }]);
  expect(receive(entryWritten(6))).toEqual([{ kind: "end", result: { kind: "done" } }]);
  expect(receive(archive, entryRead({ ...NO_HISTORY, deleted: true }, 6))).toEqual([{ kind: "end", result: { kind: "done" } }]);
});

test("[HJB11] nothing is archived if the settings keep no history", () => {
  expect(planOf({ historyMsMax: 0 })(archive)).toEqual([{ kind: "end", result: { kind: "done" } }]);
});

test("[HJB14] a sweep removes what is older than the limit from a room that nobody edits, and keeps named versions", () => {
  const named = { ...version(3), name: "release", time: 0 as UnixMillis };
  const history: History = { ...NO_HISTORY, versions: [version(1), named], segments: [segment(1, 2)], through: 20 };
  const sweep = job({ kind: "remove-orphans", names: [] });
  const receive = planOf({ historyMsMax: 999 }); // Only the segment and `named` are older.
  expect(receive(sweep, entryRead(history, 7))).toEqual([{ kind: "write-entry", history: { ...history, segments: [] }, revision: 7 }]);
  expect(receive(entryWritten(8))).toEqual([{ kind: "remove-objects", objects: [segment(1, 2).object] }]);
  expect(receive(removed)).toEqual([{ kind: "end", result: { kind: "done" } }]);
  expect(planOf({ historyMsMax: 1_000 })(sweep, entryRead(history, 7))).toEqual([{ kind: "end", result: { kind: "done" } }]);
});

test("[HJB15] a new segment absorbs no segment before a gap, because a segment is read as a range without a gap", () => {
  const beforeFresh: History = { ...NO_HISTORY, segments: [segment(1, 1)], through: 20 };
  const receive = planOf();
  const object = `${ROOM}/edits-3-3-new1`;
  expect(receive(archive, entryRead(beforeFresh), recordsRead(2, 3)), "seq 2 is missing").toMatchObject([{ kind: "write-object", object }]);
  expect(receive(objectWritten(object))).toMatchObject([{ history: { segments: [segment(1, 1), { object, firstSeq: 3, lastSeq: 3 }] } }]);

  const between: History = { ...NO_HISTORY, segments: [segment(1, 1), segment(3, 3)], through: 30 };
  const absorbing = planOf();
  const read = absorbing(job({ kind: "archive", before: 50 }), entryRead(between), recordsRead(3, 4));
  expect(read).toEqual([{ kind: "read-segment", segment: segment(3, 3) }]);
  const larger = `${ROOM}/edits-3-4-new1`;
  const bytes = encodeSegment(ROOM, RECORDS.slice(2, 3));
  expect(absorbing({ kind: "segment-read", bytes })).toMatchObject([{ kind: "write-object", object: larger }]);
  expect(absorbing(objectWritten(larger))).toMatchObject([{ history: { segments: [segment(1, 1), { object: larger }] } }]);

  const chain: History = { ...NO_HISTORY, segments: [segment(1, 1), segment(2, 2)], through: 20 };
  const second: HistoryInput = { kind: "segment-read", bytes: encodeSegment(ROOM, RECORDS.slice(1, 2)) };
  expect(planOf()(archive, entryRead(chain), recordsRead(2, 3), second)).toEqual([{ kind: "read-segment", segment: segment(1, 1) }]);
});

test("[HJB16] a service whose date is years ahead of the store's drops nothing, and neither does one whose store is ahead", () => {
  const history: History = { ...NO_HISTORY, versions: [version(1)], segments: [{ ...segment(1, 2), lastTime: NOW }], through: 20 };
  const sweep = job({ kind: "remove-orphans", names: [] });
  const ahead = (NOW + 10 ** 12) as UnixMillis;
  for (const dates of [{ date: ahead }, { storeDate: ahead }]) {
    expect(planOf({}, dates)(sweep, entryRead(history, 7))).toEqual([{ kind: "end", result: { kind: "done" } }]);
    const receive = planOf({}, dates);
    receive(addVersion(), entryRead(history));
    const [effect] = receive(objectWritten(`${ROOM}/version-1-4-new1`));
    expect(effect).toMatchObject({ history: { segments: history.segments, versions: [version(1), { seq: 4, time: dates.date ?? NOW }] } });
  }
  expect(planOf({}, { date: ahead, storeDate: ahead })(sweep, entryRead(history, 7))).toMatchObject([{ history: { segments: [] } }]);
});

test("[HJB17] a job keeps the segments of another service whose entry got the known revision, because the bucket lost its end", () => {
  const receive = planOf();
  receive(addVersion(), entryRead(NO_HISTORY, 0), objectWritten(`${ROOM}/version-1-4-new1`), entryWritten(1));
  const others: History = { ...NO_HISTORY, segments: [segment(1, 3)], through: 30 };
  expect(receive(addVersion())).toEqual([{ kind: "read-entry" }]);
  receive(entryRead(others, 1));
  expect(receive(objectWritten(`${ROOM}/version-1-4-new2`))).toMatchObject([
    { kind: "write-entry", history: { segments: others.segments, through: 30 }, revision: 1 },
  ]);
});
