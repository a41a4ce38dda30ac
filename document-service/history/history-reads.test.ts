import { expect, test } from "vitest";

import { decodeRecord, encodeEditsRecord, encodeEpochRecord, type StoredRecord } from "../../shared/bus/record.ts";
import type { Epoch, Seq, UnixMillis } from "../../shared/ids.ts";
import { EMPTY_STATE } from "../merge.ts";
import { recordsOf, ROOM } from "../testing/one-room.ts";
import { type DocumentVersion, type History, NO_HISTORY, type Segment } from "./history.ts";
import { type HistoryMoment, type HistoryReadEffect, type HistoryReadInput, planNaming, StateRead } from "./history-reads.ts";
import type { TailReader } from "./log-tail.ts";
import { encodeSegment } from "./segments.ts";
import { SessionsRead } from "./sessions-read.ts";

const OPTIONS = { historySessionMsMax: 60_000, historyReadBytesMax: 1_000 };
/** The log's time of each record is its seq times 1,000. */
const RECORDS = recordsOf("abcdef").map((record, index) => ({ ...record, time: ((index + 1) * 1_000) as UnixMillis }));

const segment = (firstSeq: number, lastSeq: number, bytes = 50): Segment => ({
  object: `edits ${firstSeq}`,
  bytes,
  sha256: "",
  firstSeq: firstSeq as Seq,
  lastSeq: lastSeq as Seq,
  firstTime: (firstSeq * 1_000) as UnixMillis,
  lastTime: (lastSeq * 1_000) as UnixMillis,
});
const version = (seq: number): DocumentVersion => ({
  object: `version ${seq}`,
  id: `v${seq}`,
  bytes: 5,
  sha256: "",
  epoch: 1 as Epoch,
  seq: seq as Seq,
  time: 0 as UnixMillis,
});
/** Seqs 1 to 4 are in two segments, the rest is in the log. There are versions at 2 and at 4. */
const HISTORY: History = { versions: [version(2), version(4)], segments: [segment(1, 2), segment(3, 4)], through: 40 };

const entry = (history: History = HISTORY): HistoryReadInput => ({ kind: "entry-read", history });
const object = (bytes: Uint8Array | undefined): HistoryReadInput => ({ kind: "object-read", bytes });
const bytesOf = (from: number, to: number): Uint8Array => encodeSegment(ROOM, RECORDS.slice(from - 1, to));
const endAt = (seq: number): HistoryReadInput => ({ kind: "log-end-read", end: { kind: "at", seq: seq as Seq } });
const TAIL_READ: HistoryReadInput = { kind: "tail-read", isAborted: false };
const NOT_KEPT = { kind: "answer", answer: { kind: "not-kept" } };
const readEntry = { kind: "read-entry" };
const readObject = (name: string) => ({ kind: "read-object", object: name, sha256: "" });

/** Returns the effect of the last input. Hands records of the log's tail over as the host does. */
function readOf(read: StateRead | SessionsRead, log = RECORDS): (...inputs: readonly HistoryReadInput[]) => HistoryReadEffect<unknown> {
  let effect: HistoryReadEffect<unknown> = read.begin();
  return (...inputs) => {
    for (const input of inputs) {
      if (input.kind === "tail-read" && !input.isAborted && effect.kind === "read-tail") handOver(log, effect.after, effect.reader);
      effect = read.receive(input);
    }
    return effect;
  };
}

function handOver(log: readonly StoredRecord[], after: number, reader: TailReader): void {
  for (const record of log) if (record.streamSeq > after && reader.receiveRecord(record) === "done") return;
}

const stateAt = (moment: HistoryMoment, options = OPTIONS) => readOf(new StateRead(moment, "state", options));
const stateIn = (log: StoredRecord[], moment: HistoryMoment) => readOf(new StateRead(moment, "state", OPTIONS), log);
const seq = (number: number): HistoryMoment => ({ seq: number as Seq });
const time = (number: number): HistoryMoment => ({ time: number as UnixMillis });

