/**
 * Encodes log records into a segment, and reads edits and writing sessions from log records. A segment is a part of a
 * room's history, stored as one object in the snapshot store.
 */

import * as decoding from "lib0/decoding";
import * as encoding from "lib0/encoding";
import { decodeRecord, type EditsRecord, type EpochRecord, headOf, type StoredRecord } from "../../shared/bus/record.ts";
import type { ClientId, Epoch, Position, RoomKey, Seq, UnixMillis, UserId } from "../../shared/ids.ts";
import { readBytes, readList, readNumber, readText, decodeAll } from "../../shared/wire/fields.ts";

const RECORD_BYTES_MIN = 3;

/** The bytes begin with the room, so that an object alone identifies its room. */
export function encodeSegment(room: RoomKey, records: readonly StoredRecord[]): Uint8Array {
  return encoding.encode((out) => {
    encoding.writeVarString(out, room);
    encoding.writeVarUint(out, records.length);
    for (const { streamSeq, time, bytes } of records) {
      encoding.writeVarUint(out, streamSeq);
      encoding.writeVarUint(out, time);
      encoding.writeVarUint8Array(out, bytes);
    }
  });
}

/** Undefined: the bytes are no segment. */
export function decodeSegment(bytes: Uint8Array): StoredRecord[] | undefined {
  return decodeAll(bytes, (input: decoding.Decoder) => {
    const room = readText(input) as RoomKey;
    return readList(input, RECORD_BYTES_MIN, () => ({
      room,
      streamSeq: readNumber(input),
      time: readNumber(input) as UnixMillis,
      bytes: readBytes(input),
    }));
  });
}

/**
 * The edits of one record, with the log's time of it. `follows`: the epochs that end at the seq before these edits.
 * Undefined: the record before them was not read.
 */
export type LoggedEdits = { readonly record: EditsRecord; readonly time: UnixMillis; readonly follows: readonly Epoch[] | undefined };

/** Reads records in the log's order, each once. */
export class LoggedEditsReader {
  #lastStreamSeq = 0;
  #epochs: readonly Epoch[] | undefined;

