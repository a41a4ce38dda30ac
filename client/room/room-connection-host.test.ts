/** A room on a model server: the events that an application receives, and the frames that the server receives. */

import { expect, test } from "vitest";

import { decodeFrame } from "../../shared/wire/codec.ts";
import { ConnectionHost } from "../connection/connection-host.ts";
import { DeviceStore } from "../persistence/device-store.ts";
import type { FetchSnapshot, OpenSocket } from "../ports.ts";
import { MemoryStore } from "../testing/memory-store.ts";
import { App, bytes, receivedFrames, MINUTE, NOTES, serverOn } from "../testing/test-page.ts";
import { RoomConnection } from "./room-connection-host.ts";
import type { RoomConnectionOptions, StatusChange } from "./room-events.ts";

test("[ROO1] an edit is acknowledged to its author and delivered to every client, with its seq", async () => {
  const server = serverOn();
  const [ann, bob] = [new App(server, 1), new App(server, 2)];
  await server.clock.advance(1_000);
  ann.host.send(bytes(1));
  expect([ann.host.saved, ann.host.unsavedEdits]).toEqual([false, 1]);
  await server.clock.advance(100);
  expect(ann.edits).toEqual(["1:1 own"]);
  expect(bob.edits).toEqual(["1:1"]);
  expect(ann.statuses).toEqual(["connecting", "connected"]);
  expect(ann.facts).toEqual(["synced", "unsaved", "saved"]);
  expect([ann.host.seq, bob.host.seq]).toEqual([1, 1]);
});

test("[ROO2] edits made while away are kept, and sent when the room is joined again", async () => {
  const server = serverOn();
  const [ann, bob] = [new App(server, 1), new App(server, 2)];
  await server.clock.advance(1_000);
  ann.host.disconnect();
  expect(ann.host.status).toBe("disconnected");
  ann.host.send(bytes(1));
  await server.clock.advance(MINUTE);
  expect([ann.host.saved, bob.edits]).toEqual([false, []]);
  ann.host.connect();
  await server.clock.advance(1_000);
  expect([ann.host.saved, bob.edits]).toEqual([true, ["1:1"]]);
});

test("[ROO3] after a reconnect the room joins with its position and client key, and receives only what it missed", async () => {
  const server = serverOn();
  const [ann, bob] = [new App(server, 1), new App(server, 2)];
  await server.clock.advance(1_000);
  bob.host.send(bytes(1));
  await server.clock.advance(100);
  ann.host.disconnect();
  bob.host.send(bytes(2));
  await server.clock.advance(100);
  ann.host.connect();
  await server.clock.advance(1_000);
  expect(ann.edits).toEqual(["1:1", "2:2"]);
  const joins = receivedFrames(server, "join").filter(({ clientKey }) => clientKey.startsWith("key-1"));
  expect(joins.map(({ position }) => position)).toEqual([
    { epoch: 0, seq: 0 },
    { epoch: 1, seq: 1 },
  ]);
  expect(new Set(joins.map(({ clientKey }) => clientKey)).size).toBe(1);
});

test("[ROO4] an edit whose acknowledgement was lost is not ordered twice", async () => {
  const server = serverOn();
  const ann = new App(server, 1);
  await server.clock.advance(1_000);
  server.commits = false;
  ann.host.send(bytes(1));
  await server.clock.advance(100);
  server.cut();
  server.commit(NOTES);
  server.commits = true;
  await server.clock.advance(2_000);
  expect(server.room(NOTES).log).toHaveLength(1);
  expect([ann.host.saved, ann.edits]).toEqual([true, ["1:1 own"]]);
});

test("[ROO5] edits sent to an owner that died are sent again to the next", async () => {
  const server = serverOn();
  const ann = new App(server, 1);
  await server.clock.advance(1_000);
  server.commits = false;
  for (const value of [1, 2, 3]) ann.host.send(bytes(value));
  await server.clock.advance(100);
  server.room(NOTES).failOver();
  server.commits = true;
  ann.host.send(bytes(4));
  await server.clock.advance(1_000);
  expect(ann.edits).toEqual(["1:1 own", "2:2 own", "3:3 own", "4:4 own"]);
});

