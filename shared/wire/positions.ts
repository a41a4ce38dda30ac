/** The values of the presence fields that Coroom itself reads: cursor, selection and viewport. */

import type { Decoder } from "lib0/decoding";
import * as encoding from "lib0/encoding";
import { readNumber, decodeAll } from "./fields.ts";

/** In the application's units: whole numbers of at most 2^48 in either direction. */
export type Point = {
  /** From left to right. */
  readonly x: number;
  /** From top to bottom, or as the application defines it. */
  readonly y: number;
};
/** A visible area: the point of its lowest coordinates, and its size in the same units, from 0 to 2^48. */
export type Rectangle = Point & {
  /** Extent in the direction of `x`. */
  readonly width: number;
  /** Extent in the direction of `y`. */
  readonly height: number;
};
/** A selection in a text, as whole numbers from 0 to 2^48 in the application's units, for example characters. */
export type TextSpan = {
  /** Offset at which the selection started. */
  readonly anchor: number;
  /** Offset of its moving end. Equal to `anchor`: a caret. */
  readonly head: number;
};

const COORDINATE_MAX = 2 ** 48;

/** Throws on fractions and numbers out of range. */
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

export function encodeSpan({ anchor, head }: TextSpan): Uint8Array {
  return encoding.encode((out) => {
    encoding.writeVarUint(out, coordinate(anchor));
    encoding.writeVarUint(out, coordinate(head));
  });
}

/** Undefined for bytes that are not a point. */
export function decodePoint(value: Uint8Array): Point | undefined {
  return decodeAll(value, (input) => ({ x: readSigned(input), y: readSigned(input) }));
}

export function decodeRectangle(value: Uint8Array): Rectangle | undefined {
  return decodeAll(value, (input) => ({
    x: readSigned(input),
    y: readSigned(input),
    width: coordinate(readNumber(input)),
    height: coordinate(readNumber(input)),
  }));
}

export function decodeSpan(value: Uint8Array): TextSpan | undefined {
  return decodeAll(value, (input) => ({ anchor: coordinate(readNumber(input)), head: coordinate(readNumber(input)) }));
}

/** Zigzag: 0, -1, 1, -2, 2 become 0, 1, 2, 3, 4, so that small numbers of either sign are short. */
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
