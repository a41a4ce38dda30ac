/**
 * Who is in a room and what each shows of itself: fields, each with its newest value. Everybody gets the same bytes,
 * so they are written once, by the room's owner, and only framed by each gateway.
 */

import { writeUint8, writeVarUint8Array } from "lib0/encoding";

import type { ClientId, UserId } from "../ids.ts";
import { encode } from "./encode.ts";
import { readByte, readBytes, readWhole } from "./fields.ts";
import { bits, checked, clientId, type Format, fields, flag, list, number, refuseUnless, text, userId } from "./formats.ts";
import { decodePoint, decodeRectangle, decodeSpan } from "./positions.ts";

/** A participant in this room: 1 and up, given by the owner. Never another's in the same epoch. */
export type ParticipantNumber = number;

/** `spectator`: has shown no input for a while, and is told of others less often. */
export type Participant = {
  readonly number: ParticipantNumber;
  readonly client: ClientId;
  readonly user: UserId;
  readonly name: string;
  readonly canWrite: boolean;
  readonly spectator: boolean;
};

/** An empty value takes the field back. Values are the application's, but for those of the known names. */
export type PresenceField = { readonly name: string; readonly value: Uint8Array };
export type PresenceState = { readonly number: ParticipantNumber; readonly fields: readonly PresenceField[] };

/**
 * `whole`: what was known before is void. Else `present` are new participants or what they are now, `gone` are
 * no longer there with all they showed, and `states` are the fields that changed.
 */
export type PresenceNews = {
  readonly whole: boolean;
  readonly present: readonly Participant[];
  readonly gone: readonly ParticipantNumber[];
  readonly states: readonly PresenceState[];
};

/** The names that Coroom itself reads, each one byte on the wire; the application's own begin otherwise. */
export const CURSOR = "@cursor";
export const SELECTION = "@selection";
export const VIEWPORT = "@viewport";

/** In which the clock of a client of y-websocket goes along. The client renews it by itself, be somebody there or not: it is no input. */
export const Y_CLOCK = "y-websocket";

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

const participantNumber: Format<ParticipantNumber> = checked(number, (value) =>
  refuseUnless(value >= 1, "participants are numbered from 1"),
);

const field: Format<PresenceField> = {
  write(out, { name, value }) {
    const known = KNOWN_NAMES.indexOf(name);
    writeUint8(out, Math.max(known, OWN_NAME));
    if (known <= OWN_NAME) ownName.write(out, name);
    writeVarUint8Array(out, value);
  },
  read(input) {
    const known = readByte(input);
    const name = known === OWN_NAME ? ownName.read(input) : KNOWN_NAMES[known];
    if (name === undefined) throw new RangeError("a field that has no name");
    const value = readBytes(input);
    refuseUnless(value.byteLength === 0 || IS_VALUE_OF[name]?.(value) !== false, "a position that is none");
    return { name, value };
  },
};

const ownName: Format<string> = checked(text, (name) =>
  refuseUnless(name.length >= 1 && name.length <= NAME_LENGTH_MAX && !name.startsWith("@"), "not a field's name"),
);

/** Values are views into the input: copy them to keep them. */
export const presenceFields: Format<readonly PresenceField[]> = list(FIELD_BYTES_MIN, field);

type Class = Pick<Participant, "canWrite" | "spectator">;
const CLASS: Format<Class> = bits("canWrite", "spectator");

/** What else is told of a participant, and its class behind it. */
export function withClass<Value extends object>(format: Format<Value>): Format<Value & Class> {
  return {
    write(out, value) {
      format.write(out, value);
      CLASS.write(out, value);
    },
    read: (input) => Object.assign(format.read(input), CLASS.read(input)),
  };
}

const participantName: Format<string> = checked(text, (name) =>
  refuseUnless(name.length <= PARTICIPANT_NAME_LENGTH_MAX, "a name too long"),
);
const participant: Format<Participant> = withClass(
  fields({ number: participantNumber, client: clientId, user: userId, name: participantName }),
);
const state: Format<PresenceState> = fields({ number: participantNumber, fields: presenceFields });

export const presenceNews: Format<PresenceNews> = fields({
  whole: flag,
  present: list(PARTICIPANT_BYTES_MIN, participant),
  gone: list(1, participantNumber),
  states: list(STATE_BYTES_MIN, state),
});

export function encodeNews(news: PresenceNews): Uint8Array {
  return encode((out) => presenceNews.write(out, news));
}

/** Undefined for bytes that are no news. Values are views into `bytes`. */
export function decodeNews(bytes: Uint8Array): PresenceNews | undefined {
  return readWhole(bytes, presenceNews.read);
}
