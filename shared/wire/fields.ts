/**
 * The fields that frames, records and envelopes share. Readers throw on a value out of range: the caller
 * refuses the whole. All are read here and not by lib0: its readers let numbers through that no double holds,
 * and in some versions trust a length up to the end of the underlying buffer, where a neighbour's bytes are.
 */

import { createDecoder, type Decoder, hasContent } from "lib0/decoding";

import { type ClientId, type Epoch, parseClientId, parseUserId, type Seq, type UserId } from "../ids.ts";
import type { Counter } from "./frames.ts";

const UTF8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/**
 * The value that all the bytes stand for. Undefined for bytes that are cut short, go on, or hold a value out of
 * range: the sender's doing, so the receiver decides what it means.
 */
export function readWhole<Value>(bytes: Uint8Array, read: (input: Decoder) => Value | undefined): Value | undefined {
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

/** Base 128, lowest part first, in its shortest form: each number has one encoding, and none is over 2^53 - 1. */
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

/** For sums of what was read: past 2^53 a double skips numbers. */
export function inRange(number: number): number {
  if (number > Number.MAX_SAFE_INTEGER) throw new RangeError("a number over 2^53 - 1");
  return number;
}

/** How many entries follow. Refused if the bytes left cannot hold them, so that a lie costs no memory. */
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

/** 0 stands for "before the first edit". */
export function readSeqOrStart(input: Decoder): Seq {
  return readNumber(input) as Seq;
}

export function readEpoch(input: Decoder): Epoch {
  return atLeastOne(readNumber(input), "epoch") as Epoch;
}

export function readCounter(input: Decoder): Counter {
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

export function required<Value>(value: Value | undefined, what: string): Value {
  if (value === undefined) throw new RangeError(`not a ${what}`);
  return value;
}

function atLeastOne(value: number, what: string): number {
  if (value < 1) throw new RangeError(`${what}s start at 1`);
  return value;
}