  /** Undefined: the record holds no edits, or was received before. */
  receiveRecord({ streamSeq, time, bytes }: StoredRecord): LoggedEdits | undefined {
    if (streamSeq <= this.#lastStreamSeq) return undefined;
    this.#lastStreamSeq = streamSeq;
    const record = decodeRecord(bytes.slice());
    const follows = this.#epochs;
    switch (record?.kind) {
      case "edits":
        this.#epochs = [record.edits.epoch];
        return { record, time, follows };
      case "epoch":
        this.#epochs = follows && epochsAfter(follows, record);
        return undefined;
      default:
        this.#epochs = undefined;
        return undefined;
    }
  }
}

/** An owner that begins at a checkpoint of an epoch that the log lost does not follow the log's last record. */
function epochsAfter(epochs: readonly Epoch[], { epoch, before }: EpochRecord): readonly Epoch[] {
  return before === undefined || epochs.includes(before) ? [...epochs, epoch] : [before, epoch];
}

/** The records that hold edits, once each. */
export function loggedEditsOf(records: Iterable<StoredRecord>, reader = new LoggedEditsReader()): LoggedEdits[] {
  const taken: LoggedEdits[] = [];
  for (const stored of records) {
    const edits = reader.receiveRecord(stored);
    if (edits !== undefined) taken.push(edits);
  }
  return taken;
}

/** Undefined: the segment is missing or damaged. */
export function editsInSegment(bytes: Uint8Array | undefined, reader?: LoggedEditsReader): LoggedEdits[] | undefined {
  const records = bytes && decodeSegment(bytes);
  return records && loggedEditsOf(records, reader);
}

/** The first and the last seq in the records. Undefined: they hold no edits. */
export function seqsOf(records: Iterable<StoredRecord>): { readonly firstSeq: Seq; readonly lastSeq: Seq } | undefined {
  const taken = loggedEditsOf(records);
  const [first, last] = [taken[0], taken.at(-1)];
  return first === undefined || last === undefined ? undefined : { firstSeq: first.record.edits.firstSeq, lastSeq: headOf(last.record) };
}

type EditsBetween =
  /** `isAssumed`: a later epoch follows an earlier one, and the record before it was not read. */
  | { readonly kind: "edits"; readonly payloads: readonly Uint8Array[]; readonly epoch: Epoch; readonly isAssumed: boolean }
  | { readonly kind: "missing"; readonly from: Seq };

/**
 * The edits in `after < seq <= through`, if all of them are there. Edits that a log lost are never followed by edits
 * that have their numbers: after a version at seq 8 of a lost epoch, a new epoch that began at seq 5 has no next edit.
 */
export function editsBetween(taken: readonly LoggedEdits[], after: Position, through: Seq): EditsBetween {
  const payloads: Uint8Array[] = [];
  let { epoch, seq: reached }: { epoch: Epoch; seq: number } = after;
  let isAssumed = false;
  for (const edits of taken) {
    const { firstSeq } = edits.record.edits;
    const head = headOf(edits.record);
    if (reached >= through) break;
    if (head <= reached) continue;
    if (!isNext(edits, epoch, reached)) break;
    isAssumed ||= reached > 0 && edits.follows === undefined && edits.record.edits.epoch !== epoch;
    for (const { payload } of edits.record.edits.edits.slice(reached + 1 - firstSeq, through + 1 - firstSeq)) payloads.push(payload);
    [reached, epoch] = [Math.min(head, through), edits.record.edits.epoch];
  }
  return reached < through ? { kind: "missing", from: (reached + 1) as Seq } : { kind: "edits", payloads, epoch, isAssumed };
}

/** Whether the record has the edit after the position `{ epoch, seq }`. Without a known record before it, a later epoch may follow. */
function isNext({ record, follows }: LoggedEdits, epoch: Epoch, seq: number): boolean {
  const { firstSeq, epoch: next } = record.edits;
  if (seq === 0 || next === epoch) return firstSeq <= seq + 1;
  return firstSeq === seq + 1 && (follows === undefined ? next > epoch : follows.includes(epoch));
}

/** The last seq that the log had at the time. Undefined: all records are newer. */
export function seqAt(taken: readonly LoggedEdits[], time: UnixMillis): Seq | undefined {
  const last = taken.findLast((one) => one.time <= time);
  return last && headOf(last.record);
}

/**
 * A writing session: the edits of one client without a long silence. Others may have written in between: `edits` counts
 * only the client's own.
 */
export type WritingSession = {
  readonly user: UserId;
  readonly client: ClientId;
  readonly firstSeq: Seq;
  readonly lastSeq: Seq;
  readonly edits: number;
  readonly firstTime: UnixMillis;
  readonly lastTime: UnixMillis;
};

/** In the order in which the sessions began. */
export function writingSessionsOf(taken: readonly LoggedEdits[], silenceMsMax: number): WritingSession[] {
  const all: WritingSession[] = [];
  const open = new Map<ClientId, number>();
  for (const { record, time } of taken) {
    for (const [index, { client }] of record.edits.edits.entries()) {
      const seq = (record.edits.firstSeq + index) as Seq;
      const at = open.get(client);
      const session = at === undefined ? undefined : all[at];
      if (at !== undefined && session !== undefined && time - session.lastTime <= silenceMsMax) {
        all[at] = { ...session, lastSeq: seq, edits: session.edits + 1, lastTime: time };
      } else {
        open.set(client, all.length);
        all.push({
          user: record.users.get(client) ?? ("" as UserId),
          client,
          firstSeq: seq,
          lastSeq: seq,
          edits: 1,
          firstTime: time,
          lastTime: time,
        });
      }
    }
  }
  return all;
}

export function bytesOf(records: readonly StoredRecord[]): number {
  return records.reduce((sum, record) => sum + record.bytes.byteLength, 0);
}
