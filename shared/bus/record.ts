/**
 * One message of a room's log: an epoch that begins, edits committed together, or that the room is deleted. JetStream
 * republishes each record as stored, so the same bytes are what gateways receive on `edits.out`.
 *
 * `id` names the record itself (the owner's run and a number of its own), never just room and seq: that
 * is how an owner tells its own record from another's after an append whose answer was lost.
 */

import * as decoding from "lib0/decoding";
import * as encoding from "lib0/encoding";

import type { ClientId, Epoch, Seq, ServerId, UnixMillis, UserId } from "../ids.ts";
import { type CommittedRuns, readCommittedEdits, readRuns, writeCommittedEdits } from "../wire/committed-edits.ts";
import {
  readByte,
  readBytes,
  readClientId,
  readEpoch,
  readList,
  readNumber,
  readSeqOrStart,
  readText,
  readUserId,
  readWhole,
} from "../wire/fields.ts";
import type { CommittedEdits } from "../wire/frames.ts";
import { Tag } from "./tags.ts";

export type LogRecord = OwnersRecord | DeletedRecord;
/** What the room's owners append. */
export type OwnersRecord = EpochRecord | EditsRecord;

/** What each record is marked with: a name that no other record has, and the date. */
export type RecordStamp = { readonly id: string; readonly time: UnixMillis };

/**
 * A new owner begins; takes no seq. `head`: the last seq before it. `before`: the epoch of the record before it, 0 if it
 * is the first: whoever follows the room, and is in another, has missed something. Undefined in records of earlier builds.
 */
export type EpochRecord = RecordStamp & { readonly kind: "epoch"; readonly epoch: Epoch; readonly head: Seq; readonly before?: Epoch };

export type EditsRecord = RecordStamp & {
  readonly kind: "edits";
  readonly edits: CommittedEdits;
  /** Who stands behind each client id of the edits. */
  readonly users: ReadonlyMap<ClientId, UserId>;
  /** The edits' own bytes, ready for a committed frame. A view into the record's bytes. */
  readonly editsBytes: Uint8Array;
};

/** The room's end: the last record that its log ever takes. No owner expects it, so none appends after it. */
export type DeletedRecord = RecordStamp & { readonly kind: "deleted" };

export function encodeDeletedRecord({ id, time }: RecordStamp): Uint8Array {
  return encoding.encode((out) => {
    encoding.writeUint8(out, Tag.deletedRecord);
    encoding.writeVarString(out, id);
    encoding.writeVarUint(out, time);
  });
}

export function encodeEpochRecord(record: Omit<EpochRecord, "kind">): Uint8Array {
  return encoding.encode((out) => {
    encoding.writeUint8(out, record.before === undefined ? Tag.loneEpochRecord : Tag.epochRecord);
    encoding.writeVarString(out, record.id);
    encoding.writeVarUint(out, record.time);
    encoding.writeVarUint(out, record.epoch);
    encoding.writeVarUint(out, record.head);
    if (record.before !== undefined) encoding.writeVarUint(out, record.before);
  });
}

export function encodeEditsRecord(record: Omit<EditsRecord, "kind" | "editsBytes">): Uint8Array {
  return encoding.encode((out) => {
    encoding.writeUint8(out, Tag.editsRecord);
    encoding.writeVarString(out, record.id);
    encoding.writeVarUint(out, record.time);
    encoding.writeVarUint(out, record.users.size);
    for (const [client, user] of record.users) {
      encoding.writeVarString(out, client);
      encoding.writeVarString(out, user);
    }
    writeCommittedEdits(out, record.edits);
  });
}

/** Without reading the record. */
export function isDeletedRecord(bytes: Uint8Array): boolean {
  return bytes[0] === Tag.deletedRecord;
}

/** Undefined for bytes that are no record. Payloads are views into `bytes`. */
export function decodeRecord(bytes: Uint8Array): LogRecord | undefined {
  return readWhole(bytes, readRecord);
}

/** The edits' own bytes in an edits record that was just encoded, without reading the edits again. */
export function editsBytesOf(record: Uint8Array): Uint8Array {
  const input = decoding.createDecoder(record);
  skipToEdits(input);
  return record.subarray(input.pos);
}

/** Who wrote which of a record's edits, without reading them. Undefined for bytes that are no record of edits. */
export function runsOf(record: Uint8Array): CommittedRuns | undefined {
  if (record[0] !== Tag.editsRecord) return undefined;
  return readWhole(record, (input) => {
    skipToEdits(input);
    return readRuns(input);
  });
}

function skipToEdits(input: decoding.Decoder): void {
  readByte(input); // tag
  readBytes(input); // id
  readNumber(input); // time
  for (let left = readNumber(input); left > 0; left--) {
    readBytes(input); // client
    readBytes(input); // user
  }
}

export function headOf(record: OwnersRecord): Seq {
  return record.kind === "epoch" ? record.head : ((record.edits.firstSeq + record.edits.edits.length - 1) as Seq);
}

/** The last seq before it. */
export function headBefore(record: OwnersRecord): Seq {
  return record.kind === "epoch" ? record.head : ((record.edits.firstSeq - 1) as Seq);
}

export function epochOf(record: OwnersRecord): Epoch {
  return record.kind === "epoch" ? record.epoch : record.edits.epoch;
}

/** The room server that wrote a record: its id begins with it. */
export function serverOf({ id }: Pick<RecordStamp, "id">): ServerId {
  return id.slice(0, id.lastIndexOf(".")) as ServerId;
}

const USER_BYTES_MIN = 19;

function readRecord(input: decoding.Decoder): LogRecord {
  const tag = readByte(input);
  const [id, time] = [readText(input), readNumber(input) as UnixMillis];
  if (tag === Tag.deletedRecord) return { kind: "deleted", id, time };
  if (tag === Tag.loneEpochRecord) return { kind: "epoch", id, time, epoch: readEpoch(input), head: readSeqOrStart(input) };
  if (tag === Tag.epochRecord)
    return { kind: "epoch", id, time, epoch: readEpoch(input), head: readSeqOrStart(input), before: readNumber(input) as Epoch };
  if (tag !== Tag.editsRecord) throw new RangeError("not a record");

  const users = new Map(readList(input, USER_BYTES_MIN, () => [readClientId(input), readUserId(input)]));
  const start = input.pos;
  const edits = readCommittedEdits(input);
  if (!edits.edits.every((edit) => users.has(edit.client))) throw new RangeError("an edit of nobody");
  return { kind: "edits", id, time, users, edits, editsBytes: input.arr.subarray(start, input.pos) };
}
