/**
 * One record of a room's log: a new epoch, edits committed together, or the room's deletion. JetStream republishes each
 * record as stored, so gateways receive the same bytes on `edits.out`.
 *
 * `id` identifies the record (the owner's run and a number), not only its room and seq. After an append whose reply was
 * lost, an owner uses it to distinguish its own record from another owner's.
 */

import * as decoding from "lib0/decoding";
import * as encoding from "lib0/encoding";

import type { ClientId, Epoch, Seq, ServerId, UnixMillis, UserId, RoomKey } from "../ids.ts";
import { type CommittedRuns, readCommittedEdits, readRuns, writeCommittedEdits } from "../wire/committed-edits.ts";
import type { CommittedEdits } from "../wire/frames.ts";
import {
  readByte,
  readClientId,
  readEpoch,
  readList,
  readNumber,
  readSeqOrStart,
  readText,
  readUserId,
  decodeAll,
  encode,
  skipBytes,
} from "../wire/fields.ts";

/** A record as the log holds it. `time`: when the log stored it, on the log's clock. */
export type StoredRecord = { readonly room: RoomKey; readonly streamSeq: number; readonly time: UnixMillis; readonly bytes: Uint8Array };

/**
 * One record of a log, identified by its place and its id. The place alone proves nothing, because a log that lost its
 * end gives it to another record. `id` is "" for bytes that are not a record.
 */
export type RecordPlace = { readonly streamSeq: number; readonly id: string };

export function placeOf({ streamSeq, bytes }: StoredRecord): RecordPlace {
  return { streamSeq, id: recordIdOf(bytes) };
}

/**
 * The place from which a reader continues: after the stream sequence `after`. `last`: a record at or after it that the
 * log had before.
 */
export type ReadPosition = { readonly after: number; readonly last?: RecordPlace | undefined };

/** The log does not have a record that was read before. The reader starts again from the log's first record. */
export class LogEndLost extends Error {
  /** False: the record is gone and later ones exist, as after the deletion of its room. A lost end can look the same. */
  readonly isCertain: boolean;

  constructor(message: string, isCertain: boolean) {
    super(message);
    this.isCertain = isCertain;
  }
}

/** The first byte of every binary message on NATS. A number is never reused: old records stay in the log. */
export const Tag = {
  // on edits.out, to every gateway of the room
  /** Without the previous epoch: from earlier builds. */
  loneEpochRecord: 0x01,
  editsRecord: 0x02,
  beacon: 0x03,
  tentative: 0x04,
  saving: 0x05,
  deletedRecord: 0x06,
  epochRecord: 0x07,
  // to the owner, of edits
  edits: 0x10,
  catchUpRequest: 0x11,
  resubmit: 0x12,
  firstEdit: 0x13,
  checkOwnership: 0x14,
  // to one gateway
  catchUp: 0x20,
  acked: 0x21,
  refused: 0x22,
  notFirst: 0x23,
  keyReused: 0x24,
  // to the owner, of presence
  members: 0x30,
  presenceStates: 0x31,
  presenceSync: 0x32,
  // from the owner, of presence, to every gateway of the room
  presenceDelta: 0x40,
  presenceHead: 0x41,
  // from the owner, of presence, to one gateway
  membersReceived: 0x50,
  presenceSnapshot: 0x51,
  membersMissed: 0x52,
  notOwner: 0x53,
  // between a gateway and a room server, the presence of all their rooms
  presenceUp: 0x54,
  presenceDown: 0x55,
  // to all gateways
  countsReport: 0x60,
} as const;

export type LogRecord = OwnersRecord | DeletedRecord;
/** The records that owners append. */
export type OwnersRecord = EpochRecord | EditsRecord;

/** The mark of each record: a unique name, and the date. */
export type RecordStamp = { readonly id: string; readonly time: UnixMillis };

/**
 * A new owner begins. This record has no seq. `head`: the last seq before it. `before`: the epoch of the previous
 * record, 0 for the first. A follower in another epoch has missed a record. Undefined in records of earlier builds.
 */
export type EpochRecord = RecordStamp & { readonly kind: "epoch"; readonly epoch: Epoch; readonly head: Seq; readonly before?: Epoch };

export type EditsRecord = RecordStamp & {
  readonly kind: "edits";
  readonly edits: CommittedEdits;
  /** The user of each client id in the edits. */
  readonly users: ReadonlyMap<ClientId, UserId>;
  /** The encoded edits, ready for a committed frame. A view into the record's bytes. */
  readonly editsBytes: Uint8Array;
};

/** The end of the room: the last record of its log. No owner expects this record, so no append succeeds after it. */
export type DeletedRecord = RecordStamp & { readonly kind: "deleted" };

export function encodeDeletedRecord({ id, time }: RecordStamp): Uint8Array {
  return encode((out) => {
    encoding.writeUint8(out, Tag.deletedRecord);
    encoding.writeVarString(out, id);
    encoding.writeVarUint(out, time);
  });
}

export function encodeEpochRecord(record: Omit<EpochRecord, "kind">): Uint8Array {
  return encode((out) => {
    encoding.writeUint8(out, record.before === undefined ? Tag.loneEpochRecord : Tag.epochRecord);
    encoding.writeVarString(out, record.id);
    encoding.writeVarUint(out, record.time);
    encoding.writeVarUint(out, record.epoch);
    encoding.writeVarUint(out, record.head);
    if (record.before !== undefined) encoding.writeVarUint(out, record.before);
  });
}

export function encodeEditsRecord(record: Omit<EditsRecord, "kind" | "editsBytes">): Uint8Array {
  return encode((out) => {
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

/** Does not decode the record. */
export function isDeletedRecord(bytes: Uint8Array): boolean {
  return bytes[0] === Tag.deletedRecord;
}

/** Undefined for other bytes. Payloads are views into `bytes`. */
export function decodeRecord(bytes: Uint8Array): LogRecord | undefined {
  return decodeAll(bytes, readRecord);
}

/** Does not decode the rest of the record. "" for other bytes. */
export function recordIdOf(bytes: Uint8Array): string {
  return (
    decodeAll(bytes, (input) => {
      readByte(input); // tag
      const id = readText(input);
      input.pos = bytes.byteLength;
      return id;
    }) ?? ""
  );
}

/** The encoded edits of a record that was just encoded, without decoding them. */
export function editsBytesOf(record: Uint8Array): Uint8Array {
  const input = decoding.createDecoder(record);
  skipToEdits(input);
  return record.subarray(input.pos);
}

/** The writers of a record's edits, without decoding the payloads. Undefined for other bytes. */
export function runsOf(record: Uint8Array): CommittedRuns | undefined {
  if (record[0] !== Tag.editsRecord) return undefined;
  return decodeAll(record, (input) => {
    skipToEdits(input);
    return readRuns(input);
  });
}

function skipToEdits(input: decoding.Decoder): void {
  readByte(input); // tag
  skipBytes(input); // id
  readNumber(input); // time
  for (let left = readNumber(input); left > 0; left--) {
    skipBytes(input); // client
    skipBytes(input); // user
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
