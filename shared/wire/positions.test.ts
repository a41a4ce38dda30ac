import fc from "fast-check";
import { expect, test } from "vitest";

import { decodePoint, decodeRectangle, decodeSpan, encodePoint, encodeRectangle, encodeSpan } from "./positions.ts";

const size = fc.oneof(fc.nat(5_000), fc.integer({ min: 0, max: 2 ** 48 }), fc.constantFrom(2 ** 31, 2 ** 32, 2 ** 48));
const coordinate = fc.tuple(size, fc.boolean()).map(([number, below]) => (below && number > 0 ? -number : number));

test("[WIRE42] positions decode to what was encoded", () => {
  fc.assert(
    fc.property(coordinate, coordinate, size, size, (x, y, width, height) => {
      expect(decodePoint(encodePoint({ x, y }))).toEqual({ x, y });
      expect(decodeRectangle(encodeRectangle({ x, y, width, height }))).toEqual({ x, y, width, height });
      expect(decodeSpan(encodeSpan({ anchor: width, head: height }))).toEqual({ anchor: width, head: height });
    }),
  );
});

test("[WIRE42] a fraction, or a position that is too far away, is not encoded", () => {
  for (const x of [0.5, Number.NaN, Infinity, 2 ** 48 + 2, -(2 ** 49)]) expect(() => encodePoint({ x, y: 0 })).toThrow(RangeError);
  expect(() => encodeRectangle({ x: 0, y: 0, width: -1, height: 1 })).toThrow(RangeError);
});

test("a cursor on a large canvas costs at most 16 bytes in a batch", () => {
  expect(encodePoint({ x: -100_000, y: 100_000 }).byteLength).toBeLessThanOrEqual(6);
});
