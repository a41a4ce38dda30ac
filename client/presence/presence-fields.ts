/** Encodes an application's presence as fields of the wire format, and decodes them. */

import * as decoding from "lib0/decoding";
import * as encoding from "lib0/encoding";
import * as Y from "yjs";

import { isSameBytes } from "../../shared/collections/bytes.ts";
import { assert } from "../../shared/assert.ts";
import { LONE_SURROGATE } from "../../shared/ids.ts";
import { encodePoint, encodeRectangle, encodeSpan, type Point, type Rectangle, type TextSpan } from "../../shared/wire/positions.ts";
import { CURSOR, type PresenceField, SELECTION, VIEWPORT } from "../../shared/wire/presence.ts";

/** Recursive types of JSON are this one in other words. `JsonOf` would instantiate them without end. */
type Json = string | number | boolean | null | undefined | readonly Json[] | { readonly [name: string]: Json };

/**
 * The type of a value, if JSON can represent it: primitives, arrays and objects, also of an interface. Functions, symbols and
 * bigints become `never`, also inside of it, so an object with methods such as a `Date`, a `Map` or bytes is rejected. `unknown`
 * and `any` stay.
 */
export type JsonOf<Value> = unknown extends Value
  ? Value
  : Value extends Json
    ? Value
    : Value extends ((...given: never) => unknown) | symbol | bigint
      ? never
      : { readonly [Key in keyof Value]: JsonOf<Value[Key]> };

/**
 * The fields that this client shows, at most 64 fields and 4 KiB together. Undefined: unchanged. Null: removed. Any other
 * name is a field of the application: 1 to 64 characters, the first no `@`, with a value that JSON can represent.
 */
export type Presence = {
  /** Position of the pointer. Rounded to whole units. */
  readonly cursor?: Point | null | undefined;
  /** Selection in a text. Throws for fractions. */
  readonly selection?: TextSpan | null | undefined;
  /** Visible area, by which large rooms choose the cursors to send. Rounded outwards. */
  readonly viewport?: Rectangle | null | undefined;
  readonly [own: string]: unknown;
};

/** The type of presence with the fields `Fields`. Unlike `Presence`, it accepts values whose type is an interface. */
export type PresenceOf<Fields extends object> = Pick<Presence, "cursor" | "selection" | "viewport"> &
  (Fields extends readonly unknown[] ? never : Fields & JsonOf<Fields>);

/** Name of the field with broadcast messages. An application cannot use it. */
export const BROADCASTS = "coroom";

const NAME_LENGTH_MAX = 64;
const NOTHING = new Uint8Array();

/** Throws if an application passes no object, or sets a field of one of these names. */
export function refuseReserved(fields: unknown, reserved: readonly string[]): void {
  assert(
    typeof fields === "object" && fields !== null && !Array.isArray(fields),
    "presence must be an object of fields, such as { cursor: { x, y } }. A field of null is removed.",
  );
  for (const name of reserved)
    assert(!Object.hasOwn(fields, name), `a field cannot be named "${name}": this name is reserved. Use another name.`);
}

/** Fields that Coroom itself reads. `needs`: for the error about a value that cannot be encoded. */
const PLACES = {
  cursor: { field: CURSOR, needs: "x and y, numbers from -2^48 to 2^48" },
  selection: { field: SELECTION, needs: "anchor and head, whole numbers from 0 to 2^48" },
  viewport: { field: VIEWPORT, needs: "x and y, numbers from -2^48 to 2^48, and width and height, numbers from 0 to 2^48" },
} as const;

function encodedPlace(name: keyof typeof PLACES, encode: () => Uint8Array): Uint8Array {
  try {
    return encode();
  } catch (cause) {
    throw new RangeError(`\`${name}\` needs ${PLACES[name].needs}`, { cause });
  }
}

export function fieldsOf(presence: Presence): PresenceField[] {
  refuseReserved(presence, [BROADCASTS]);
  const { cursor, selection, viewport, ...own } = presence;
  const fields: PresenceField[] = [];
  const add = <Place>(name: keyof typeof PLACES, place: Place | null | undefined, encode: (place: Place) => Uint8Array): void => {
    if (place !== undefined)
      fields.push({ name: PLACES[name].field, value: place === null ? NOTHING : encodedPlace(name, () => encode(place)) });
  };
  add("cursor", cursor, ({ x, y }) => encodePoint({ x: Math.round(x), y: Math.round(y) }));
  add("selection", selection, encodeSpan);
  add("viewport", viewport, (area) => encodeRectangle(roundedOut(area)));
  for (const [name, value] of Object.entries(own)) {
    if (value !== undefined) fields.push(value === null ? { name, value: NOTHING } : ownField(name, value));
  }
  return fields;
}

