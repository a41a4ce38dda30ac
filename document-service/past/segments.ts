/** Records of a room's log as one object's bytes, and what is asked of such records: the edits up to a seq, and who wrote when. */

import * as decoding from "lib0/decoding";
import * as encoding from "lib0/encoding";

import type { StoredRecord } from "../../shared/bus/stored-record.ts";
import { decodeRecord, type EditsRecord, epochOf, headOf } from "../../shared/bus/record.ts";
import type { ClientId, Epoch, RoomKey, Seq, UnixMillis, UserId } from "../../shared/ids.ts";
import { readBytes, readList, readNumber, readText, readWhole } from "../../shared/wire/fields.ts";

const RECORD_BYTES_MIN = 3;

/** The room goes with its records: an object says by itself whose it is. */
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

/** Undefined for bytes that are no segment. */
export function decodeSegment(bytes: Uint8Array): StoredRecord[] | undefined {
  return readWhole(bytes, (input: decoding.Decoder) => {
    const room = readText(input) as RoomKey;
    return readList(input, RECORD_BYTES_MIN, () => ({
      room,
      streamSeq: readNumber(input),
      time: readNumber(input) as UnixMillis,
      bytes: readBytes(input),
    }));
  });
}

/** Edits of a room as the log took them at one time. */
export type Taken = { readonly record: EditsRecord; readonly time: UnixMillis };

/** Those of the records that hold edits, once each. */
export function takenFrom(records: Iterable<StoredRecord>): Taken[] {
  let lastStreamSeq = 0;
  const taken: Taken[] = [];
  for (const { streamSeq, time, bytes } of records) {
    const record = streamSeq > lastStreamSeq ? decodeRecord(bytes.slice()) : undefined;
    lastStreamSeq = Math.max(lastStreamSeq, streamSeq);
    if (record?.kind === "edits") taken.push({ record, time });
  }
  return taken;
}

/** The first and the last seq in the records; undefined: they are of owners alone. */
export function seqsOf(records: Iterable<StoredRecord>): { readonly firstSeq: Seq; readonly lastSeq: Seq } | undefined {
  const taken = takenFrom(records);
  const [first, last] = [taken[0], taken.at(-1)];
  return first === undefined || last === undefined ? undefined : { firstSeq: first.record.edits.firstSeq, lastSeq: headOf(last.record) };
}

export type EditsBetween =
  | { readonly kind: "edits"; readonly payloads: readonly Uint8Array[]; readonly epoch: Epoch; readonly time: UnixMillis }
  | { readonly kind: "missing"; readonly from: Seq };

/** The edits in `after < seq <= through`, if there are all of them. */
export function editsBetween(taken: readonly Taken[], after: Seq, through: Seq): EditsBetween {
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

/** The last seq that the log had at the time; undefined: none of these is so old. */
export function seqAt(taken: readonly Taken[], time: UnixMillis): Seq | undefined {
  const last = taken.findLast((one) => one.time <= time);
  return last && headOf(last.record);
}

/** What one client wrote without a long silence. Others may have written in between: `edits` of the seqs are its own. */
export type Session = {
  readonly user: UserId;
  readonly client: ClientId;
  readonly firstSeq: Seq;
  readonly lastSeq: Seq;
  readonly edits: number;
  readonly firstTime: UnixMillis;
  readonly lastTime: UnixMillis;
};

/** In the order in which they began. */
export function sessionsOf(taken: readonly Taken[], silenceMsMax: number): Session[] {
  const all: Session[] = [];
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