test("[HRS1] a state that has a version is read from it alone", () => {
  const receive = stateAt(seq(4));
  expect(receive()).toEqual(readEntry);
  expect(receive(entry())).toEqual(readObject("version 4"));
  expect(receive(object(EMPTY_STATE))).toEqual({
    kind: "answer",
    answer: { kind: "state", state: EMPTY_STATE, position: { epoch: 1, seq: 4 } },
  });
});

test("[HRS2] a state between two versions is built from the earlier one and the edits of the segments after it", () => {
  const receive = stateAt(seq(3));
  expect(receive(entry(), object(EMPTY_STATE))).toEqual(readObject("edits 3"));
  expect(receive(object(bytesOf(3, 4)))).toMatchObject({ kind: "merge", edits: [expect.anything()] });
  expect(receive({ kind: "merged", merged: { state: EMPTY_STATE, refused: 0 } })).toMatchObject({
    kind: "answer",
    answer: { kind: "state", position: { epoch: 1, seq: 3 } },
  });
});

test("[HRS3] a state after the last segment needs the log's tail, and is first compared with the log's end", () => {
  const receive = stateAt(seq(6));
  expect(receive(entry())).toEqual({ kind: "read-log-end" });
  expect(receive(endAt(6))).toEqual(readObject("version 4"));
  expect(receive(object(EMPTY_STATE))).toMatchObject({ kind: "read-tail", after: 40 });
  expect(receive(TAIL_READ)).toMatchObject({ kind: "merge", edits: { length: 2 } });
  expect(stateAt(seq(7))(entry(), endAt(6))).toEqual({ kind: "answer", answer: { kind: "not-yet", head: 6 } });
});

test("[HRS4] a damaged object leads to the next path, and a read without any path reads the entry once more before it ends", () => {
  const receive = stateAt(seq(4));
  expect(receive(entry(), object(undefined))).toEqual(readObject("version 2"));
  expect(receive(object(EMPTY_STATE))).toEqual(readObject("edits 3"));
  expect(receive(object(undefined))).toEqual(readObject("edits 1"));
  expect(receive(object(undefined))).toEqual(readEntry);
  expect(receive(entry({ ...NO_HISTORY, segments: [segment(3, 4)] }))).toEqual(NOT_KEPT);
});

test("[HRS5] a time is found in the log's tail, else in the segment around it; a time before the room's first edit is seq 0", () => {
  expect(stateAt(time(5_500))(entry())).toMatchObject({ kind: "read-tail" });
  expect(stateAt(time(5_500))(entry(), TAIL_READ)).toEqual({ kind: "read-log-end" });
  expect(stateAt(time(2_500))(entry())).toEqual(readObject("edits 1"));
  expect(stateAt(time(2_500))(entry(), object(bytesOf(1, 2)))).toEqual(readObject("version 2"));
  expect(stateAt(time(500))(entry())).toMatchObject({ kind: "answer", answer: { kind: "state", position: { seq: 0 } } });
  const later: History = { ...HISTORY, segments: [segment(3, 4)] };
  expect(stateAt(time(500))(entry(later), entry(later))).toEqual(NOT_KEPT);
});

test("[HRS6] a read is refused beyond its byte limit, in segments or in the tail, and ends when its client disconnects", () => {
  const tooMuch = { kind: "answer", answer: { kind: "too-much" } };
  expect(stateAt(seq(3))(entry({ ...HISTORY, versions: [], segments: [segment(1, 4, 2_000)] }))).toEqual(tooMuch);
  const receive = stateAt(seq(6), { ...OPTIONS, historyReadBytesMax: 100 });
  expect(receive(entry(), endAt(6), object(EMPTY_STATE), TAIL_READ)).toEqual(tooMuch);
  expect(stateAt(seq(6))(entry(), endAt(6), object(EMPTY_STATE), { kind: "tail-read", isAborted: true })).toEqual({
    kind: "answer",
    answer: { kind: "loading" },
  });
});

