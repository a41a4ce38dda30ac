/**
 * What gateways and a room's owner say to each other. Everything from an owner carries its epoch: a
 * gateway ignores what comes from a lower epoch than it has seen, so a deposed owner cannot confuse it.
 * Records come the same way, as the log stored them (record.ts).
 */

import type { Decoder } from "lib0/decoding";
import * as encoding from "lib0/encoding";

import { assertNever } from "../assert.ts";
import { type Author, type ClientId, type Epoch, type GatewayId, parseGatewayId, type Position, type Seq } from "../ids.ts";
import { readTentativeEdit, writeTentativeEdit } from "../wire/codec.ts";
import { readByte, readBytes, readClientId, readCounter, readEpoch, readList, readName, readNumber, readNumbering, readSeqOrStart, readText, readUserId, readWhole, required } from "../wire/fields.ts";
import { type Counter, NACK_REASONS, type NackReason, RESYNC_REASONS, type ResyncReason, SAVING_STATES, type SavingState, type TentativeEdit } from "../wire/frames.ts";
import { decodeRecord, type LogRecord } from "./record.ts";
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

/** gateway -> owner, on `edits.in` */
export type ToOwner =
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

/** owner -> one gateway */
export type Answer =
  | CatchUpAnswer
  /** A repeat: `exact` if `seq` is the edit's own, else it was committed at or before `seq`. */
  | { kind: "acked"; epoch: Epoch; client: ClientId; counter: Counter; seq: Seq; exact: boolean }
  | { kind: "refused"; epoch: Epoch; client: ClientId; counter: Counter; reason: NackReason; expected: Counter; retryAfterMs: number }
  /** A first edit, but the room has edits already, or has taken one. */
  | { kind: "not-first"; epoch: Epoch; client: ClientId; counter: Counter };

export type CatchUpAnswer = { readonly kind: "catch-up"; readonly request: number; readonly epoch: Epoch; readonly head: Seq; readonly answer: CatchUp };
/** Edits come in several parts where they are many, in order; each entry is the bytes of committed edits. */
export type CatchUp = { kind: "edits"; parts: readonly Uint8Array[]; last: boolean } | { kind: "resync"; reason: ResyncReason };

export function encodeToOwner(message: ToOwner): Uint8Array {
  return encoding.encode((out) => {
    switch (message.kind) {
      case "edits":
        out.cbuf = new Uint8Array(sizeOf(message.edits)); // Growing on the way was half of the cost.
        encoding.writeUint8(out, Tag.edits);
        encoding.writeVarString(out, message.gateway);
        encoding.writeVarUint(out, message.edits.length);
        for (const edit of message.edits) writeSubmittedEdit(out, edit);
        return;
      case "catch-up-request":
        encoding.writeUint8(out, Tag.catchUpRequest);
        encoding.writeVarString(out, message.gateway);
        encoding.writeVarUint(out, message.request);
        encoding.writeVarUint(out, message.after.epoch);
        encoding.writeVarUint(out, message.after.seq);
        encoding.writeVarUint(out, message.through);
        return;
      case "resubmit":
        encoding.writeUint8(out, Tag.resubmit);
        encoding.writeVarString(out, message.gateway);
        writeTentativeEdit(out, message.edit);
        return;
      case "first-edit":
        encoding.writeUint8(out, Tag.firstEdit);
        encoding.writeVarString(out, message.gateway);
        writeSubmittedEdit(out, message.edit);
        return;
      default:
        assertNever(message);
    }
  });
}

/** Undefined for bytes that are no such message. Payloads are views into `bytes`. */
export function decodeToOwner(bytes: Uint8Array): ToOwner | undefined {
  return readWhole(bytes, (input) => {
    const tag = readByte(input);
    const gateway = required(parseGatewayId(readText(input)), "gateway id");
    switch (tag) {
      case Tag.edits:
        return { kind: "edits", gateway, edits: readList(input, SUBMITTED_EDIT_BYTES_MIN, readSubmittedEdit) };
      case Tag.catchUpRequest:
        return {
          kind: "catch-up-request",
          gateway,
          request: readNumber(input),
          after: { epoch: readNumber(input) as Epoch, seq: readSeqOrStart(input) },
          through: readSeqOrStart(input),
        };
      case Tag.resubmit:
        return { kind: "resubmit", gateway, edit: readTentativeEdit(input) };
      case Tag.firstEdit:
        return { kind: "first-edit", gateway, edit: readSubmittedEdit(input) };
      default:
        return undefined;
    }
  });
}

/** Records are not written here: the log holds and republishes them. */
export function encodeFromOwner(message: Exclude<FromOwner, LogRecord>): Uint8Array {
  return encoding.encode((out) => {
    switch (message.kind) {
      case "beacon":
        encoding.writeUint8(out, Tag.beacon);
        encoding.writeVarUint(out, message.epoch);
        encoding.writeVarUint(out, message.head);
        return;
      case "tentative":
        encoding.writeUint8(out, Tag.tentative);
        writeTentativeEdit(out, message.edit);
        return;
      case "saving":
        encoding.writeUint8(out, Tag.saving);
        encoding.writeVarUint(out, message.epoch);
        encoding.writeUint8(out, SAVING_STATES[message.state]);
        return;
      default:
        assertNever(message);
    }
  });
}

