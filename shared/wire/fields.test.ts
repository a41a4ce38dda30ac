import fc from "fast-check";
import * as decoding from "lib0/decoding";
import * as encoding from "lib0/encoding";
import { expect, test } from "vitest";

import { bytesOf } from "../../test/wire/vectors.ts";
import { readBytes, readCount, readList, readNumber } from "./fields.ts";

const inputOf = (hex: string) => decoding.createDecoder(bytesOf(hex));

test("[WIRE4] numbers are encoded as lib0 encodes them", () => {
  fc.assert(
    fc.property(
      fc.oneof(
        fc.maxSafeNat(),
        fc.nat(300),
        fc.integer({ min: 0, max: 53 }).map((bits) => Math.min(2 ** bits, Number.MAX_SAFE_INTEGER)),
      ),
      (number) => {
        const input = decoding.createDecoder(encoding.encode((out) => encoding.writeVarUint(out, number)));
        expect(readNumber(input)).toBe(number);
        expect(decoding.hasContent(input)).toBe(false);
      },
    ),
  );
});

test("[WIRE4] a number that a double cannot hold, or that is not in its shortest form, is refused", () => {
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 1, maxLength: 12 }), (bytes) => {
      const input = decoding.createDecoder(bytes);
      let number: number;
      try {
        number = readNumber(input);
      } catch (error) {
        expect(error).toBeInstanceOf(RangeError);
        return;
      }
      expect(Number.isSafeInteger(number)).toBe(true);
      expect(encoding.encode((out) => encoding.writeVarUint(out, number))).toEqual(bytes.slice(0, input.pos));
    }),
    { numRuns: 1_000 },
  );
});

test("[WIRE5] a length beyond the view is refused even if the buffer is longer", () => {
  const buffer = bytesOf("04 01 02 03 04 05 06");
  expect(() => readBytes(decoding.createDecoder(buffer.subarray(0, 4)))).toThrow(RangeError);
  expect(readBytes(decoding.createDecoder(buffer.subarray(0, 5)))).toEqual(bytesOf("01 02 03 04"));
});

test.each(["01", "04 000000", "ffffffffffffff0f 00"])(
  "[WIRE13] a count of entries that the remaining bytes cannot hold is refused before any entry is decoded: %s",
  (hex) => {
    let read = 0;
    expect(() => readList(inputOf(hex), 1, () => (read += 1))).toThrow(RangeError);
    expect(read).toBe(0);
  },
);

test("[WIRE13] a count is checked against the smallest size of an entry", () => {
  expect(readCount(inputOf("02 00000000"), 2)).toBe(2);
  expect(() => readCount(inputOf("02 000000"), 2)).toThrow(RangeError);
});
