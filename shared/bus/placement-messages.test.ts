import { expect, test } from "vitest";

import { decodeJson, encodeJson } from "./json-messages.ts";
import {
  ClaimReply,
  ClaimRequest,
  ServiceHeartbeat,
  LocateReply,
  LocateRequest,
  RoomEntry,
  ServerHeartbeat,
  ServerCommand,
} from "./placement-messages.ts";

const time = 1_795_000_000_000;

test.each([
  [ServerHeartbeat, { server: "s-1_a", rooms: 0, draining: false, time }],
  [ServiceHeartbeat, { service: "d1", url: "http://127.0.0.1:9001", time }],
  [ClaimRequest, { room: "acme.notes" }],
  [ClaimRequest, { room: "acme.notes=2edraft", suspect: "s2" }],
  [ClaimRequest, { room: "acme.notes", suspect: "s2", end: { id: "s2.9", streamSeq: 70, epoch: 3, head: 50 } }],
  [ServerCommand, { kind: "expect", room: "acme.notes", generation: 0 }],
  [ClaimReply, { kind: "owned", server: "s1", epoch: 3 }],
  [ClaimReply, { kind: "elsewhere", server: "s2", epoch: 0 }],
  [ClaimReply, { kind: "refused", reason: "draining" }],
  [LocateRequest, { room: "acme.notes", suspects: [] }],
  [LocateRequest, { room: "acme.notes", suspects: Array.from({ length: 64 }, (_, index) => `s${index}`) }],
  [LocateReply, { kind: "server", server: "s1" }],
  [LocateReply, { kind: "none", reason: "no room server is live" }],
  [RoomEntry, { owner: "s1", epoch: 3 }],
])("[PLM1] %# is read as it was written", (schema, message) => {
  expect(decodeJson(schema as typeof RoomEntry, encodeJson(message))).toEqual(message);
});

test("[PLM2] an unknown field of a later version is ignored", () => {
  expect(decodeJson(RoomEntry, encodeJson({ owner: "s1", epoch: 3, replica: "s2" }))).toEqual({ owner: "s1", epoch: 3 });
});

test.each([
  ["a room that is one token", ClaimRequest, { room: "acme" }],
  ["a room with a wildcard", ClaimRequest, { room: "acme.*" }],
  ["a room of three tokens", ClaimRequest, { room: "acme.notes.draft" }],
  ["a server whose name would be two subject tokens", ClaimRequest, { room: "acme.notes", suspect: "s.1" }],
  ["65 suspects", LocateRequest, { room: "acme.notes", suspects: Array.from({ length: 65 }, () => "s1") }],
  ["a wildcard for a server", LocateReply, { kind: "server", server: ">" }],
  ["a log that ends nowhere", ClaimRequest, { room: "acme.notes", end: { id: "s2.9", streamSeq: 0, epoch: 3, head: 50 } }],
  ["an unknown kind", ClaimReply, { kind: "maybe", server: "s1", epoch: 3 }],
  ["an epoch below 0", RoomEntry, { owner: "s1", epoch: -1 }],
  ["half an epoch", RoomEntry, { owner: "s1", epoch: 1.5 }],
  ["an epoch over 2^53 - 1", RoomEntry, { owner: "s1", epoch: 2 ** 53 }],
  ["no address", ServiceHeartbeat, { service: "d1", url: "nowhere", time }],
  ["a text for a time", ServerHeartbeat, { server: "s1", rooms: 0, draining: false, time: "now" }],
])("[PLM3] %s is refused", (_, schema, message) => {
  expect(decodeJson(schema as typeof RoomEntry, encodeJson(message))).toBeUndefined();
});

test.each(["", "{", "null", "[]", '"acme.notes"', "\u0000", "[".repeat(100_000)])("[PLM3] %.10j is refused", (text) => {
  expect(decodeJson(ClaimRequest, new TextEncoder().encode(text))).toBeUndefined();
});

test("[PLM3] bytes that are not text are refused", () => {
  expect(decodeJson(ClaimRequest, Uint8Array.of(0xff, 0xfe, 0x00))).toBeUndefined();
});

test("[PLM4] a claim above an epoch near 2^53 leaves room for all epochs that follow it", () => {
  const above = (epoch: number) => decodeJson(ClaimRequest, encodeJson({ room: "acme.notes", above: epoch }))?.above;
  expect([above(3), above(2 ** 52), above(Number.MAX_SAFE_INTEGER)]).toEqual([3, 2 ** 52, 2 ** 52]);
});