/** A value that JSON cannot represent removes the field. */
export function ownField(name: string, value: unknown): PresenceField {
  assert(
    name.length >= 1 && name.length <= NAME_LENGTH_MAX && !LONE_SURROGATE.test(name) && !name.startsWith("@"),
    `a presence field is named by 1 to ${NAME_LENGTH_MAX} characters, the first no @: ${JSON.stringify(name)} is not`,
  );
  return { name, value: encodeValue(value) };
}

/** The smallest rectangle in whole units that contains the viewport. */
function roundedOut({ x, y, width, height }: Rectangle): Rectangle {
  const [left, top] = [Math.floor(x), Math.floor(y)];
  return { x: left, y: top, width: Math.ceil(x + width) - left, height: Math.ceil(y + height) - top };
}

/**
 * Encoding of the application's presence fields: JSON, except a Yjs caret. A caret may change with each keystroke,
 * and takes a tenth of the size in binary. No JSON text starts with its first byte. Rules VAL1 to VAL5.
 */
const CARET = 1;
const TEXT_ENCODER = new TextEncoder();
const TEXT_DECODER = new TextDecoder("utf-8", { fatal: true });
const NO_BYTES = new Uint8Array();

/** A caret and selection as editor bindings write them: `anchor` is the start, `head` the moving end. */
type Caret = { readonly anchor: Place; readonly head: Place };
type Place = Partial<Record<"type" | "tname" | "item" | "assoc", unknown>>;

/**
 * Returns no bytes for undefined, which removes the field. Throws like `JSON.stringify` if JSON cannot represent the
 * value.
 */
export function encodeValue(value: unknown): Uint8Array {
  const text = JSON.stringify(value) as string | undefined;
  if (text === undefined) return NO_BYTES;
  const plain: unknown = JSON.parse(text); // As others will receive it, without classes.
  return isCaret(plain) ? encodeCaret(plain) : TEXT_ENCODER.encode(text);
}

/** Undefined: the bytes are no value. Another client may send any bytes. */
export function decodeValue(bytes: Uint8Array): unknown {
  try {
    return bytes[0] === CARET ? decodeCaret(bytes) : (JSON.parse(TEXT_DECODER.decode(bytes)) as unknown);
  } catch {
    return undefined; // Other clients may send any bytes.
  }
}

/** Writes the head, and the anchor if it differs. */
function encodeCaret({ anchor, head }: Caret): Uint8Array {
  const [from, to] = [placeBytes(anchor), placeBytes(head)];
  return encoding.encode((out) => {
    encoding.writeUint8(out, CARET);
    encoding.writeVarUint8Array(out, to);
    if (!isSameBytes(from, to)) encoding.writeVarUint8Array(out, from);
  });
}

function decodeCaret(bytes: Uint8Array): Caret {
  const input = decoding.createDecoder(bytes.subarray(1));
  const head = readPlace(input);
  const anchor = decoding.hasContent(input) ? readPlace(input) : head;
  if (decoding.hasContent(input) || !isPlace(head) || !isPlace(anchor)) throw new RangeError("not a caret");
  return { anchor, head };
}

function placeBytes(place: Place): Uint8Array {
  return Y.encodeRelativePosition(Y.createRelativePositionFromJSON(place));
}

/** Sets every property, as JSON would: bindings expect null, not absence. */
function readPlace(input: decoding.Decoder): Place {
  const { type, tname, item, assoc } = Y.decodeRelativePosition(decoding.readVarUint8Array(input));
  return { type: type && { ...type }, tname, item: item && { ...item }, assoc };
}

function isCaret(value: unknown): value is Caret {
  return hasOnly(value, ["anchor", "head"]) && isPlace(value["anchor"]) && isPlace(value["head"]);
}

/** Accepts only places that the binary form preserves. Yjs needs nothing else beside an item. */
function isPlace(value: unknown): value is Place {
  if (!hasOnly(value, ["type", "tname", "item", "assoc"])) return false;
  const { type, tname, item, assoc = 0 } = value;
  if (!Number.isSafeInteger(assoc)) return false;
  if (isId(item)) return true;
  return (
    (item ?? undefined) === undefined &&
    ((typeof tname === "string" && (type ?? undefined) === undefined) || ((tname ?? undefined) === undefined && isId(type)))
  );
}

function isId(value: unknown): boolean {
  return (
    hasOnly(value, ["client", "clock"]) &&
    [value["client"], value["clock"]].every((part) => Number.isSafeInteger(part) && (part as number) >= 0)
  );
}

function hasOnly(value: unknown, names: readonly string[]): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && Object.keys(value).every((name) => names.includes(name));
}