test("[ROO6] the room is synced once everything up to the head is delivered, and not while away", async () => {
  const server = serverOn();
  const ann = new App(server, 1);
  await server.clock.advance(1_000);
  for (let value = 0; value < 35; value++) ann.host.send(bytes(value));
  await server.clock.advance(5_000);
  const bob = new App(server, 2);
  bob.host.on("synced", (synced) => bob.facts.push(`at ${bob.edits.length}`, String(synced)));
  await server.clock.advance(1_000);
  expect(bob.facts).toEqual(["synced", "at 35", "true"]);
  server.reachable = false;
  server.cut();
  await server.clock.advance(10);
  expect(bob.host.synced).toBe(false);
});

test("[ROO7] a position that the log no longer reaches is replaced by the snapshot's; unsent edits survive", async () => {
  const server = serverOn();
  server.snapshotOf = (edits) => bytes(...edits.map(({ payload }) => payload[0]!));
  const ann = new App(server, 1);
  await server.clock.advance(1_000);
  for (const value of [1, 2, 3]) ann.host.send(bytes(value));
  await server.clock.advance(1_000);
  server.room(NOTES).trimmedThrough = 2;

  const bob = new App(server, 2);
  const snapshots: string[] = [];
  bob.host.on("snapshot", ({ position, payload }) => snapshots.push(`${position.seq}: ${payload}`));
  bob.host.send(bytes(9));
  await server.clock.advance(1_000);
  expect(snapshots).toEqual(["2: 1,2"]);
  expect(bob.edits).toEqual(["3:3", "4:9 own"]);
  expect([bob.host.synced, bob.host.saved]).toEqual([true, true]);
});

test("[ROO7] while the snapshot is unavailable edits are still accepted, and the application is notified", async () => {
  const server = serverOn();
  const ann = new App(server, 1);
  await server.clock.advance(1_000);
  for (const value of [1, 2, 3]) ann.host.send(bytes(value));
  await server.clock.advance(1_000);
  server.room(NOTES).trimmedThrough = 2;
  server.snapshotsAvailable = false;
  const bob = new App(server, 2);
  bob.host.send(bytes(9));
  await server.clock.advance(3_000);
  expect(ann.edits.at(-1)).toBe("4:9");
  expect(bob.problems[0]?.kind).toBe("snapshot-unavailable");
  expect(bob.host.synced).toBe(false);
  server.snapshotsAvailable = true;
  await server.clock.advance(30_000);
  expect([bob.host.synced, bob.host.saved, bob.host.seq]).toEqual([true, true, 4]);
});

test("[ROO29] a client that waits for a snapshot learns that the room is deleted, even from a gateway that did not know it", async () => {
  const server = serverOn();
  const ann = new App(server, 1);
  await server.clock.advance(1_000);
  ann.host.send(bytes(1));
  await server.clock.advance(1_000);
  server.room(NOTES).trimmedThrough = 1;
  server.snapshotsAvailable = false;
  const bob = new App(server, 2);
  await server.clock.advance(3_000);
  expect(bob.host.status).toBe("connected");
  server.snapshotsAvailable = "deleted";
  server.refuseJoins = { reason: "deleted", retryAfterMs: 0 };
  await server.clock.advance(MINUTE);
  expect(bob.host.status).toBe("stopped");
  expect(bob.refusals).toMatchObject([{ kind: "room-refused", reason: "deleted" }]);
});

