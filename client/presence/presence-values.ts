/**
 * What an application's own presence fields say, as bytes: JSON, but for a caret of a Yjs text, which moves with
 * every key and is a tenth of the size in binary. No JSON text begins with its first byte. Rules VAL1 to VAL3.
 */

import * as decoding from "lib0/decoding";
import * as encoding from "lib0/encoding";
import * as Y from "yjs";

const CARET = 1;
const TEXT_ENCODER = new TextEncoder();
const TEXT_DECODER = new TextDecoder("utf-8", { fatal: true });
const NOTHING = new Uint8Array();

/** A caret and a selection as editor bindings write them: where it was begun, and where it ends now. */
type Caret = { readonly anchor: Place; readonly head: Place };
type Place = Partial<Record<"type" | "tname" | "item" | "assoc", unknown>>;

/** Empty for what is no value: it takes the field back. Throws on what JSON cannot hold, like `JSON.stringify`. */
export function encodeValue(value: unknown): Uint8Array {
  const text = JSON.stringify(value) as string | undefined;
  if (text === undefined) return NOTHING;
  const plain: unknown = JSON.parse(text); // As others will see it, whatever classes it was made of.
  return isCaret(plain) ? encodeCaret(plain) : TEXT_ENCODER.encode(text);
}

/** Undefined for bytes that are no value: of another client's making, and left out. */
export function decodeValue(bytes: Uint8Array): unknown {
  try {
    return bytes[0] === CARET ? decodeCaret(bytes) : (JSON.parse(TEXT_DECODER.decode(bytes)) as unknown);
  } catch {
    return undefined; // Whatever strangers may send.
  }
}

/** The head, and where the selection was begun if it is not there. */
function encodeCaret({ anchor, head }: Caret): Uint8Array {
  const [from, to] = [placeBytes(anchor), placeBytes(head)];
  return encoding.encode((out) => {
    encoding.writeUint8(out, CARET);
    encoding.writeVarUint8Array(out, to);
    if (!sameBytes(from, to)) encoding.writeVarUint8Array(out, from);
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

/** With every part, as after a way through JSON: bindings ask for null, not for absence. */
function readPlace(input: decoding.Decoder): Place {
  const { type, tname, item, assoc } = Y.decodeRelativePosition(decoding.readVarUint8Array(input));
  return { type: type && { ...type }, tname, item: item && { ...item }, assoc };
}

function isCaret(value: unknown): value is Caret {
  return hasOnly(value, ["anchor", "head"]) && isPlace(value["anchor"]) && isPlace(value["head"]);
}

/** Only what means the same when it comes out of the bytes: beside an item, Yjs does not need the rest. */
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

export function sameBytes(a: Uint8Array, b: Uint8Array): boolean {
  return a.byteLength === b.byteLength && a.every((byte, index) => byte === b[index]);
}
