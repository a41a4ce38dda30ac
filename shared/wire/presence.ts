/**
 * Who is in a room and what each shows of itself: fields, each with its newest value. Everybody gets the same bytes,
 * so they are written once, by the room's owner, and only framed by each gateway.
 */

import type { Decoder } from "lib0/decoding";
import * as encoding from "lib0/encoding";

import type { ClientId, UserId } from "../ids.ts";
import { readByte, readBytes, readClientId, readList, readNumber, readText, readUserId, readWhole } from "./fields.ts";
import { decodePoint, decodeRectangle, decodeSpan } from "./positions.ts";

/** A participant in this room: 1 and up, given by the owner. Never another's in the same epoch. */
export type ParticipantNumber = number;

/** `spectator`: has shown no input for a while, and is told of others less often. */
export type Participant = { readonly number: ParticipantNumber; readonly client: ClientId; readonly user: UserId; readonly name: string; readonly canWrite: boolean; readonly spectator: boolean };

/** An empty value takes the field back. Values are the application's, but for those of the known names. */
export type PresenceField = { readonly name: string; readonly value: Uint8Array };
export type PresenceState = { readonly number: ParticipantNumber; readonly fields: readonly PresenceField[] };

/**
 * `whole`: what was known before is void. Else `present` are new participants or what they are now, `gone` are
 * no longer there with all they showed, and `states` are the fields that changed.
 */
export type PresenceNews = { readonly whole: boolean; readonly present: readonly Participant[]; readonly gone: readonly ParticipantNumber[]; readonly states: readonly PresenceState[] };

/** The names that Coroom itself reads, each one byte on the wire; the application's own begin otherwise. */
export const CURSOR = "@cursor";
export const SELECTION = "@selection";
export const VIEWPORT = "@viewport";

const KNOWN_NAMES = ["", CURSOR, SELECTION, VIEWPORT];
const OWN_NAME = 0;
const NAME_LENGTH_MAX = 64;
const PARTICIPANT_NAME_LENGTH_MAX = 256;
const FIELD_BYTES_MIN = 2;
const STATE_BYTES_MIN = 2;
const PARTICIPANT_BYTES_MIN = 21;

const IS_VALUE_OF: Readonly<Record<string, (value: Uint8Array) => boolean>> = {
  [CURSOR]: (value) => decodePoint(value) !== undefined,
  [SELECTION]: (value) => decodeSpan(value) !== undefined,
  [VIEWPORT]: (value) => decodeRectangle(value) !== undefined,
};

export function writeFields(out: encoding.Encoder, fields: readonly PresenceField[]): void {
  encoding.writeVarUint(out, fields.length);
  for (const { name, value } of fields) {
    const known = KNOWN_NAMES.indexOf(name);
    encoding.writeUint8(out, Math.max(known, OWN_NAME));
    if (known <= OWN_NAME) encoding.writeVarString(out, name);
    encoding.writeVarUint8Array(out, value);
  }
}

/** Values are views into the input: copy them to keep them. */
export function readFields(input: Decoder): PresenceField[] {
  return readList(input, FIELD_BYTES_MIN, readField);
}

function readField(input: Decoder): PresenceField {
  const number = readByte(input);
  const name = number === OWN_NAME ? readOwnName(input) : KNOWN_NAMES[number];
  if (name === undefined) throw new RangeError("a field that has no name");
  const value = readBytes(input);
  if (value.byteLength > 0 && IS_VALUE_OF[name]?.(value) === false) throw new RangeError("a position that is none");
  return { name, value };
}

function readOwnName(input: Decoder): string {
  const name = readText(input);
  if (name.length < 1 || name.length > NAME_LENGTH_MAX || name.startsWith("@")) throw new RangeError("not a field's name");
  return name;
}

export function writeNews(out: encoding.Encoder, news: PresenceNews): void {
  encoding.writeUint8(out, news.whole ? 1 : 0);
  encoding.writeVarUint(out, news.present.length);
  for (const participant of news.present) writeParticipant(out, participant);
  encoding.writeVarUint(out, news.gone.length);
  for (const number of news.gone) encoding.writeVarUint(out, number);
  writeStates(out, news.states);
}

export function encodeNews(news: PresenceNews): Uint8Array {
  return encoding.encode((out) => writeNews(out, news));
}

/** Undefined for bytes that are no news. Values are views into `bytes`. */
export function decodeNews(bytes: Uint8Array): PresenceNews | undefined {
  return readWhole(bytes, readNews);
}

export function readNews(input: Decoder): PresenceNews {
  const whole = readByte(input);
  if (whole > 1) throw new RangeError("neither whole nor a change");
  return { whole: whole === 1, present: readList(input, PARTICIPANT_BYTES_MIN, readParticipant), gone: readList(input, 1, readParticipantNumber), states: readStates(input) };
}

function writeStates(out: encoding.Encoder, states: readonly PresenceState[]): void {
  encoding.writeVarUint(out, states.length);
  for (const { number, fields } of states) {
    encoding.writeVarUint(out, number);
    writeFields(out, fields);
  }
}

function readStates(input: Decoder): PresenceState[] {
  return readList(input, STATE_BYTES_MIN, (state) => ({ number: readParticipantNumber(state), fields: readFields(state) }));
}

function writeParticipant(out: encoding.Encoder, { number, client, user, name, canWrite, spectator }: Participant): void {
  encoding.writeVarUint(out, number);
  encoding.writeVarString(out, client);
  encoding.writeVarString(out, user);
  encoding.writeVarString(out, name);
  encoding.writeUint8(out, (canWrite ? 1 : 0) | (spectator ? 2 : 0));
}

function readParticipant(input: Decoder): Participant {
  const [number, client, user, name, bits] = [readParticipantNumber(input), readClientId(input), readUserId(input), readText(input), readByte(input)];
  if (name.length > PARTICIPANT_NAME_LENGTH_MAX) throw new RangeError("a name too long");
  return { number, client, user, name, canWrite: (bits & 1) !== 0, spectator: (bits & 2) !== 0 };
}

function readParticipantNumber(input: Decoder): ParticipantNumber {
  const number = readNumber(input);
  if (number < 1) throw new RangeError("participants are numbered from 1");
  return number;
}
