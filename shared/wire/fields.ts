/**
 * Encodes and decodes the values that frames, records and messages share. One format object defines both directions, so
 * they cannot differ. A message is the list of its fields in order. Readers throw a RangeError on a value out of range,
 * and the caller refuses the message. The readers do not use lib0's, which accept numbers above 2^53 and lengths beyond
 * the view.
 */

import type { Decoder } from "lib0/decoding";
import * as encoding from "lib0/encoding";

import {
  type ClientId,
  type Epoch,
  type GatewayId,
  parseGatewayId,
  type Position,
  type Seq,
  type UserId,
  parseClientId,
  parseUserId,
} from "../ids.ts";
import { createEncoder, type Encoder, toUint8Array } from "lib0/encoding";
import { createDecoder, hasContent } from "lib0/decoding";

const UTF8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/**
 * Decodes a complete message. Undefined for bytes that are truncated, too long, or hold a value out of range: the
 * sender's fault, and the receiver decides what follows.
 */
export function decodeAll<Value>(bytes: Uint8Array, read: (input: Decoder) => Value | undefined): Value | undefined {
  const input = createDecoder(bytes);
  try {
    const value = read(input);
    return hasContent(input) ? undefined : value;
  } catch {
    return undefined; // Readers throw on nothing else.
  }
}

export function readByte(input: Decoder): number {
  const byte = input.arr[input.pos];
  if (byte === undefined) throw new RangeError("cut short");
  input.pos += 1;
  return byte;
}

/** Base 128, lowest part first, in the shortest form: each number has one encoding, and none is over 2^53 - 1. */
export function readNumber(input: Decoder): number {
  let number = 0;
  for (let unit = 1; unit <= 2 ** 49; unit *= 128) {
    const byte = readByte(input);
    number += (byte & 0x7f) * unit;
    if (byte >= 0x80) continue;
    if (byte === 0 && unit > 1) throw new RangeError("a number longer than it need be");
    return inRange(number);
  }
  throw new RangeError("a number over 2^53 - 1");
}

/** For sums of decoded numbers: above 2^53 a double cannot represent every whole number. */
export function inRange(number: number): number {
  if (number > Number.MAX_SAFE_INTEGER) throw new RangeError("a number over 2^53 - 1");
  return number;
}

/** The number of entries that follow. Refused if the remaining bytes cannot hold them, so that a false number costs no memory. */
export function readCount(input: Decoder, entryBytesMin: number): number {
  const count = readNumber(input);
  if (count * entryBytesMin > input.arr.byteLength - input.pos) throw new RangeError("more entries than bytes");
  return count;
}

export function readList<Entry>(input: Decoder, entryBytesMin: number, readEntry: (input: Decoder) => Entry): Entry[] {
  const entries: Entry[] = [];
  for (let left = readCount(input, entryBytesMin); left > 0; left--) entries.push(readEntry(input));
  return entries;
}

/** A view into the input: copy it to keep it. */
export function readBytes(input: Decoder): Uint8Array {
  const length = readNumber(input);
  const end = input.pos + length;
  if (end > input.arr.byteLength) throw new RangeError("cut short");
  const bytes = input.arr.subarray(input.pos, end);
  input.pos = end;
  return bytes;
}

export function skipBytes(input: Decoder): void {
  const end = readNumber(input) + input.pos;
  if (end > input.arr.byteLength) throw new RangeError("cut short");
  input.pos = end;
}

export function readText(input: Decoder): string {
  return UTF8.decode(readBytes(input));
}

/** Edits are numbered from 1. */
export function readSeq(input: Decoder): Seq {
  return atLeastOne(readNumber(input), "seq") as Seq;
}

/** 0 means "before the first edit". */
export function readSeqOrStart(input: Decoder): Seq {
  return readNumber(input) as Seq;
}

export function readEpoch(input: Decoder): Epoch {
  return atLeastOne(readNumber(input), "epoch") as Epoch;
}

export function readCounter(input: Decoder): number {
  return atLeastOne(readNumber(input), "counter");
}

export function readClientId(input: Decoder): ClientId {
  return required(parseClientId(readText(input)), "client id");
}

export function readUserId(input: Decoder): UserId {
  return required(parseUserId(readText(input)), "user id");
}

/** One of a fixed list of names, each with its number. */
export function readName<Name extends string>(input: Decoder, names: Readonly<Record<Name, number>>): Name {
  const number = readByte(input);
  for (const name in names) if (names[name] === number) return name;
  throw new RangeError("a number that names nothing");
}

function required<Value>(value: Value | undefined, what: string): Value {
  if (value === undefined) throw new RangeError(`not a ${what}`);
  return value;
}

function atLeastOne(value: number, what: string): number {
  if (value < 1) throw new RangeError(`${what}s start at 1`);
  return value;
}

/**
 * Like lib0's `encode`, with one reused buffer, in which most messages fit. A new buffer takes a hundred bytes outside
 * V8's heap, and quiet rooms and clients encode thousands of messages per second, each a tenth of that size. The module
 * keeps only the buffer, never content between two messages.
 */
const kept: Encoder = createEncoder();
kept.cbuf = new Uint8Array(4096);
let isTaken = false;

/** Returns a copy of the bytes that `write` writes. `write` may encode other messages during the call. */
export function encode(write: (out: Encoder) => void): Uint8Array {
  if (isTaken) return written(createEncoder(), write);
  isTaken = true;
  const first = kept.cbuf;
  try {
    return written(kept, write);
  } finally {
    kept.cpos = 0;
    kept.cbuf = first; // A long message continues in further buffers.
    if (kept.bufs.length > 0) kept.bufs = [];
    isTaken = false;
  }
}