test("[HRS7] the edit that brings a state back is made against the current document", () => {
  const receive = readOf(new StateRead(seq(4), "revert", OPTIONS));
  expect(receive(entry(), object(EMPTY_STATE))).toEqual({ kind: "read-current" });
  const current = Uint8Array.of(1);
  const document = { state: current, applied: { epoch: 1 as Epoch, seq: 6 as Seq }, leftOut: 0 };
  expect(receive({ kind: "current-read", document })).toEqual({ kind: "revert", current, earlier: EMPTY_STATE });
  expect(receive({ kind: "reverted", reverted: "busy" })).toEqual({ kind: "answer", answer: { kind: "loading" } });
  expect([planNaming(undefined), planNaming({ ...document, applied: { epoch: 1 as Epoch, seq: 0 as Seq } })]).toEqual([
    { kind: "loading" },
    { kind: "no-document" },
  ]);
});

test("[HRS8] sessions are read from one segment for each answer, then from the tail, and the answer begins after a damaged segment", () => {
  const sessionsFrom = (from: number) => readOf(new SessionsRead(from as Seq, OPTIONS));
  expect(sessionsFrom(1)(entry(), TAIL_READ, object(bytesOf(1, 2)))).toMatchObject({ kind: "answer", answer: { through: 2 } });
  const damaged = sessionsFrom(1);
  expect(damaged(entry(), TAIL_READ, object(undefined)), "another segment may have replaced it").toEqual(readEntry);
  expect(damaged(entry(), TAIL_READ, object(undefined)), "it is damaged").toEqual(readObject("edits 3"));
  expect(damaged(object(bytesOf(3, 4))), "the answer shows the hole").toMatchObject({ answer: { from: 3, through: 4 } });
  expect(sessionsFrom(5)(entry(), TAIL_READ)).toMatchObject({ kind: "answer", answer: { from: 5, through: 6, sessions: [{ edits: 2 }] } });
  expect(sessionsFrom(7)(entry(), TAIL_READ)).toEqual({ kind: "answer", answer: { sessions: [], from: 7, through: 6 } });
});

test("[HRS9] edits that move from the log to a segment during a read of sessions are in the answer", () => {
  const trimmed = { ...NO_HISTORY, through: 40 };
  const receive = readOf(new SessionsRead(1 as Seq, OPTIONS));
  expect(receive(entry(trimmed), TAIL_READ), "the log begins after seq 1").toEqual(readEntry);
  expect(receive(entry(), TAIL_READ, object(bytesOf(1, 2)))).toMatchObject({ answer: { through: 2, sessions: [{ edits: 2 }] } });
  const dropped = readOf(new SessionsRead(1 as Seq, OPTIONS))(entry(trimmed), TAIL_READ, entry(trimmed), TAIL_READ);
  expect(dropped, "the history does not keep them").toMatchObject({ answer: { through: 6, sessions: [{ edits: 2 }] } });
});

test("[HRS10] a time between the last segment and a log that begins at seq 1 again is found in the segment", () => {
  const earlier = { ...segment(1, 2), firstTime: 100 as UnixMillis, lastTime: 200 as UnixMillis };
  const history: History = { ...NO_HISTORY, segments: [earlier], through: 0 }; // The room's checkpoint was lost.
  expect(stateAt(time(500))(entry(history), TAIL_READ)).toEqual(readObject("edits 1"));
  expect(stateAt(time(500))(entry({ ...history, segments: [] }), TAIL_READ)).toMatchObject({ answer: { position: { seq: 0 } } });
});

test("[HRS11] a room without any edit has no state at a time yet, while a room that lost its history kept none", () => {
  const unwritten: History = { ...NO_HISTORY, through: RECORDS.at(-1)!.streamSeq };
  const receive = stateAt(time(500));
  expect(receive(entry(unwritten), TAIL_READ)).toEqual({ kind: "read-log-end" });
  expect(receive({ kind: "log-end-read", end: { kind: "empty" } })).toEqual({ kind: "answer", answer: { kind: "not-yet", head: 0 } });
  const lost = stateAt(time(500));
  expect(lost(entry(unwritten), TAIL_READ, endAt(6))).toEqual(readEntry);
  expect(lost(entry(unwritten), TAIL_READ, endAt(6))).toEqual(NOT_KEPT);
});