test("[ROO7] a lost connection or a left room aborts the snapshot download", async () => {
  const server = serverOn();
  const ann = new App(server, 1);
  await server.clock.advance(1_000);
  for (const value of [1, 2, 3]) ann.host.send(bytes(value));
  await server.clock.advance(1_000);
  server.room(NOTES).trimmedThrough = 2;
  const downloads: AbortSignal[] = [];
  const world = server.world.bind(server);
  const fetchSnapshot: FetchSnapshot = (_url, _token, signal) =>
    new Promise((_, failed) => {
      downloads.push(signal);
      signal.addEventListener("abort", () => failed(signal.reason));
    });
  server.world = (seed) => ({ ...world(seed), fetchSnapshot });
  const bob = new App(server, 2);
  await server.clock.advance(5_000);
  expect(downloads.map(({ aborted }) => aborted)).toEqual([false]);
  server.cut();
  expect(downloads.map(({ aborted }) => aborted)).toEqual([true]);
  await server.clock.advance(MINUTE);
  expect(downloads.map(({ aborted }) => aborted)).toEqual([true, false]);
  bob.host.destroy();
  expect(downloads.map(({ aborted }) => aborted)).toEqual([true, true]);
  await server.clock.advance(MINUTE);
  expect([downloads.length, bob.problems]).toEqual([2, []]);
});

test("[ROO8] when a log lost its end the application is notified first, then the room starts again", async () => {
  const server = serverOn();
  server.snapshotOf = () => bytes(1);
  const ann = new App(server, 1);
  const reported: string[] = [];
  ann.host.on("rolled-back", () => reported.push("rolled back"));
  ann.host.on("snapshot", () => reported.push("snapshot"));
  await server.clock.advance(1_000);
  for (const value of [1, 2, 3]) ann.host.send(bytes(value));
  await server.clock.advance(1_000);
  server.room(NOTES).rollBackTo(1);
  server.room(NOTES).trimmedThrough = 1;
  server.cut();
  await server.clock.advance(5_000);
  expect(reported).toEqual(["rolled back", "snapshot"]);
  expect([ann.host.seq, ann.host.synced]).toEqual([1, true]);
  ann.host.send(bytes(4));
  await server.clock.advance(1_000);
  expect([ann.host.saved, server.room(NOTES).log.length]).toEqual([true, 2]);
});

test("[ROO8] the room starts again even when the connection is lost before the snapshot arrives", async () => {
  const server = serverOn();
  server.snapshotOf = () => bytes(1);
  const ann = new App(server, 1);
  const reported: string[] = [];
  ann.host.on("rolled-back", () => reported.push("rolled back"));
  ann.host.on("snapshot", ({ position }) => reported.push(`snapshot at ${position.seq}`));
  await server.clock.advance(1_000);
  for (const value of [1, 2, 3]) ann.host.send(bytes(value));
  await server.clock.advance(1_000);
  server.room(NOTES).rollBackTo(1);
  server.room(NOTES).trimmedThrough = 1;
  server.snapshotsAvailable = false;
  server.cut();
  await server.clock.advance(5_000);
  expect(reported).toEqual(["rolled back"]);
  server.cut();
  server.snapshotsAvailable = true;
  await server.clock.advance(30_000);
  expect(
    receivedFrames(server, "join")
      .map(({ position }) => position.seq)
      .slice(0, 3),
  ).toEqual([0, 3, 0]);
  expect(reported).toEqual(["rolled back", "snapshot at 1"]);
  expect([ann.host.seq, ann.host.synced]).toEqual([1, true]);
});

test("[ROO9] a join with a temporary rejection is retried, a permanent rejection is reported", async () => {
  const server = serverOn();
  server.refuseJoins = { reason: "room-full", retryAfterMs: 500 };
  const ann = new App(server, 1);
  await server.clock.advance(1_000);
  expect([ann.host.status, ann.refusals]).toEqual(["waiting", []]);
  server.refuseJoins = undefined;
  await server.clock.advance(2_000);
  expect(ann.host.status).toBe("connected");

  server.refuseJoins = { reason: "not-allowed", retryAfterMs: 0 };
  const bob = new App(server, 2);
  await server.clock.advance(5_000);
  expect(bob.host.status).toBe("stopped");
  expect(bob.refusals).toEqual([{ kind: "room-refused", reason: "not-allowed", message: "not now" }]);
  expect(receivedFrames(server, "join").filter(({ clientKey }) => clientKey.startsWith("key-2"))).toHaveLength(1);
});

