/**
 * A room's participants and their fields, each with its newest value. All members receive the same bytes: the room's
 * owner encodes them once, and gateways only frame them.
 */

import { writeUint8, writeVarUint8Array } from "lib0/encoding";

import type { ClientId, UserId } from "../ids.ts";
import {
  bits,
  checked,
  clientId,
  type Format,
  fields,
  flag,
  list,
  number,
  refuseUnless,
  text,
  userId,
  encode,
  readByte,
  readBytes,
  decodeAll,
} from "./fields.ts";
import { decodePoint, decodeRectangle, decodeSpan } from "./positions.ts";

/** A participant's number in this room, from 1, given by the owner. Never reused within an epoch. */
export type ParticipantNumber = number;

/** `spectator`: without input for some time, and updated less often. */
export type ParticipantEntry = {
  readonly number: ParticipantNumber;
  readonly client: ClientId;
  readonly user: UserId;
  readonly name: string;
  readonly canWrite: boolean;
  readonly spectator: boolean;
};

/** An empty value removes the field. Values are the application's, except for the known names. */
export type PresenceField = { readonly name: string; readonly value: Uint8Array };
export type PresenceState = { readonly number: ParticipantNumber; readonly fields: readonly PresenceField[] };

/**
 * `snapshot`: earlier presence is invalid. Otherwise `present` are new or changed participants, `gone` are participants
 * that have left with all their fields, and `states` are changed fields.
 */
export type PresenceDelta = {
  readonly snapshot: boolean;
  readonly present: readonly ParticipantEntry[];
  readonly gone: readonly ParticipantNumber[];
  readonly states: readonly PresenceState[];
};

/** The names that Coroom itself reads, one byte each on the wire. An application's own names begin differently. */
export const CURSOR = "@cursor";
export const SELECTION = "@selection";
export const VIEWPORT = "@viewport";

/** The field with a y-websocket client's clock. The client renews it automatically, so it does not count as user input. */
export const Y_CLOCK = "y-websocket";

const KNOWN_NAMES = ["", CURSOR, SELECTION, VIEWPORT];
const OWN_NAME = 0;
const NAME_LENGTH_MAX = 64;
const PARTICIPANT_NAME_LENGTH_MAX = 256;
const FIELD_BYTES_MIN = 2;
const STATE_BYTES_MIN = 2;
const PARTICIPANT_BYTES_MIN = 21;

/** A map, because an application may name a field as a property of every object, such as `__proto__`. */
const IS_VALUE_OF: ReadonlyMap<string, (value: Uint8Array) => boolean> = new Map([
  [CURSOR, (value) => decodePoint(value) !== undefined],
  [SELECTION, (value) => decodeSpan(value) !== undefined],
  [VIEWPORT, (value) => decodeRectangle(value) !== undefined],
]);

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
    refuseUnless(value.byteLength === 0 || IS_VALUE_OF.get(name)?.(value) !== false, "a position that is none");
    return { name, value };
  },
};

const ownName: Format<string> = checked(text, (name) =>
  refuseUnless(name.length >= 1 && name.length <= NAME_LENGTH_MAX && !name.startsWith("@"), "not a field's name"),
);

/** Values are views into the input: copy them to keep them. */
export const presenceFields: Format<readonly PresenceField[]> = list(FIELD_BYTES_MIN, field);

type Class = Pick<ParticipantEntry, "canWrite" | "spectator">;
const CLASS: Format<Class> = bits("canWrite", "spectator");

/** A participant's description, followed by its class. */
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
const participant: Format<ParticipantEntry> = withClass(
  fields({ number: participantNumber, client: clientId, user: userId, name: participantName }),
);
const state: Format<PresenceState> = fields({ number: participantNumber, fields: presenceFields });

export const presenceDelta: Format<PresenceDelta> = fields({
  snapshot: flag,
  present: list(PARTICIPANT_BYTES_MIN, participant),
  gone: list(1, participantNumber),
  states: list(STATE_BYTES_MIN, state),
});

export function encodeDelta(delta: PresenceDelta): Uint8Array {
  return encode((out) => presenceDelta.write(out, delta));
}

/** Undefined for other bytes. Values are views into `bytes`. */
export function decodeDelta(bytes: Uint8Array): PresenceDelta | undefined {
  return decodeAll(bytes, presenceDelta.read);
}
