import * as lib0 from "lib0/encoding";
import { expect, test } from "vitest";

import type { ClientId, Epoch, Seq } from "../ids.ts";
import { encodeCommittedFrame, encodeFrame, encodePresenceDeltaFrame } from "./codec.ts";
import { writeCommittedEdits } from "./committed-edits.ts";
import { encode } from "./fields.ts";
import type { CommittedEdits } from "./frames.ts";
import { encodeDelta, type PresenceDelta } from "./presence.ts";

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

test("[ENCODE4] frames of encoded edits and presence are the same as frames of their content, for channels of any size", () => {
  const edit = { client: "client0000000001" as ClientId, counter: 1, parentSeq: 0 as Seq, payload: Uint8Array.of(1) };
  const edits: CommittedEdits = { epoch: 1 as Epoch, firstSeq: 1 as Seq, edits: [edit] };
  const delta: PresenceDelta = { snapshot: false, present: [], gone: [3], states: [] };
  for (const channel of [1, 126, 127, 128, 16_383, 16_384, 2 ** 32, Number.MAX_SAFE_INTEGER]) {
    const encodedEdits = encode((out) => writeCommittedEdits(out, edits));
    expect(encodeCommittedFrame(channel, encodedEdits)).toEqual(encodeFrame({ type: "committed", channel, edits }));
    expect(encodePresenceDeltaFrame(channel, encodeDelta(delta))).toEqual(encodeFrame({ type: "presence-delta", channel, delta }));
  }
});
