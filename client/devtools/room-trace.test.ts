/** What the developer panel records of a room on a model server. */

import { expect, test } from "vitest";

import type { Millis } from "../../shared/ids.ts";
import type { RoomConnection } from "../room/room-connection-host.ts";
import type { RoomPart } from "../room/room-messages.ts";
import { App, bytes, MINUTE, serverOn } from "../testing/test-page.ts";
import { RoomTrace } from "./room-trace.ts";

function traced(room: RoomConnection): RoomTrace {
  const trace = new RoomTrace();
  room.part((_room, { clock }): RoomPart => ({
    receiveInput: (input) => trace.receiveInput(input, clock.now()),
    receiveSent: (frame) => trace.receiveSent(frame, clock.now()),
    end: () => {},
  }));
  return trace;
}

test("[DEV1] frames of a room are counted by lane and described, with the time, and without payloads", async () => {
  const server = serverOn();
  const [ann, bob] = [new App(server, 1), new App(server, 2)];
  const trace = traced(ann.host);
  await server.clock.advance(1_000);
  const start = server.clock.now();
  ann.host.send(bytes(1, 2, 3));
  await server.clock.advance(1_000);
  bob.host.send(bytes(4));
  bob.host.presence.set({ mood: "calm" });
  ann.host.presence.set({ mood: "busy" });
  await server.clock.advance(1_000);
  const texts = trace.frames.filter(({ at }) => at >= start).map(({ direction, text }) => `${direction} ${text}`);
  expect(texts).toEqual(expect.arrayContaining(["out edit 1, 3 B", "in ack of edit 1: seq 1", "in committed 2", "out presence mood"]));
  expect(trace.frames.map(({ text }) => text)).toContain("joined at head 0");
  expect([trace.counts.edits, trace.counts.presence.out]).toEqual([{ in: 2, out: 1 }, 1]);
  expect(trace.counts.presence.in).toBeGreaterThan(0);
  server.cut();
  await server.clock.advance(MINUTE);
  expect(trace.frames.map(({ text }) => text)).toEqual(expect.arrayContaining(["connection lost", "connection open"]));
});

test("[DEV2] only the last 50 frames are kept", () => {
  const trace = new RoomTrace();
  for (let nonce = 1; nonce <= 60; nonce++) trace.receiveSent({ type: "ping", nonce }, nonce as Millis);
  expect([trace.frames.length, trace.frames[0]?.at, trace.counts.control.out]).toEqual([50, 11, 60]);
});
