/**
 * The fields that frames, records and envelopes share. Readers throw on a value out of range: the caller
 * refuses the whole. Bytes and texts are read here and not by lib0, whose readers trust a length up to the
 * end of the underlying buffer: a view into a shared buffer would let a stranger read its neighbours.
 */

import * as decoding from "lib0/decoding";

import { type ClientId, type Epoch, parseClientId, parseUserId, type Seq, type UserId } from "../ids.ts";
import type { Counter } from "./frames.ts";

const UTF8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

export function readByte(input: decoding.Decoder): number {
  const byte = input.arr[input.pos];
  if (byte === undefined) throw new RangeError("cut short");
  input.pos += 1;
  return byte;
}

/** A view into the input: copy it to keep it. */
export function readBytes(input: decoding.Decoder): Uint8Array {
  const length = decoding.readVarUint(input);
  const end = input.pos + length;
  if (end > input.arr.byteLength) throw new RangeError("cut short");
  const bytes = input.arr.subarray(input.pos, end);
  input.pos = end;
  return bytes;
}

export function readText(input: decoding.Decoder): string {
  return UTF8.decode(readBytes(input));
}

/** Edits are numbered from 1. */
export function readSeq(input: decoding.Decoder): Seq {
  return atLeastOne(decoding.readVarUint(input), "seq") as Seq;
}

/** 0 stands for "before the first edit". */
export function readSeqOrStart(input: decoding.Decoder): Seq {
  return decoding.readVarUint(input) as Seq;
}

export function readEpoch(input: decoding.Decoder): Epoch {
  return atLeastOne(decoding.readVarUint(input), "epoch") as Epoch;
}

export function readCounter(input: decoding.Decoder): Counter {
  return atLeastOne(decoding.readVarUint(input), "counter");
}

export function readClientId(input: decoding.Decoder): ClientId {
  return required(parseClientId(readText(input)), "client id");
}

export function readUserId(input: decoding.Decoder): UserId {
  return required(parseUserId(readText(input)), "user id");
}

/** One of a fixed list of names, each with its number. */
export function readName<Name extends string>(input: decoding.Decoder, names: Readonly<Record<Name, number>>): Name {
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