test("[HRS12] a room's first edit that the log receives during a read of a time before it is not part of the answer", () => {
  const receive = stateAt(time(500));
  expect(receive(entry({ ...NO_HISTORY, through: RECORDS.at(-1)!.streamSeq }), TAIL_READ)).toEqual({ kind: "read-log-end" });
  expect(receive(endAt(1)), "the edit may be newer than the read of the tail").toEqual(readEntry);
  expect(receive(entry(NO_HISTORY), TAIL_READ)).toMatchObject({ answer: { kind: "state", position: { seq: 0 } } });
});

/** A log of these records: the first record of an epoch, which names the epoch before it, or an edit of each seq in a range. */
type LogPart =
  | { readonly epoch: number; readonly head: number; readonly before: number }
  | { readonly epoch: number; readonly from: number; readonly to: number };
function logOf(...parts: readonly LogPart[]): StoredRecord[] {
  const all = parts.flatMap((part) => {
    const epoch = part.epoch as Epoch;
    const stamp = { id: `server.${epoch}`, time: 0 as UnixMillis };
    if ("head" in part) return [encodeEpochRecord({ ...stamp, epoch, head: part.head as Seq, before: part.before as Epoch })];
    return RECORDS.slice(part.from - 1, part.to).map(({ bytes }) => {
      const record = decodeRecord(bytes);
      if (record?.kind !== "edits") throw new Error("each record has an edit");
      return encodeEditsRecord({ ...stamp, users: record.users, edits: { ...record.edits, epoch } });
    });
  });
  return all.map((bytes, index) => ({ room: ROOM, streamSeq: (index + 1) * 10, time: 0 as UnixMillis, bytes }));
}
const VERSIONS: History = { ...NO_HISTORY, versions: [version(2), version(4)] };

test("[HRS13] a version of a lost epoch is not continued with the edits that have the numbers of the lost ones", () => {
  const [lostAll, lostEnd] = [
    logOf({ epoch: 2, head: 0, before: 0 }, { epoch: 2, from: 1, to: 6 }),
    logOf({ epoch: 1, from: 1, to: 3 }, { epoch: 2, head: 3, before: 1 }, { epoch: 2, from: 4, to: 6 }),
  ];
  const all = stateIn(lostAll, seq(6));
  expect(all(entry(VERSIONS), endAt(6), object(EMPTY_STATE), TAIL_READ)).toEqual(readObject("version 2"));
  expect(all(object(EMPTY_STATE), TAIL_READ)).toMatchObject({ kind: "read-tail", after: 0 });
  expect(all(TAIL_READ), "the log has all edits").toMatchObject({ kind: "merge", edits: { length: 6 } });
  const end = stateIn(lostEnd, seq(6));
  expect(end(entry(VERSIONS), endAt(6), object(EMPTY_STATE), TAIL_READ)).toEqual(readObject("version 2"));
  expect(end(object(EMPTY_STATE), TAIL_READ), "the log has the edits of this version").toMatchObject({
    kind: "merge",
    edits: { length: 4 },
  });
});

test("[HRS14] segments with lost edits are not continued, and neither is an epoch that ended before the next owner's", () => {
  const segments: History = { ...HISTORY, versions: [] };
  const replaced = logOf({ epoch: 1, from: 1, to: 4 }, { epoch: 2, head: 2, before: 1 }, { epoch: 2, from: 3, to: 6 });
  const receive = stateIn(replaced, seq(6));
  expect(receive(entry(segments), endAt(6), object(bytesOf(1, 2)), object(bytesOf(3, 4)), TAIL_READ)).toEqual(readEntry);
  const behindLost = logOf({ epoch: 1, from: 1, to: 4 }, { epoch: 3, head: 4, before: 2 }, { epoch: 3, from: 5, to: 6 });
  expect(stateIn(behindLost, seq(6))(entry(NO_HISTORY), endAt(6), TAIL_READ), "epoch 3 follows lost edits").toEqual(readEntry);
});

