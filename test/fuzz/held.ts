/** Assertions that the fuzz targets share. */

import { isDeepStrictEqual } from "node:util";

import { assert } from "../../shared/assert.ts";

/** Extra bytes around an input. A decoder that reads them shows a client the memory of another. */
const NEIGHBOURS = 64;

/** Returns the input inside a larger buffer, as sockets provide it. */
export function amongOthers(input: Uint8Array): Uint8Array {
  const buffer = new Uint8Array(input.byteLength + 2 * NEIGHBOURS).fill(0x41);
  buffer.set(input, NEIGHBOURS);
  return buffer.subarray(NEIGHBOURS, NEIGHBOURS + input.byteLength);
}

/**
 * Counts the contents of a decoded value: payload bytes, and one for each entry of a list. Texts do not count, because
 * edits share the texts of their clients. Refuses views outside of the input.
 */
export function heldSize(value: unknown, input: Uint8Array): number {
  if (typeof value !== "object" || value === null) return 0;
  if (value instanceof Uint8Array) {
    const isWithin = value.byteOffset >= input.byteOffset && value.byteOffset + value.byteLength <= input.byteOffset + input.byteLength;
    assert(value.buffer !== input.buffer || isWithin, "a decoded value lies within the input");
    return value.byteLength;
  }
  const entries: Iterable<unknown> = Array.isArray(value) ? value : value instanceof Map ? value.entries() : Object.values(value);
  let size = 0;
  for (const entry of entries) size += heldSize(entry, input) + (Array.isArray(value) ? 1 : 0);
  return size;
}

export function assertEqual(actual: unknown, expected: unknown, what: string): void {
  assert(isDeepStrictEqual(actual, expected), what);
}
