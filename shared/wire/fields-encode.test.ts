import * as lib0 from "lib0/encoding";
import { expect, test } from "vitest";
import { encode } from "./fields.ts";

const LENGTHS = [0, 1, 99, 100, 101, 150, 5_000, 3];

test("[ENCODE1] messages of any length, one after the other, are encoded as lib0 encodes them", () => {
  for (const length of LENGTHS) {
    const value = Uint8Array.from({ length }, (_, index) => index % 251);
    const write = (out: lib0.Encoder): void => {
      for (const byte of value) lib0.writeUint8(out, byte);
      lib0.writeVarUint8Array(out, value);
    };
    expect(encode(write)).toEqual(lib0.encode(write));
  }
});

test("[ENCODE2] encoded bytes do not change when further messages are encoded", () => {
  const messages = LENGTHS.map((length) => encode((out) => lib0.writeVarString(out, "a".repeat(length))));
  expect(messages.map(({ byteLength }) => byteLength)).toEqual(
    LENGTHS.map((length) => lib0.encode((out) => lib0.writeVarString(out, "a".repeat(length))).byteLength),
  );
  expect(messages[1]).toEqual(new Uint8Array([1, "a".charCodeAt(0)]));
  expect(new Set(messages.map(({ buffer }) => buffer)).size).toBe(messages.length);
});

test("[ENCODE3] a message can be encoded within another, and after a failed one", () => {
  const inner = (): Uint8Array => encode((out) => lib0.writeVarUint(out, 7));
  expect(
    encode((out) => {
      lib0.writeUint8(out, 1);
      lib0.writeVarUint8Array(out, inner());
    }),
  ).toEqual(new Uint8Array([1, 1, 7]));
  expect(() =>
    encode((out) => {
      lib0.writeUint8(out, 9);
      throw new Error("not to be written");
    }),
  ).toThrow("not to be written");
  expect(inner()).toEqual(new Uint8Array([7]));
});