test("[ROO10] a token that the server rejects ends the room, without an endless loop", async () => {
  const server = serverOn();
  const ann = new App(server, 1);
  await server.clock.advance(1_000);
  server.cut(4101);
  await server.clock.advance(10 * MINUTE);
  expect(ann.host.status).toBe("stopped");
  expect(ann.refusals.map(({ kind }) => kind)).toEqual(["connection-refused"]);
  expect(receivedFrames(server, "hello")).toHaveLength(1);
});

test("[ROO11] after a silence beyond the dedupe window sent edits go out under the old key and the rest under a new one", async () => {
  const server = serverOn();
  const ann = new App(server, 1);
  await server.clock.advance(1_000);
  server.commits = false;
  ann.host.send(bytes(1));
  await server.clock.advance(100);
  ann.host.disconnect();
  ann.host.send(bytes(2));
  await server.clock.advance(6 * MINUTE);
  server.room(NOTES).failOver();
  server.commits = true;
  ann.host.connect();
  await server.clock.advance(2_000);
  const { log } = server.room(NOTES);
  expect(log.map(({ payload }) => `${payload}`)).toEqual(["1", "2"]);
  expect(log.map(({ counter }) => counter)).toEqual([1, 1]);
  expect(log[0]!.client).not.toBe(log[1]!.client);
  expect([ann.host.saved, ann.edits]).toEqual([true, ["1:1 own", "2:2 own"]]);
});

test("[ROO12] revoked rights end the room", async () => {
  const server = serverOn();
  const ann = new App(server, 1);
  await server.clock.advance(1_000);
  server.send({ type: "left", channel: 1, reason: "rights-revoked" });
  await server.clock.advance(100);
  expect([ann.host.status, ann.refusals[0]?.kind]).toEqual(["stopped", "room-refused"]);
});

test("[ROO13] edits that a listener sends follow the edits made before them", async () => {
  const server = serverOn();
  const [ann, bob] = [new App(server, 1), new App(server, 2)];
  await server.clock.advance(1_000);
  bob.host.on("edit", ({ own, payload }) => {
    if (!own) bob.host.send(bytes(payload[0]! + 100));
  });
  for (const value of [1, 2, 3]) ann.host.send(bytes(value));
  await server.clock.advance(1_000);
  expect(ann.edits.map((edit) => edit.split(":")[1])).toEqual(["1 own", "2 own", "3 own", "101", "102", "103"]);
});

test("[ROO14] a destroyed room emits nothing more and leaves nothing running", async () => {
  const server = serverOn();
  const ann = new App(server, 1);
  await server.clock.advance(1_000);
  ann.host.send(bytes(1));
  ann.host.destroy();
  const reported = ann.facts.length;
  await server.clock.advance(MINUTE);
  expect([server.clock.pending, server.connections.size, ann.facts.length]).toEqual([0, 0, reported]);
});

test.each(["destroy", "disconnect"] as const)(
  "[ROO30] an edit sent in a listener goes out before its %s() ends the connection",
  async (method) => {
    const server = serverOn();
    const world = server.world(1);
    const events: (string | undefined)[] = [];
    const openSocket: OpenSocket = (...args) => {
      const socket = world.openSocket(...args);
      return {
        send: (frame) => {
          events.push(decodeFrame(frame)?.type);
          socket.send(frame);
        },
        close: () => {
          events.push("close");
          socket.close();
        },
      };
    };
    const room = new RoomConnection({ url: "ws://h", token: "t", room: NOTES }, { ...world, openSocket });
    await server.clock.advance(1_000);
    room.once("presence", () => {
      room.send(bytes(1));
      room[method]();
    });
    room.presence.set({ cursor: { x: 1, y: 1 } }); // The event comes from this client, not from the connection.
    await server.clock.advance(MINUTE);
    expect(events).toEqual(["hello", "join", "edit", "leave", "close"]);
  },
);

