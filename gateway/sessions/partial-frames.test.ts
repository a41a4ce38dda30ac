import { expect, test } from "vitest";

import type { TenantId, UserId } from "../../shared/ids.ts";
import { encodeFrame } from "../../shared/wire/codec.ts";
import { PART_BYTES_MIN, messagesOf, wholeFrameBytesMax } from "../../shared/wire/parts.ts";
import { stepsDuring } from "../../shared/testing/counted-steps.ts";
import type { ConnectionId } from "../ports.ts";
import { PartialFrames } from "./partial-frames.ts";

const [ANN, BOB, MALLORY] = [1, 2, 3] as ConnectionId[] as [ConnectionId, ConnectionId, ConnectionId];
const senderOf = (tenant: string, user: string) => ({ tenant: tenant as TenantId, user: user as UserId });
const ACME_ANN = senderOf("acme", "ann");
const OPTIONS = { messageBytesMax: 16_384, frameBytesMax: 100_000, partialBytesMax: 120_000 };
const LIMITS = { frameBytesMax: OPTIONS.messageBytesMax, partedFrameBytesMax: OPTIONS.frameBytesMax };

function frameOf(bytes: number): Uint8Array {
  return encodeFrame({ type: "renew", token: "x".repeat(bytes) });
}

test("[WHF1] a frame in parts is returned with its last part, also while another connection sends parts", () => {
  const partial = new PartialFrames(OPTIONS);
  const received: unknown[] = [];
  const receive = (connection: ConnectionId, part: Uint8Array) => {
    const whole = partial.receivePart(connection, part, ACME_ANN);
    if (whole !== undefined) received.push({ connection, ...whole });
  };
  const [long, other] = [frameOf(50_000), frameOf(40_000)];
  const [parts, others] = [messagesOf(long, LIMITS), messagesOf(other, LIMITS)];
  expect(parts.map(({ byteLength }) => byteLength).every((bytes) => bytes <= LIMITS.frameBytesMax)).toBe(true);
  parts.forEach((part, index) => {
    receive(ANN, part);
    part.fill(9); // The socket lends the bytes only for the call.
    if (others[index] !== undefined) receive(BOB, others[index]);
  });
  expect(received).toEqual([
    { connection: BOB, bytes: other, cameIn: "parts" },
    { connection: ANN, bytes: long, cameIn: "parts" },
  ]);
  expect(partial.bytes).toBe(0);
  const ping = encodeFrame({ type: "ping", nonce: 1 });
  expect(messagesOf(ping, LIMITS)).toEqual([ping]);
  const earlier = { frameBytesMax: 786_432 };
  expect([messagesOf(long, earlier), wholeFrameBytesMax(earlier), wholeFrameBytesMax(LIMITS)]).toEqual([[long], 786_432, 100_000]);
});

test("[WHF2] the session receives a frame that becomes too large, and parts that are too small or too large, to refuse them", () => {
  const partial = new PartialFrames(OPTIONS);
  const results = messagesOf(frameOf(150_000), LIMITS).map((part) => partial.receivePart(MALLORY, part, ACME_ANN));
  const tooLarge = results.find((whole) => whole !== undefined)!;
  expect(tooLarge.bytes.byteLength).toBeGreaterThan(OPTIONS.frameBytesMax);
  expect(tooLarge.cameIn).toBe("parts");
  const partOf = (bytes: number, last: boolean) => encodeFrame({ type: "part", flags: { last }, payload: new Uint8Array(bytes) });
  for (const refused of [partOf(PART_BYTES_MIN - 1, false), partOf(OPTIONS.messageBytesMax, true)])
    expect(partial.receivePart(BOB, refused, ACME_ANN)).toEqual({ bytes: refused, cameIn: "message" });
});

test("[WHF3] above the limit of all unfinished frames, the oldest ones are forgotten", () => {
  const partial = new PartialFrames(OPTIONS);
  const unfinished = messagesOf(frameOf(90_000), LIMITS).slice(0, -1);
  const receive = (connection: ConnectionId, parts: readonly Uint8Array[]) => {
    for (const part of parts) expect(partial.receivePart(connection, part, ACME_ANN)).toBeUndefined();
  };
  receive(MALLORY, unfinished.slice(0, 1));
  receive(ANN, unfinished);
  expect(partial.takeExcess()).toEqual([]);
  receive(BOB, unfinished.slice(0, 2));
  expect(partial.takeExcess()).toEqual([MALLORY]);
  expect(partial.takeExcess()).toEqual([]);
  partial.forget(MALLORY);
  partial.forget(ANN);
  expect(partial.bytes).toBe(unfinished[0]!.byteLength + unfinished[1]!.byteLength - 2 * 4);
  partial.forget(BOB);
  expect(partial.bytes).toBe(0);
});

test("[WHF8] the limit ends the frames of the tenant, and in it of the user, with the most bytes, not the oldest of another", () => {
  const partial = new PartialFrames({ ...OPTIONS, partialBytesMax: 220_000 });
  const parts = messagesOf(frameOf(90_000), LIMITS).slice(0, -1);
  const send = (connection: number, tenant: string, user: string, count: number) => {
    for (const part of parts.slice(0, count)) partial.receivePart(connection as ConnectionId, part, senderOf(tenant, user));
  };
  send(1, "acme", "ann", 2); // The oldest of all.
  send(2, "evil", "bob", 1); // The oldest of its tenant.
  send(3, "evil", "mallory", 3);
  send(4, "evil", "mallory", 5);
  send(5, "evil", "eve", 5);
  expect(partial.takeExcess()).toEqual([3]);
  expect(partial.takeExcess()).toEqual([]);
});

test("[WHF12] the limit finds the frame to end without a look at every unfinished frame", () => {
  const partial = new PartialFrames({ ...OPTIONS, partialBytesMax: 500 * PART_BYTES_MIN });
  const part = encodeFrame({ type: "part", flags: { last: false }, payload: new Uint8Array(PART_BYTES_MIN) });
  for (let connection = 1; connection <= 501; connection++) partial.receivePart(connection as ConnectionId, part, ACME_ANN);
  let excess: readonly ConnectionId[] = [];
  expect(stepsDuring(() => void (excess = partial.takeExcess()))).toBeLessThanOrEqual(50);
  expect(excess).toEqual([1]);
});
