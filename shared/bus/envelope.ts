/**
 * What gateways and a room's owner say to each other. Everything from an owner carries its epoch: a
 * gateway ignores what comes from a lower epoch than it has seen, so a deposed owner cannot confuse it.
 * Records come the same way, as the log stored them (record.ts).
 */

import type { Author, ClientId, Epoch, GatewayId, Position, Seq } from "../ids.ts";
import { encode } from "../wire/encode.ts";
import { readWhole } from "../wire/fields.ts";
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
  numbered,
  oneOf,
  position,
  seqOrStart,
  tentativeEdit,
  userId,
} from "../wire/formats.ts";
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
import { decodeRecord, encodeDeletedRecord, type LogRecord, type OwnersRecord } from "./record.ts";
import { Tag } from "./tags.ts";

/** An edit on its way to the owner: its author as the gateway verified it. */
export type SubmittedEdit = {
  readonly author: Author;
  readonly counter: Counter;
  readonly ackedThrough: Counter;
  readonly parentSeq: Seq;
  readonly payload: Uint8Array;
  /** Travels in a message of its own. */
  readonly mustBeFirst?: true;
};

/** To the owner. */
export type ToOwner =
  | FromGateway
  /** Of the document service. Somebody else has written to the room's log: look whether the room is still yours. */
  | { kind: "doubt" };

/** gateway -> owner */
export type FromGateway =
  | { kind: "edits"; gateway: GatewayId; edits: readonly SubmittedEdit[] }
  /** Asks for the edits after `after`, up to `through` (0: the head). */
  | { kind: "catch-up-request"; gateway: GatewayId; request: number; after: Position; through: Seq }
  | { kind: "resubmit"; gateway: GatewayId; edit: TentativeEdit }
  /** To be ordered only as the room's first: what is made of an empty room is made once, whoever else tries. */
  | { kind: "first-edit"; gateway: GatewayId; edit: SubmittedEdit };

/** owner -> every gateway of the room, on `edits.out` */
export type FromOwner =
  | LogRecord
  | { kind: "beacon"; epoch: Epoch; head: Seq }
  | { kind: "tentative"; edit: TentativeEdit }
  | { kind: "saving"; epoch: Epoch; state: SavingState };

/** What an owner says itself. That the room is deleted it found in the log, and repeats for who did not hear that. */
export type SaidByOwner = Exclude<FromOwner, OwnersRecord>;

/** owner -> one gateway */
export type Answer =
  | CatchUpAnswer
  /** A repeat: `exact` if `seq` is the edit's own, else it was committed at or before `seq`. */
  | { kind: "acked"; epoch: Epoch; client: ClientId; counter: Counter; seq: Seq; exact: boolean }
  | { kind: "refused"; epoch: Epoch; client: ClientId; counter: Counter; reason: NackReason; expected: Counter; retryAfterMs: number }
  /** A first edit, but the room has edits already, or has taken one. */
  | { kind: "not-first"; epoch: Epoch; client: ClientId; counter: Counter };

export type CatchUpAnswer = {
  readonly kind: "catch-up";
  readonly request: number;
  readonly epoch: Epoch;
  readonly head: Seq;
  readonly answer: CatchUp;
};
/** What fits a message: whoever misses more asks on. Each part is the bytes of committed edits, in order. */
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
  "doubt": [Tag.doubt, fields({})],
});

const RECORDS: ReadonlySet<number | undefined> = new Set([Tag.epochRecord, Tag.loneEpochRecord, Tag.editsRecord, Tag.deletedRecord]);
const FROM_OWNER = kinds<Exclude<SaidByOwner, LogRecord>>({
  beacon: [Tag.beacon, fields({ epoch, head: seqOrStart })],
  tentative: [Tag.tentative, fields({ edit: tentativeEdit })],
  saving: [Tag.saving, fields({ epoch, state: oneOf(SAVING_STATES) })],
});

const ANSWER = kinds<Answer>({
  "catch-up": [Tag.catchUp, fields({ request: number, epoch, head: seqOrStart, answer: catchUp })],
  "acked": [Tag.acked, fields({ epoch, client: clientId, counter, seq: seqOrStart, exact: flag })],
  "refused": [
    Tag.refused,
    fields({ epoch, client: clientId, counter, reason: oneOf(NACK_REASONS), expected: counter, retryAfterMs: number }),
  ],
  "not-first": [Tag.notFirst, fields({ epoch, client: clientId, counter })],
});

export function encodeToOwner(message: ToOwner): Uint8Array {
  return encode((out) => {
    if (message.kind === "edits") out.cbuf = new Uint8Array(sizeOf(message.edits)); // Growing on the way was half of the cost.
    TO_OWNER.write(out, message);
  });
}

/** Undefined for bytes that are no such message. Payloads are views into `bytes`. */
export function decodeToOwner(bytes: Uint8Array): ToOwner | undefined {
  return readWhole(bytes, TO_OWNER.read);
}

/** Owners' records are not written here: the log holds and republishes them. */
export function encodeFromOwner(message: SaidByOwner): Uint8Array {
  return message.kind === "deleted" ? encodeDeletedRecord(message) : encode((out) => FROM_OWNER.write(out, message));
}

export function decodeFromOwner(bytes: Uint8Array): FromOwner | undefined {
  return RECORDS.has(bytes[0]) ? decodeRecord(bytes) : readWhole(bytes, FROM_OWNER.read);
}

export function encodeAnswer(message: Answer): Uint8Array {
  return encode((out) => ANSWER.write(out, message));
}

export function decodeAnswer(bytes: Uint8Array): Answer | undefined {
  return readWhole(bytes, ANSWER.read);
}

/** Room for what is seldom more than so many bytes beside the payloads; if it is, the encoder grows. */
function sizeOf(edits: readonly SubmittedEdit[]): number {
  return edits.reduce((bytes, { author, payload }) => bytes + payload.byteLength + author.user.length + 48, 64);
}