test("[ROO15] a room whose rights changed is joined again on the same connection", async () => {
  const server = serverOn();
  const ann = new App(server, 1);
  await server.clock.advance(1_000);
  server.rights = { read: true, write: false };
  server.send({ type: "left", channel: 1, reason: "rights-changed" });
  await server.clock.advance(1_000);
  expect([ann.host.status, ann.host.rights.write, server.connections.size]).toEqual(["connected", false, 1]);
  ann.host.send(bytes(1));
  expect(ann.problems).toMatchObject([{ kind: "read-only" }]);
  server.rights = { read: true, write: true };
  server.send({ type: "left", channel: 1, reason: "rights-changed" });
  await server.clock.advance(1_000);
  expect([ann.edits, ann.host.saved]).toEqual([["1:1 own"], true]);
  expect(receivedFrames(server, "hello")).toHaveLength(1);
});

test("[ROO31] a user who is banned from the room for a time sees nobody, keeps the edits, and returns by itself", async () => {
  const server = serverOn();
  const [ann, bob] = [new App(server, 1), new App(server, 2)];
  await server.clock.advance(1_000);
  expect(ann.host.participants.size).toBe(2);
  server.refuseJoins = { reason: "not-allowed", retryAfterMs: MINUTE };
  server.send({ type: "left", channel: 1, reason: "rights-changed" });
  await server.clock.advance(10_000);
  ann.host.send(bytes(1));
  expect([ann.host.status, ann.host.outage?.reason, ann.host.participants.size]).toEqual(["waiting", "not-allowed", 0]);
  server.refuseJoins = undefined;
  await server.clock.advance(2 * MINUTE);
  expect([ann.host.status, ann.host.saved, ann.refusals, bob.edits]).toEqual(["connected", true, [], ["1:1"]]);
});

test("[ROO19] a room that was left permanently stays left, even if other methods are called", async () => {
  const server = serverOn();
  const ann = new App(server, 1);
  await server.clock.advance(1_000);
  ann.host.destroy();
  ann.host.connect();
  ann.host.send(bytes(1));
  ann.host.destroy();
  await server.clock.advance(MINUTE);
  expect([server.connections.size, server.clock.pending, receivedFrames(server, "edit")]).toEqual([0, 0, []]);
});

test("[ROO20] a room that is left by a listener of its stored edits stays left, and another room replaces it", async () => {
  const server = serverOn();
  const connection = new ConnectionHost({ url: "ws://h", token: "t" }, server.world(1));
  const shared = { connection, url: undefined, token: undefined } as unknown as Partial<RoomConnectionOptions>;
  const left = new App(server, 2, { ...shared, store: new DeviceStore(new MemoryStore()) });
  const since: App[] = [];
  left.host.on("restored", () => {
    left.host.disconnect();
    since.push(new App(server, 3, shared));
  });
  await server.clock.advance(1_000);
  since[0]!.host.send(bytes(1));
  await server.clock.advance(1_000);
  expect([left.host.status, since[0]!.host.status, since[0]!.edits, receivedFrames(server, "join").length]).toEqual([
    "disconnected",
    "connected",
    ["1:1 own"],
    1,
  ]);
});

test("[ROO21] an edit sent inside a `seq` listener counts as not saved and not stored, even if other events follow in the same turn", async () => {
  const server = serverOn();
  const ann = new App(server, 1);
  const seen: unknown[] = [];
  ann.host.on("seq", (seq) => {
    if (seq === 1) ann.host.send(bytes(2));
    seen.push([ann.host.saved, ann.host.stored, ann.host.unsavedEdits]);
  });
  await server.clock.advance(1_000);
  ann.host.send(bytes(1));
  await server.clock.advance(1_000);
  expect(seen).toEqual([
    [false, false, 1],
    [true, true, 0],
  ]);
  expect([ann.facts, ann.edits]).toEqual([
    ["synced", "unsaved", "saved"],
    ["1:1 own", "2:2 own"],
  ]);
});

test("[ROO25] while the room waits for the server the application learns the reason and the time of the next attempt", async () => {
  const server = serverOn();
  const ann = new App(server, 1);
  await server.clock.advance(1_000);
  const reported: StatusChange[] = [];
  ann.host.on("status", (change) => reported.push(change));
  server.cut();
  await server.clock.advance(0);
  expect(reported).toEqual([{ status: "waiting", why: "the connection was lost (close code 1006)", retryInMs: expect.any(Number) }]);
  expect(ann.host.outage?.retryInMs).toBeGreaterThan(0);
  await server.clock.advance(30_000);
  expect([reported.at(-1), ann.host.outage]).toEqual([{ status: "connected" }, undefined]);
});

