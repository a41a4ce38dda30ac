/** The values of the fields that Coroom itself reads: where somebody points, what is selected, what is seen. */

import type { Decoder } from "lib0/decoding";
import * as encoding from "lib0/encoding";

import { readNumber, readWhole } from "./fields.ts";

/** In units of the application: whole numbers of at most 2^48 either way. */
export type Point = { readonly x: number; readonly y: number };
export type Rectangle = Point & { readonly width: number; readonly height: number };
/** Offsets: where the selection was begun, and where it ends now. */
export type Span = { readonly anchor: number; readonly head: number };

const COORDINATE_MAX = 2 ** 48;

/** Throws on what is no such point: fractions, and numbers out of range. */
export function encodePoint({ x, y }: Point): Uint8Array {
  return encoding.encode((out) => {
    writeSigned(out, x);
    writeSigned(out, y);
  });
}

export function encodeRectangle({ x, y, width, height }: Rectangle): Uint8Array {
  return encoding.encode((out) => {
    writeSigned(out, x);
    writeSigned(out, y);
    encoding.writeVarUint(out, coordinate(width));
    encoding.writeVarUint(out, coordinate(height));
  });
}

export function encodeSpan({ anchor, head }: Span): Uint8Array {
  return encoding.encode((out) => {
    encoding.writeVarUint(out, coordinate(anchor));
    encoding.writeVarUint(out, coordinate(head));
  });
}

/** Undefined for bytes that are no point. */
export function decodePoint(value: Uint8Array): Point | undefined {
  return readWhole(value, (input) => ({ x: readSigned(input), y: readSigned(input) }));
}

export function decodeRectangle(value: Uint8Array): Rectangle | undefined {
  return readWhole(value, (input) => ({
    x: readSigned(input),
    y: readSigned(input),
    width: coordinate(readNumber(input)),
    height: coordinate(readNumber(input)),
  }));
}

export function decodeSpan(value: Uint8Array): Span | undefined {
  return readWhole(value, (input) => ({ anchor: coordinate(readNumber(input)), head: coordinate(readNumber(input)) }));
}

/** Zigzag: 0, -1, 1, -2, 2 are 0, 1, 2, 3, 4, so that small numbers are short either way. */
function writeSigned(out: encoding.Encoder, number: number): void {
  coordinate(Math.abs(number));
  encoding.writeVarUint(out, number < 0 ? -2 * number - 1 : 2 * number);
}

function readSigned(input: Decoder): number {
  const number = readNumber(input);
  const signed = number % 2 === 1 ? -(number + 1) / 2 : number / 2;
  coordinate(Math.abs(signed));
  return signed;
}

function coordinate(number: number): number {
  if (!Number.isInteger(number) || number < 0 || number > COORDINATE_MAX) {
    throw new RangeError("a coordinate is a whole number of at most 2^48");
  }
  return number;
}
