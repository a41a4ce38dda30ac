import { expect, test } from "vitest";

import { FirstCopy } from "./first-copy.ts";

test("[FCP1] the copy detects bytes that differ from the first ones, at any boundaries of the pieces", () => {
  const copy = new FirstCopy();
  const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
  expect([
    copy.matches(bytes("abc"), 0),
    copy.matches(bytes("ab"), 0),
    copy.matches(bytes("cdef"), 2),
    copy.matches(bytes("def"), 3),
  ]).toEqual([true, true, true, true]);
  expect([copy.matches(bytes("abx"), 0), copy.matches(bytes("x"), 5), copy.matches(bytes("xg"), 5)]).toEqual([false, false, false]);
  expect(new TextDecoder().decode(copy.bytes)).toBe("abcdef");
});

test("[FCP2] the copy grows with the bytes", () => {
  const copy = new FirstCopy();
  const piece = new Uint8Array(700_000).fill(7);
  expect([0, 1, 2, 3].map((index) => copy.matches(piece, index * piece.byteLength))).toEqual([true, true, true, true]);
  expect([copy.bytes.byteLength, copy.bytes.every((byte) => byte === 7)]).toEqual([2_800_000, true]);
});