test("[ROO26] while the room admits no client the application receives each reason once and each wait, until the join", async () => {
  const server = serverOn();
  server.refuseJoins = { reason: "room-full", retryAfterMs: 10_000 };
  const ann = new App(server, 1);
  const reported: StatusChange[] = [];
  ann.host.on("status", (change) => reported.push(change));
  await server.clock.advance(MINUTE);
  const outage = { why: "not now", retryInMs: expect.any(Number), reason: "room-full" };
  const refused = receivedFrames(server, "join").length;
  expect(refused).toBeGreaterThan(3);
  expect(reported).toEqual(Array.from({ length: refused }, () => ({ status: "waiting", ...outage })));
  expect(reported.filter(({ retryInMs }) => retryInMs! < 10_000)).toEqual([]);
  expect(ann.host.outage).toEqual(outage);
  expect(ann.problems).toEqual([
    {
      kind: "room-unavailable",
      reason: "room-full",
      retryInMs: expect.any(Number),
      message: "cannot join the room now, will retry: not now",
    },
  ]);
  server.refuseJoins = { reason: "unavailable", retryAfterMs: 1_000 };
  await server.clock.advance(MINUTE);
  expect(ann.problems.slice(1)).toMatchObject([{ kind: "room-unavailable", reason: "unavailable" }]);
  expect(ann.host.outage?.reason).toBe("unavailable");
  server.refuseJoins = undefined;
  await server.clock.advance(5_000);
  expect([reported.at(-1), ann.host.outage]).toEqual([{ status: "connected" }, undefined]);
});

test("[ROO26] connect() sends no JOIN before the time that the server named is over", async () => {
  const server = serverOn();
  server.refuseJoins = { reason: "room-full", retryAfterMs: 10_000 };
  const ann = new App(server, 1);
  await server.clock.advance(1_000);
  server.refuseJoins = undefined;
  ann.host.connect();
  await server.clock.advance(5_000);
  expect([ann.host.status, receivedFrames(server, "join").length]).toEqual(["waiting", 1]);
});

test("[ROO26] a connection that is lost while the room admits no client is reported as a connection error", async () => {
  const server = serverOn();
  server.refuseJoins = { reason: "room-full", retryAfterMs: 10_000 };
  const ann = new App(server, 1);
  await server.clock.advance(1_000);
  const reported: StatusChange[] = [];
  ann.host.on("status", (change) => reported.push(change));
  server.reachable = false;
  server.cut();
  await server.clock.advance(0);
  expect(ann.host.outage?.why).toBe("the connection was lost (close code 1006)");
  expect(ann.host.outage?.reason).toBeUndefined();
  expect(reported).toMatchObject([{ status: "waiting", why: "the connection was lost (close code 1006)" }]);
});

test("[ROO22] each listener receives the statuses in order, even if an earlier listener ends the connection", async () => {
  const server = serverOn();
  const connection = new ConnectionHost({ url: "ws://h", token: "t" }, server.world(1));
  const ann = new App(server, 2, { connection, url: undefined, token: undefined } as unknown as Partial<RoomConnectionOptions>);
  await server.clock.advance(1_000);
  ann.host.disconnect();
  const reported: string[] = [];
  ann.host.once("status", () => connection.disconnect());
  ann.host.on("status", ({ status }) => reported.push(status));
  ann.host.connect();
  expect(reported).toEqual(["connecting", "disconnected", "connecting"]);
});

