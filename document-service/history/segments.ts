/**
 * Encodes log records into a segment, and reads edits and writing sessions from log records. A segment is a part of a
 * room's history, stored as one object in the snapshot store.
 */

import * as decoding from "lib0/decoding";
import * as encoding from "lib0/encoding";
import { decodeRecord, type EditsRecord, epochOf, headOf, type StoredRecord } from "../../shared/bus/record.ts";
import type { ClientId, Epoch, RoomKey, Seq, UnixMillis, UserId } from "../../shared/ids.ts";
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

/** The edits of one record, with the log's time of it. */
export type LoggedEdits = { readonly record: EditsRecord; readonly time: UnixMillis };

/** The records that hold edits, once each. */
export function loggedEditsOf(records: Iterable<StoredRecord>): LoggedEdits[] {
  let lastStreamSeq = 0;
  const taken: LoggedEdits[] = [];
  for (const { streamSeq, time, bytes } of records) {
    const record = streamSeq > lastStreamSeq ? decodeRecord(bytes.slice()) : undefined;
    lastStreamSeq = Math.max(lastStreamSeq, streamSeq);
    if (record?.kind === "edits") taken.push({ record, time });
  }
  return taken;
}

/** The first and the last seq in the records. Undefined: they hold no edits. */
export function seqsOf(records: Iterable<StoredRecord>): { readonly firstSeq: Seq; readonly lastSeq: Seq } | undefined {
  const taken = loggedEditsOf(records);
  const [first, last] = [taken[0], taken.at(-1)];
  return first === undefined || last === undefined ? undefined : { firstSeq: first.record.edits.firstSeq, lastSeq: headOf(last.record) };
}

type EditsBetween =
  | { readonly kind: "edits"; readonly payloads: readonly Uint8Array[]; readonly epoch: Epoch; readonly time: UnixMillis }
  | { readonly kind: "missing"; readonly from: Seq };

/** The edits in `after < seq <= through`, if all of them are there. */
export function editsBetween(taken: readonly LoggedEdits[], after: Seq, through: Seq): EditsBetween {
  const payloads: Uint8Array[] = [];
  let [reached, epoch, time]: [number, Epoch, UnixMillis] = [after, 0 as Epoch, 0 as UnixMillis];
  for (const { record, time: takenAt } of taken) {
    const { firstSeq, edits } = record.edits;
    if (firstSeq > reached + 1 && reached < through) break;
    for (const [index, { payload }] of edits.entries()) {
      if (firstSeq + index !== reached + 1 || reached >= through) continue;
      payloads.push(payload);
      [reached, epoch, time] = [reached + 1, epochOf(record), takenAt];
    }
  }
  return reached < through ? { kind: "missing", from: (reached + 1) as Seq } : { kind: "edits", payloads, epoch, time };
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