test("[HRS15] the edits of the next owners follow a version of any epoch that ended there", () => {
  const owners = [
    { epoch: 2, head: 4, before: 1 },
    { epoch: 3, head: 4, before: 2 },
    { epoch: 3, from: 5, to: 6 },
  ] as const;
  const newer: History = { ...NO_HISTORY, versions: [{ ...version(4), epoch: 2 as Epoch }] };
  for (const history of [VERSIONS, newer]) {
    for (const log of [logOf({ epoch: 1, from: 1, to: 4 }, ...owners), logOf(...owners), logOf(owners[2])]) {
      const receive = stateIn(log, seq(6));
      expect(receive(entry(history), endAt(6), object(EMPTY_STATE), TAIL_READ)).toMatchObject({ kind: "merge", edits: { length: 2 } });
    }
  }
});

test("[HRS16] a version of a lost epoch at the end of a later epoch's segment is not continued with the edits after the segment", () => {
  const log = logOf({ epoch: 2, from: 1, to: 6 });
  const archived = encodeSegment(ROOM, log.slice(0, 4));
  const history: History = { versions: [version(4)], segments: [segment(1, 4)], through: 40 };
  const receive = stateIn(log, seq(6));
  expect(receive(entry(history), endAt(6), object(EMPTY_STATE), TAIL_READ), "the segment shows what is before edit 5").toEqual(
    readObject("version 4"),
  );
  expect(receive(object(EMPTY_STATE))).toEqual(readObject("edits 1"));
  expect(receive(object(archived), TAIL_READ), "without the version").toEqual(readObject("edits 1"));
  expect(receive(object(archived), TAIL_READ)).toMatchObject({ kind: "merge", edits: { length: 6 } });

  const [own, next] = [stateIn(log, seq(6)), encodeSegment(ROOM, RECORDS.slice(0, 4))];
  own(entry(history), endAt(6), object(EMPTY_STATE), TAIL_READ);
  expect(own(object(EMPTY_STATE), object(next), TAIL_READ), "epoch 2 follows epoch 1").toMatchObject({
    kind: "merge",
    edits: { length: 2 },
  });
});

test("[HRS17] sessions of edits that the log lost are not listed once later edits have their numbers, in segments or in the log", () => {
  const sessionsIn = (log: StoredRecord[], from: number) => readOf(new SessionsRead(from as Seq, OPTIONS), log);
  const log = logOf({ epoch: 1, from: 1, to: 2 }, { epoch: 2, from: 3, to: 6 });
  const lost: History = { ...NO_HISTORY, segments: [segment(1, 4)], through: 20 };
  expect(sessionsIn(log, 1)(entry(lost), TAIL_READ, object(bytesOf(1, 4)))).toMatchObject({
    answer: { through: 2, sessions: [{ edits: 2 }] },
  });
  const tail = sessionsIn(log, 3);
  expect(tail(entry(lost), TAIL_READ, object(bytesOf(1, 4)))).toMatchObject({ kind: "read-tail", after: 20 });
  expect(tail(TAIL_READ)).toMatchObject({ answer: { through: 6, sessions: [{ firstSeq: 3, edits: 4 }] } });

  const archived: History = { ...NO_HISTORY, segments: [segment(1, 4), segment(3, 6)], through: 60 };
  expect(sessionsIn(log, 1)(entry(archived), TAIL_READ, object(bytesOf(1, 4)))).toMatchObject({ answer: { through: 2 } });
  const later = sessionsIn(log, 3);
  expect(later(entry(archived), TAIL_READ, object(bytesOf(1, 4)))).toEqual(readObject("edits 3"));
  expect(later(object(encodeSegment(ROOM, log.slice(2))))).toMatchObject({ answer: { through: 6, sessions: [{ firstSeq: 3, edits: 4 }] } });
});