test.each([
  ["a connection of its own", () => ({})],
  [
    "a shared connection",
    (server: ReturnType<typeof serverOn>) =>
      ({
        connection: new ConnectionHost({ url: "ws://h", token: "t" }, server.world(9)),
        url: undefined,
        token: undefined,
      }) as unknown as Partial<RoomConnectionOptions>,
  ],
])("[ROO23] on %s, a client that connects again in its `disconnected` listener is in the room again", async (_, optionsOn) => {
  const server = serverOn();
  const ann = new App(server, 1, optionsOn(server));
  await server.clock.advance(1_000);
  ann.host.on("status", ({ status }) => status === "disconnected" && ann.host.connect());
  ann.host.disconnect();
  ann.host.send(bytes(1));
  await server.clock.advance(1_000);
  expect([ann.host.status, ann.edits, ann.host.saved]).toEqual(["connected", ["1:1 own"], true]);
  expect(receivedFrames(server, "leave")).toHaveLength(1);
});

test("[ROO23] a room that is left permanently stays left, even if a status listener calls connect", async () => {
  const server = serverOn();
  const ann = new App(server, 1);
  await server.clock.advance(1_000);
  ann.host.on("status", () => ann.host.connect());
  ann.host.destroy();
  await server.clock.advance(MINUTE);
  expect([server.connections.size, server.clock.pending]).toEqual([0, 0]);
});

test.each([
  ["permanently", "destroy"],
  ["temporarily", "disconnect"],
] as const)("[ROO24] edits sent immediately before the room is left %s go out before the LEAVE", async (_, leave) => {
  const server = serverOn();
  const connection = new ConnectionHost({ url: "ws://h", token: "t" }, server.world(3)); // The connection stays open, because the model loses frames on their way when a connection closes.
  const [ann, bob] = [
    new App(server, 1, { connection, url: undefined, token: undefined } as unknown as Partial<RoomConnectionOptions>),
    new App(server, 2),
  ];
  await server.clock.advance(1_000);
  ann.host.send(bytes(1));
  ann.host[leave]();
  await server.clock.advance(1_000);
  expect(bob.edits).toEqual(["1:1"]);
});

test("[ROO27] a read-only client submits no tentative edits of others, and reports those that were never committed", async () => {
  const server = serverOn();
  const ann = new App(server, 1);
  await server.clock.advance(1_000);
  server.rights = { read: true, write: false };
  const viewer = new App(server, 2);
  const unconfirmed: string[] = [];
  viewer.host.on("unconfirmed", (edits) => unconfirmed.push(...edits.map(({ payload }) => `${payload}`)));
  await server.clock.advance(1_000);
  server.setSaving(NOTES, "saving");
  ann.host.send(bytes(7));
  await server.clock.advance(1_000);
  ann.host.destroy();
  server.room().failOver();
  server.setSaving(NOTES, "saved");
  await server.clock.advance(MINUTE);
  expect([viewer.tentative, unconfirmed]).toEqual([["7"], ["7"]]);
  expect(receivedFrames(server, "resubmit")).toEqual([]);
});

test.each(["committed", "handed back"])(
  "[ROO28] an edit made on top of others' tentative edits is saved once those are %s",
  async (outcome) => {
    const server = serverOn();
    server.takesResubmits = false;
    const [ann, bob] = [new App(server, 1), new App(server, 2, { store: new DeviceStore(new MemoryStore()) })];
    await server.clock.advance(1_000);
    server.setSaving(NOTES, "saving");
    ann.host.send(bytes(1));
    await server.clock.advance(100);
    bob.host.send(bytes(2));
    await server.clock.advance(1_000);
    expect([bob.host.saved, bob.host.stored], "kept, and of no use by itself").toEqual([false, false]);
    if (outcome === "handed back") {
      ann.host.destroy();
      server.room().failOver();
      server.cut();
    }
    server.setSaving(NOTES, "saved");
    const reported: unknown[] = [];
    bob.host.on("unconfirmed", (edits) => reported.push(edits.length));
    for (const name of ["saved", "stored"] as const) bob.host.on(name, (is) => reported.push([name, is, bob.host.unsavedEdits]));
    await server.clock.advance(MINUTE);
    const settled = [
      ["stored", true, 0],
      ["saved", true, 0],
    ];
    expect(reported).toEqual(outcome === "committed" ? settled : [1, ...settled]);
  },
);
