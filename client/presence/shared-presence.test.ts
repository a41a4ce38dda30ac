/** Many rooms on one connection. The gateway limits presence and other frames for all of them together. */

import { expect, test } from "vitest";

import type { RoomId } from "../../shared/ids.ts";
import { ConnectionHost } from "../connection/connection-host.ts";
import type { RoomConnectionOptions } from "../room/room-events.ts";
import { RoomConnection } from "../room/room-connection-host.ts";
import { ClientFakeClock } from "../testing/fake-clock.ts";
import { LIMITS } from "../testing/model-connection.ts";
import { ModelServer } from "../testing/model-server.ts";

function strictServer(limits: Partial<typeof LIMITS> = {}): ModelServer {
  const server = new ModelServer(new ClientFakeClock(), { faults: { delayMsMax: 5 } });
  server.keepsRates = true;
  server.limits = { ...LIMITS, pingIntervalMs: 30_000, silenceMsMax: 75_000, ...limits };
  return server;
}

function connectionTo(server: ModelServer): { connection: ConnectionHost; statuses: string[] } {
  const connection = new ConnectionHost({ url: "ws://h", token: "t" }, server.world(1));
  const statuses: string[] = [];
  connection.on("status", ({ status }) => statuses.push(status));
  return { connection, statuses };
}

const roomOn = (server: ModelServer, connection: ConnectionHost, room: string, seed: number): RoomConnection =>
  new RoomConnection({ connection, room: room as RoomId } as RoomConnectionOptions, server.world(seed));

const shownIn = (server: ModelServer, room: string): unknown[] =>
  server.presence(room).snapshot.states.map(({ fields }) => fields.map(({ value }) => `${value}`));

test.each([
  ["as gateways allow by default", {}, 100],
  ["as little as they can", { presenceBurst: 1, presencePerSecond: 1, controlBurst: 1, controlsPerSecond: 1 }, 10],
])("[RPR8] fields set in many rooms at once are shown in each, %s", async (_, limits, count) => {
  const server = strictServer(limits);
  const { connection, statuses } = connectionTo(server);
  const rooms = Array.from({ length: count }, (__, index) => roomOn(server, connection, `dash-${index}`, index));
  await server.clock.advance(60_000);
  for (const room of rooms) room.presence.set({ mood: "calm" });
  await server.clock.advance(60_000);
  expect(rooms.filter(({ room }) => shownIn(server, room).length === 0)).toEqual([]);
  expect(statuses).toEqual(["connecting", "connected"]);
});

test("[RPR9] with changes in all rooms at once no room keeps an outdated position, and none waits long", async () => {
  const server = strictServer();
  const { connection, statuses } = connectionTo(server);
  const rooms = Array.from({ length: 8 }, (_, index) => roomOn(server, connection, `move-${index}`, index));
  await server.clock.advance(5_000);
  let x = 0;
  const seen = new Map<string, Set<string>>();
  for (let step = 0; step < 400; step++) {
    x += 1;
    for (const room of rooms) room.presence.set({ at: x });
    await server.clock.advance(25);
    for (const { room } of rooms) seen.set(room, (seen.get(room) ?? new Set()).add(JSON.stringify(shownIn(server, room))));
  }
  for (const [room, positions] of seen) expect(positions.size, room).toBeGreaterThan(25); // About three a second, in ten seconds.
  await server.clock.advance(2_000);
  expect(rooms.map(({ room }) => shownIn(server, room))).toEqual(rooms.map(() => [[`${new TextEncoder().encode(String(x))}`]]));
  expect(statuses).toEqual(["connecting", "connected"]);
});

test("[RPR10] presence over the server's limit is reported to the application, both new and already set", async () => {
  const server = strictServer({ presenceBytesMax: 100 });
  const { connection } = connectionTo(server);
  const [early, late] = ["early", "late"].map((room, index) => roomOn(server, connection, room, index)) as [RoomConnection, RoomConnection];
  const received: unknown[] = [];
  for (const room of [early, late])
    room.on("error", (problem) => received.push([room.room, problem.kind, "bytesMax" in problem && problem.bytesMax]));
  early.presence.set({ essay: "x".repeat(200) });
  await server.clock.advance(1_000);
  late.presence.set({ essay: "x".repeat(200) });
  await server.clock.advance(1_000);
  expect(received).toEqual([
    ["early", "presence-too-large", 100],
    ["late", "presence-too-large", 100],
  ]);
  expect(server.receivedFrames.filter(({ type }) => type === "presence")).toEqual([]);
});

test("[RPR11] fields that the server skipped are sent again with their latest value", async () => {
  const server = strictServer();
  const { connection, statuses } = connectionTo(server);
  const rooms = Array.from({ length: 8 }, (_, index) => roomOn(server, connection, `late-${index}`, index));
  await server.clock.advance(5_000);
  for (const room of rooms) room.presence.set({ mood: "calm", gone: 1 });
  await server.clock.advance(1_000);
  server.skippedCount = 20;
  for (const room of rooms) room.presence.set({ mood: "busy", gone: null });
  await server.clock.advance(5_000);
  expect(rooms.map(({ room }) => shownIn(server, room))).toEqual(rooms.map(() => [[`${new TextEncoder().encode('"busy"')}`]]));
  expect(statuses).toEqual(["connecting", "connected"]);
});

test("[COH14] an application that keeps changing its rooms never exceeds the rate, and ends up in its last choice of rooms", async () => {
  const server = strictServer();
  const { connection, statuses } = connectionTo(server);
  let rooms: RoomConnection[] = [];
  for (let page = 0; page < 20; page++) {
    for (const room of rooms) room.destroy();
    rooms = Array.from({ length: 60 }, (_, index) => roomOn(server, connection, `nav-${page % 2}-${index}`, page * 100 + index));
    await server.clock.advance(2_000);
  }
  await server.clock.advance(30_000);
  expect(statuses).toEqual(["connecting", "connected"]);
  expect(rooms.filter(({ status, synced }) => status !== "connected" || !synced)).toEqual([]);
  expect([...server.connections].map(({ members }) => members.size)).toEqual([60]);
});

test("[COH15] a room that is left before its JOIN was sent is not joined", async () => {
  const server = strictServer({ controlBurst: 1, controlsPerSecond: 1 });
  const { connection } = connectionTo(server);
  const [first, second, third] = ["first", "second", "third"].map((room, index) => roomOn(server, connection, room, index)) as [
    RoomConnection,
    RoomConnection,
    RoomConnection,
  ];
  await server.clock.advance(1_500);
  second.destroy();
  await server.clock.advance(10_000);
  expect(server.receivedFrames.flatMap((frame) => (frame.type === "join" ? [frame.room] : frame.type === "leave" ? ["left"] : []))).toEqual(
    ["first", "third"],
  );
  expect([first.status, third.status]).toEqual(["connected", "connected"]);
});