function written(out: Encoder, write: (out: Encoder) => void): Uint8Array {
  write(out);
  return out.bufs.length === 0 ? out.cbuf.slice(0, out.cpos) : toUint8Array(out);
}

/** `read` throws on bytes that do not contain such a value. */
export type Format<Value> = { readonly write: (out: encoding.Encoder, value: Value) => void; readonly read: (input: Decoder) => Value };
type Formats<Value> = { readonly [Field in keyof Value]-?: Format<Value[Field]> };

export const number: Format<number> = { write: encoding.writeVarUint, read: readNumber };
export const text: Format<string> = { write: encoding.writeVarString, read: readText };
/** Read as a view into the input: copy it to keep it. */
export const bytes: Format<Uint8Array> = { write: encoding.writeVarUint8Array, read: readBytes };

export const seq: Format<Seq> = { write: encoding.writeVarUint, read: readSeq };
export const seqOrStart: Format<Seq> = { write: encoding.writeVarUint, read: readSeqOrStart };
export const epoch: Format<Epoch> = { write: encoding.writeVarUint, read: readEpoch };
/** 0 if no value is known. */
export const epochOrNone: Format<Epoch> = { write: encoding.writeVarUint, read: (input) => readNumber(input) as Epoch };
export const counter: Format<number> = { write: encoding.writeVarUint, read: readCounter };
export const userId: Format<UserId> = { write: encoding.writeVarString, read: readUserId };
export const clientId: Format<ClientId> = { write: encoding.writeVarString, read: readClientId };
export const gatewayId: Format<GatewayId> = textOf(parseGatewayId, "gateway id");
export const channel: Format<number> = checked(number, (value) => refuseUnless(value >= 1, "channels start at 1"));

export const flag: Format<boolean> = {
  write: (out, value) => encoding.writeUint8(out, value ? 1 : 0),
  read(input) {
    const byte = readByte(input);
    refuseUnless(byte <= 1, "neither yes nor no");
    return byte === 1;
  },
};

/** A yes or no for each name, the first in the lowest bit. Further bits are ignored: a later version may use them. */
export function bits<Name extends string>(...names: readonly Name[]): Format<Readonly<Record<Name, boolean>>> {
  return {
    write: (out, value) =>
      encoding.writeUint8(
        out,
        names.reduce((byte, name, bit) => byte | (value[name] ? 1 << bit : 0), 0),
      ),
    read(input) {
      const byte = readByte(input);
      const value = {} as Record<Name, boolean>;
      names.forEach((name, bit) => (value[name] = (byte & (1 << bit)) !== 0));
      return value;
    },
  };
}

/** One of a fixed list of names, each with its number. */
export function oneOf<Name extends string>(numbers: Readonly<Record<Name, number>>): Format<Name> {
  return { write: (out, name) => encoding.writeUint8(out, numbers[name]), read: (input) => readName(input, numbers) };
}

export function textOf<Value extends string>(parse: (text: string) => Value | undefined, what: string): Format<Value> {
  return { write: encoding.writeVarString, read: (input) => required(parse(readText(input)), what) };
}

/** `entryBytesMin`: the size of the shortest entry, so that a false count is refused before it costs memory. */
export function list<Entry>(entryBytesMin: number, entry: Format<Entry>): Format<readonly Entry[]> {
  return {
    write(out, entries) {
      encoding.writeVarUint(out, entries.length);
      for (const value of entries) entry.write(out, value);
    },
    read: (input) => readList(input, entryBytesMin, entry.read),
  };
}

/** The fields in the listed order. */
export function fields<Value extends object>(formats: Formats<Value>): Format<Value> {
  const inOrder = Object.entries(formats) as [keyof Value, Format<Value[keyof Value]>][];
  return {
    write(out, value) {
      for (const [name, format] of inOrder) format.write(out, value[name]);
    },
    read(input) {
      const value = {} as Value;
      for (const [name, format] of inOrder) value[name] = format.read(input);
      return value;
    },
  };
}

/** `check` throws if the fields are valid alone but not together. */
export function checked<Value>(format: Format<Value>, check: (value: Value) => void): Format<Value> {
  return {
    write: format.write,
    read(input) {
      const value = format.read(input);
      check(value);
      return value;
    },
  };
}

export function refuseUnless(isRight: boolean, why: string): void {
  if (!isRight) throw new RangeError(why);
}

type Kinds<Message extends { readonly kind: string }> = {
  readonly [Kind in Message["kind"]]: readonly [tag: number, body: Format<Omit<Extract<Message, { kind: Kind }>, "kind">>];
};

/** One of several kinds, marked by its first byte. */
export function kinds<Message extends { readonly kind: string }>(byKind: Kinds<Message>): Format<Message> {
  const byTag = new Map((Object.keys(byKind) as Message["kind"][]).map((kind) => [byKind[kind][0], { kind, body: byKind[kind][1] }]));
  return {
    write(out, message) {
      const [tag, body] = byKind[message.kind as Message["kind"]];
      encoding.writeUint8(out, tag);
      body.write(out, message as never);
    },
    read(input) {
      const { kind, body } = required(byTag.get(readByte(input)), "kind");
      return Object.assign(body.read(input), { kind }) as unknown as Message;
    },
  };
}

export const position: Format<Position> = fields({ epoch: epochOrNone, seq: seqOrStart });
