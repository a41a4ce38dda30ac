import { Registry } from "prom-client";
import { expect, test } from "vitest";

import { decodeFrame, encodeFrame } from "../../shared/wire/codec.ts";
import { PART_BYTES_MIN, messagesOf, wholeFrameBytesMax } from "../../shared/wire/parts.ts";
import { gatewayMetrics } from "../metrics.ts";
import type { Clients, ConnectionId, FrameSource, Sockets } from "../ports.ts";
import { WholeFrames } from "./whole-frames-host.ts";

const [ANN, BOB, MALLORY] = [1, 2, 3] as ConnectionId[] as [ConnectionId, ConnectionId, ConnectionId];
const OPTIONS = { messageBytesMax: 16_384, frameBytesMax: 100_000, partialBytesMax: 120_000, retryAfterMs: 1_000 };
const LIMITS = { frameBytesMax: OPTIONS.messageBytesMax, partedFrameBytesMax: OPTIONS.frameBytesMax };

function frameOf(bytes: number): Uint8Array {
  return encodeFrame({ type: "renew", token: "x".repeat(bytes) });
}

function rig() {
  const received: { connection: ConnectionId; bytes: Uint8Array; cameIn: FrameSource | undefined }[] = [];
  const sent: (readonly [ConnectionId, string])[] = [];
  const clients: Partial<Clients> = {
    receiveFrame: (connection, bytes, cameIn) => void received.push({ connection, bytes: bytes.slice(), cameIn }),
    receiveDisconnection: () => {},
  };
  const sockets: Partial<Sockets> = {
    send: (to, frame) => void sent.push([to, decodeFrame(frame)!.type]),
    close: (connection, close) => void sent.push([connection, close]),
  };
  const metrics = gatewayMetrics(new Registry());
  const frames = new WholeFrames(clients as Clients, sockets as Sockets, OPTIONS, metrics);
  const partialBytes = async () => (await metrics.partialBytes.get()).values[0]?.value;
  return { frames, received, sent, partialBytes };
}

test("[WHF1] a frame in parts is passed on complete, and other frames may arrive between its parts", async () => {
  const { frames, received, partialBytes } = rig();
  const [long, other, ping] = [frameOf(50_000), frameOf(40_000), encodeFrame({ type: "ping", nonce: 1 })];
  const [parts, others] = [messagesOf(long, LIMITS), messagesOf(other, LIMITS)];
  expect(parts.map(({ byteLength }) => byteLength).every((bytes) => bytes <= LIMITS.frameBytesMax)).toBe(true);
  parts.forEach((part, index) => {
    frames.receiveFrame(ANN, part);
    if (index === 1) frames.receiveFrame(ANN, ping);
    if (others[index] !== undefined) frames.receiveFrame(BOB, others[index]);
  });
  expect(received).toEqual([
    { connection: ANN, bytes: ping, cameIn: "message" },
    { connection: BOB, bytes: other, cameIn: "parts" },
    { connection: ANN, bytes: long, cameIn: "parts" },
  ]);
  expect(await partialBytes()).toBe(0);
  expect(messagesOf(ping, LIMITS)).toEqual([ping]);
  const earlier = { frameBytesMax: 786_432 };
  expect([messagesOf(long, earlier), wholeFrameBytesMax(earlier), wholeFrameBytesMax(LIMITS)]).toEqual([[long], 786_432, 100_000]);
});

test("[WHF2] a session refuses a frame that becomes too large, and parts that are too small or too large", () => {
  const { frames, received } = rig();
  for (const part of messagesOf(frameOf(150_000), LIMITS)) frames.receiveFrame(MALLORY, part);
  expect(received[0]!.bytes.byteLength).toBeGreaterThan(OPTIONS.frameBytesMax);
  expect(received[0]!.cameIn).toBe("parts");
  const partOf = (bytes: number, last: boolean) => encodeFrame({ type: "part", flags: { last }, payload: new Uint8Array(bytes) });
  for (const refused of [partOf(PART_BYTES_MIN - 1, false), partOf(OPTIONS.messageBytesMax, true)]) {
    frames.receiveFrame(BOB, refused);
    expect(received.at(-1)).toEqual({ connection: BOB, bytes: refused, cameIn: "message" });
  }
});

test("[WHF3] above the limit of all unfinished frames, the connection with the oldest is closed and may come back later", async () => {
  const { frames, received, sent, partialBytes } = rig();
  const unfinished = messagesOf(frameOf(90_000), LIMITS).slice(0, -1);
  frames.receiveFrame(MALLORY, unfinished[0]!);
  for (const part of unfinished) frames.receiveFrame(ANN, part);
  expect(sent).toEqual([]);
  for (const part of unfinished.slice(0, 2)) frames.receiveFrame(BOB, part);
  expect(sent).toEqual([
    [MALLORY, "retry-later"],
    [MALLORY, "error"],
    [MALLORY, "overloaded"],
  ]);
  frames.receiveDisconnection(MALLORY);
  frames.receiveDisconnection(ANN);
  expect(await partialBytes()).toBe(unfinished[0]!.byteLength + unfinished[1]!.byteLength - 2 * 4);
  frames.receiveDisconnection(BOB);
  expect(await partialBytes()).toBe(0);
  expect(received).toEqual([]);
});
