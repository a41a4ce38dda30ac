/**
 * Messages between gateways and a room's owner. Every message from an owner carries its epoch. A gateway ignores epochs
 * that are lower than one it has seen, so a deposed owner cannot confuse it. Records arrive on the same subjects, as
 * the log stored them (record.ts).
 */

import type { Author, ClientId, Epoch, GatewayId, Position, RoomKey, Seq } from "../ids.ts";
import { numbered, tentativeEdit } from "../wire/committed-edits.ts";
import {
  bytes,
  clientId,
  counter,
  epoch,
  type Format,
  fields,
  flag,
  gatewayId,
  kinds,
  list,
  number,
  oneOf,
  position,
  seqOrStart,
  userId,
  encode,
  decodeAll,
} from "../wire/fields.ts";
import {
  type Counter,
  NACK_REASONS,
  type NackReason,
  RESYNC_REASONS,
  type ResyncReason,
  SAVING_STATES,
  type SavingState,
  type TentativeEdit,
} from "../wire/frames.ts";
import { decodeRecord, encodeDeletedRecord, type LogRecord, type OwnersRecord, Tag } from "./record.ts";

/** An edit on its way to the owner, with the author that the gateway verified. */
export type SubmittedEdit = {
  readonly author: Author;
  readonly counter: Counter;
  readonly ackedThrough: Counter;
  readonly parentSeq: Seq;
  readonly payload: Uint8Array;
  /** Sent in a separate message. */
  readonly mustBeFirst?: true;
};

/**
 * An edit over HTTP has a client id of its own, which represents its Idempotency-Key. Its counter is not 1 but this
 * plus a digest of the request, so that the log and checkpoints recognise a different request with the same key.
 */
export const ONLY_EDIT_COUNTER_MIN = 2 ** 32;

/** To the owner. */
export type ToOwner =
  | FromGateway
  /** From the document service, after another writer wrote to the room's log: check that you still own the room. */
  | { kind: "check-ownership" };

/** gateway -> owner */
export type FromGateway =
  | { kind: "edits"; gateway: GatewayId; edits: readonly SubmittedEdit[] }
  /** Requests the edits after `after`, up to `through` (0: the head). */
  | { kind: "catch-up-request"; gateway: GatewayId; request: number; after: Position; through: Seq }
  | { kind: "resubmit"; gateway: GatewayId; edit: TentativeEdit }
  /** Accept only as the room's first edit, so that the content of an empty room is created once, even if several clients try. */
  | { kind: "first-edit"; gateway: GatewayId; edit: SubmittedEdit };

/**
 * The room owners in this process, for a gateway of the same process: its edits need not pass through NATS (ADR 48).
 * They are passed without encoding: both sides treat messages as immutable, and the owner copies payloads. An owner
 * gets a message only while it alone orders the room's edits, in the epoch that the gateway knows. For example, after
 * another server claimed epoch 7, the owner of epoch 6 gets nothing. The target of a handover and a later owner are
 * reached only over NATS.
 */
export type LocalOwners = Map<RoomKey, LocalOwner>;
export type LocalOwner = {
  /** The epoch in which this owner alone takes the room's edits. Undefined: it does not own the room, or is handing it over. */
  readonly openEpoch: Epoch | undefined;
  /** `bytes`: the size in memory that counts while the message waits, 0 for a message that is taken at once. */
  receiveMessage(message: ToOwner, bytes: number): void;
};

/** owner -> every gateway of the room, on `edits.out` */
export type FromOwner =
  | LogRecord
  | { kind: "beacon"; epoch: Epoch; head: Seq }
  | { kind: "tentative"; edit: TentativeEdit }
  | { kind: "saving"; epoch: Epoch; state: SavingState };

/** An owner's own announcements. An owner that finds the deletion in the log repeats it for gateways that missed it. */
export type OwnerAnnouncement = Exclude<FromOwner, OwnersRecord>;