export function decodeFromOwner(bytes: Uint8Array): FromOwner | undefined {
  if (bytes[0] === Tag.epochRecord || bytes[0] === Tag.editsRecord) return decodeRecord(bytes);
  return readWhole(bytes, (input) => {
    switch (readByte(input)) {
      case Tag.beacon:
        return { kind: "beacon", epoch: readEpoch(input), head: readSeqOrStart(input) };
      case Tag.tentative:
        return { kind: "tentative", edit: readTentativeEdit(input) };
      case Tag.saving:
        return { kind: "saving", epoch: readEpoch(input), state: readName(input, SAVING_STATES) };
      default:
        return undefined;
    }
  });
}

export function encodeAnswer(message: Answer): Uint8Array {
  return encoding.encode((out) => {
    switch (message.kind) {
      case "catch-up":
        encoding.writeUint8(out, Tag.catchUp);
        encoding.writeVarUint(out, message.request);
        encoding.writeVarUint(out, message.epoch);
        encoding.writeVarUint(out, message.head);
        writeCatchUp(out, message.answer);
        return;
      case "acked":
        encoding.writeUint8(out, Tag.acked);
        encoding.writeVarUint(out, message.epoch);
        encoding.writeVarString(out, message.client);
        encoding.writeVarUint(out, message.counter);
        encoding.writeVarUint(out, message.seq);
        encoding.writeUint8(out, message.exact ? 1 : 0);
        return;
      case "refused":
        encoding.writeUint8(out, Tag.refused);
        encoding.writeVarUint(out, message.epoch);
        encoding.writeVarString(out, message.client);
        encoding.writeVarUint(out, message.counter);
        encoding.writeUint8(out, NACK_REASONS[message.reason]);
        encoding.writeVarUint(out, message.expected);
        encoding.writeVarUint(out, message.retryAfterMs);
        return;
      case "not-first":
        encoding.writeUint8(out, Tag.notFirst);
        encoding.writeVarUint(out, message.epoch);
        encoding.writeVarString(out, message.client);
        encoding.writeVarUint(out, message.counter);
        return;
      default:
        assertNever(message);
    }
  });
}

export function decodeAnswer(bytes: Uint8Array): Answer | undefined {
  return readWhole(bytes, (input) => {
    switch (readByte(input)) {
      case Tag.catchUp:
        return { kind: "catch-up", request: readNumber(input), epoch: readEpoch(input), head: readSeqOrStart(input), answer: readCatchUp(input) };
      case Tag.acked:
        return { kind: "acked", epoch: readEpoch(input), client: readClientId(input), counter: readCounter(input), seq: readSeqOrStart(input), exact: readFlag(input) };
      case Tag.refused:
        return {
          kind: "refused",
          epoch: readEpoch(input),
          client: readClientId(input),
          counter: readCounter(input),
          reason: readName(input, NACK_REASONS),
          expected: readCounter(input),
          retryAfterMs: readNumber(input),
        };
      case Tag.notFirst:
        return { kind: "not-first", epoch: readEpoch(input), client: readClientId(input), counter: readCounter(input) };
      default:
        return undefined;
    }
  });
}

const SUBMITTED_EDIT_BYTES_MIN = 23;

/** Room for what is seldom more than so many bytes beside the payloads; if it is, the encoder grows. */
function sizeOf(edits: readonly SubmittedEdit[]): number {
  return edits.reduce((bytes, { author, payload }) => bytes + payload.byteLength + author.user.length + 48, 64);
}

function writeSubmittedEdit(out: encoding.Encoder, edit: SubmittedEdit): void {
  encoding.writeVarString(out, edit.author.user);
  encoding.writeVarString(out, edit.author.client);
  encoding.writeVarUint(out, edit.counter);
  encoding.writeVarUint(out, edit.ackedThrough);
  encoding.writeVarUint(out, edit.parentSeq);
  encoding.writeVarUint8Array(out, edit.payload);
}

function readSubmittedEdit(input: Decoder): SubmittedEdit {
  return {
    author: { user: readUserId(input), client: readClientId(input) },
    ...readNumbering(input),
    parentSeq: readSeqOrStart(input),
    payload: readBytes(input),
  };
}

const RESYNC = 0;
const EDITS = 1;
const LAST_EDITS = 2;

function writeCatchUp(out: encoding.Encoder, answer: CatchUp): void {
  if (answer.kind === "resync") {
    encoding.writeUint8(out, RESYNC);
    encoding.writeUint8(out, RESYNC_REASONS[answer.reason]);
    return;
  }
  encoding.writeUint8(out, answer.last ? LAST_EDITS : EDITS);
  encoding.writeVarUint(out, answer.parts.length);
  for (const part of answer.parts) encoding.writeVarUint8Array(out, part);
}

function readCatchUp(input: Decoder): CatchUp {
  const kind = readByte(input);
  if (kind === RESYNC) return { kind: "resync", reason: readName(input, RESYNC_REASONS) };
  if (kind !== EDITS && kind !== LAST_EDITS) throw new RangeError("not a catch-up");
  return { kind: "edits", last: kind === LAST_EDITS, parts: readList(input, 1, readBytes) };
}

function readFlag(input: Decoder): boolean {
  const byte = readByte(input);
  if (byte > 1) throw new RangeError("neither yes nor no");
  return byte === 1;
}
