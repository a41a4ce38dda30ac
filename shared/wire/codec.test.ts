import { expect, test } from "vitest";

import { bytesOf, frameOf, hexOf } from "../../test/wire/vectors.ts";
import { BOARD_ROLES, BOARD_STATES, BOARD_WINDOWS } from "./boards.ts";
import { encodeCommittedFrame, decodeFrame, encodeFrame } from "./codec.ts";
import {
  BACKBONE_STATES,
  type Frame,
  FrameType,
  JOIN_REFUSALS,
  LEFT_REASONS,
  NACK_REASONS,
  RESYNC_REASONS,
  ROOM_MODES,
  SAVING_STATES,
} from "./frames.ts";
import vectors from "./vectors.json" with { type: "json" };

const good = vectors.filter(({ frame }) => frame !== null).map(({ rule, hex, frame }) => ({ rule, hex, frame: frameOf(frame!) }));
const bad = vectors.filter(({ frame }) => frame === null);
const known = good.filter((vector): vector is typeof vector & { frame: Frame } => vector.frame.type !== "unknown");

test.each(good)("[$rule] $hex decodes to the frame of the vector", ({ hex, frame }) => {
  expect(decodeFrame(bytesOf(hex))).toEqual(frame);
});

test.each(known)("[$rule] the frame of the vector encodes to $hex", ({ hex, frame }) => {
  expect(hexOf(encodeFrame(frame))).toBe(hex.replaceAll(" ", ""));
});

test.each(bad)("[$rule] $hex is refused: $why", ({ hex }) => {
  expect(decodeFrame(bytesOf(hex))).toBeUndefined();
});

test("[WIRE2] [WIRE7] the vectors contain every frame type and every numbered name, and more invalid frames than valid ones", () => {
  expect(new Set(known.map(({ frame }) => frame.type))).toEqual(new Set(Object.keys(FrameType)));
  const named = (type: Frame["type"], field: string) =>
    new Set(known.flatMap(({ frame }) => (frame.type === type ? [(frame as unknown as Record<string, unknown>)[field]] : [])));
  expect(named("join-refused", "reason")).toEqual(new Set(Object.keys(JOIN_REFUSALS)));
  expect(named("left", "reason")).toEqual(new Set(Object.keys(LEFT_REASONS)));
  expect(named("nack", "reason")).toEqual(new Set(Object.keys(NACK_REASONS)));
  expect(named("resync-required", "reason")).toEqual(new Set(Object.keys(RESYNC_REASONS)));
  expect(named("mode", "mode")).toEqual(new Set(Object.keys(ROOM_MODES)));
  expect(named("board", "state")).toEqual(new Set(Object.keys(BOARD_STATES)));
  expect(named("watch-board", "role")).toEqual(new Set(Object.keys(BOARD_ROLES)));
  expect(new Set([...named("watch-board", "window"), ...named("board", "window")])).toEqual(new Set(Object.keys(BOARD_WINDOWS)));
  expect(named("degraded", "backbone")).toEqual(new Set(Object.keys(BACKBONE_STATES)));
  expect(named("saving", "state")).toEqual(new Set(Object.keys(SAVING_STATES)));
  expect(bad.length).toBeGreaterThan(good.length);
});

test("[WIRE3] a frame that is truncated anywhere is refused, unless an earlier version ends it there", () => {
  const whole = new Set(known.map(({ hex }) => hexOf(bytesOf(hex))));
  for (const { hex } of known) {
    const bytes = bytesOf(hex);
    for (let length = 0; length < bytes.length; length++) {
      if (whole.has(hexOf(bytes.subarray(0, length)))) continue;
      expect(decodeFrame(bytes.subarray(0, length)), hexOf(bytes.subarray(0, length))).toBeUndefined();
    }
  }
});

test("[WIRE3] a client's frame with extra bytes is refused, except HELLO; a gateway's frame may have extra bytes", () => {
  for (const { hex, frame } of known) {
    const mayGoOn = frame.type === "hello" || FrameType[frame.type] >= 0x80;
    expect(decodeFrame(bytesOf(`${hex} 00`)), hex).toEqual(mayGoOn ? frame : undefined);
  }
});

test("[WIRE5] the bytes beside a frame in its buffer are never read", () => {
  const beside = new Uint8Array(64).fill(0x01);
  for (const { hex, frame } of vectors) {
    const bytes = bytesOf(hex);
    const buffer = new Uint8Array([...beside, ...bytes, ...beside]);
    const view = buffer.subarray(beside.length, beside.length + bytes.length);
    expect(decodeFrame(view), hex).toEqual(frame === null ? undefined : frameOf(frame));
  }
});

test("[WIRE5] a Buffer, which is a slice of a pool, is decoded like any bytes", () => {
  for (const { hex, frame } of good)
    expect(decodeFrame(Buffer.from(hex.replaceAll(" ", ""), "hex")), hex).toMatchObject({ type: frame.type });
});

test("[WIRE22] unknown bits of the rights are ignored", () => {
  expect(decodeFrame(bytesOf("84 01 07 105a6b335f2d6162636465666748494a4b 03 9c03 fd"))).toMatchObject({
    type: "joined",
    rights: { read: true, write: false },
  });
});

test("[WIRE11] committed edits that are already encoded give the same frame", () => {
  for (const { hex, frame } of known) {
    if (frame.type !== "committed") continue;
    const bytes = bytesOf(hex);
    expect(encodeCommittedFrame(frame.channel, bytes.subarray(2))).toEqual(bytes); // Type and channel are a byte each here.
  }
});

test("[WIRE11] a parent that does not precede its edit is encoded as the previous seq", () => {
  const frame = (parentSeq: number) =>
    frameOf({
      type: "committed",
      channel: 1,
      edits: { epoch: 2, firstSeq: 10, edits: [{ client: "0123456789abcdef", counter: 1, parentSeq, payload: "" }] },
    }) as Frame;
  for (const parentSeq of [10, 11, Number.MAX_SAFE_INTEGER]) expect(decodeFrame(encodeFrame(frame(parentSeq)))).toEqual(frame(9));
});