/** owner -> one gateway */
export type OwnerReply =
  | CatchUpReply
  /** A repeat. `exact`: `seq` is the edit's own. Otherwise the edit was committed at or before `seq`. */
  | { kind: "acked"; epoch: Epoch; client: ClientId; counter: Counter; seq: Seq; exact: boolean }
  | { kind: "refused"; epoch: Epoch; client: ClientId; counter: Counter; reason: NackReason; expected: Counter; retryAfterMs: number }
  /** Answers a first edit: the room already has edits, or accepted one. */
  | { kind: "not-first"; epoch: Epoch; client: ClientId; counter: Counter }
  /** Answers an edit over HTTP: a different edit was accepted with its key. */
  | { kind: "key-reused"; epoch: Epoch; client: ClientId; counter: Counter };

export type CatchUpReply = {
  readonly kind: "catch-up";
  readonly request: number;
  readonly epoch: Epoch;
  readonly head: Seq;
  readonly answer: CatchUp;
};
/** The first edits that fit a message. The gateway requests the rest. Each part is the bytes of committed edits, in order. */
export type CatchUp = { kind: "edits"; parts: readonly Uint8Array[] } | { kind: "resync"; reason: ResyncReason };

const SUBMITTED_EDIT_BYTES_MIN = 23;

const submittedEdit: Format<SubmittedEdit> = numbered(
  fields({ author: fields({ user: userId, client: clientId }), counter, ackedThrough: number, parentSeq: seqOrStart, payload: bytes }),
);

const catchUp = kinds<CatchUp>({
  resync: [0, fields({ reason: oneOf(RESYNC_REASONS) })],
  edits: [1, fields({ parts: list(1, bytes) })],
});

const TO_OWNER = kinds<ToOwner>({
  "edits": [Tag.edits, fields({ gateway: gatewayId, edits: list(SUBMITTED_EDIT_BYTES_MIN, submittedEdit) })],
  "catch-up-request": [Tag.catchUpRequest, fields({ gateway: gatewayId, request: number, after: position, through: seqOrStart })],
  "resubmit": [Tag.resubmit, fields({ gateway: gatewayId, edit: tentativeEdit })],
  "first-edit": [Tag.firstEdit, fields({ gateway: gatewayId, edit: submittedEdit })],
  "check-ownership": [Tag.checkOwnership, fields({})],
});

const RECORDS: ReadonlySet<number | undefined> = new Set([Tag.epochRecord, Tag.loneEpochRecord, Tag.editsRecord, Tag.deletedRecord]);
const FROM_OWNER = kinds<Exclude<OwnerAnnouncement, LogRecord>>({
  beacon: [Tag.beacon, fields({ epoch, head: seqOrStart })],
  tentative: [Tag.tentative, fields({ edit: tentativeEdit })],
  saving: [Tag.saving, fields({ epoch, state: oneOf(SAVING_STATES) })],
});

const ANSWER = kinds<OwnerReply>({
  "catch-up": [Tag.catchUp, fields({ request: number, epoch, head: seqOrStart, answer: catchUp })],
  "acked": [Tag.acked, fields({ epoch, client: clientId, counter, seq: seqOrStart, exact: flag })],
  "refused": [
    Tag.refused,
    fields({ epoch, client: clientId, counter, reason: oneOf(NACK_REASONS), expected: counter, retryAfterMs: number }),
  ],
  "not-first": [Tag.notFirst, fields({ epoch, client: clientId, counter })],
  "key-reused": [Tag.keyReused, fields({ epoch, client: clientId, counter })],
});

export function encodeToOwner(message: ToOwner): Uint8Array {
  return encode((out) => TO_OWNER.write(out, message));
}

/** Undefined for other bytes. Payloads are views into `bytes`. */
export function decodeToOwner(bytes: Uint8Array): ToOwner | undefined {
  return decodeAll(bytes, TO_OWNER.read);
}

/** Records of owners are not encoded here, because the log stores and republishes them. */
export function encodeFromOwner(message: OwnerAnnouncement): Uint8Array {
  return message.kind === "deleted" ? encodeDeletedRecord(message) : encode((out) => FROM_OWNER.write(out, message));
}

export function decodeFromOwner(bytes: Uint8Array): FromOwner | undefined {
  return RECORDS.has(bytes[0]) ? decodeRecord(bytes) : decodeAll(bytes, FROM_OWNER.read);
}

export function encodeOwnerReply(message: OwnerReply): Uint8Array {
  return encode((out) => ANSWER.write(out, message));
}

export function decodeOwnerReply(bytes: Uint8Array): OwnerReply | undefined {
  return decodeAll(bytes, ANSWER.read);
}
