/** Rooms on a shared connection that moves to another gateway and whose token is renewed. */

import { expect, test } from "vitest";

import type { ClientId } from "../../shared/ids.ts";
import { TokenBucket } from "../../shared/limits/token-bucket.ts";
import { CLOSE } from "../../shared/wire/close-codes.ts";
import type { ClientFrame, Limits } from "../../shared/wire/frames.ts";
import { DeviceStore } from "../persistence/device-store.ts";
import type { NetworkChange, OpenSocket, WatchNetwork } from "../ports.ts";
import { RoomConnection } from "../room/room-connection-host.ts";
import type { RoomConnectionOptions } from "../room/room-events.ts";
import { MemoryStore } from "../testing/memory-store.ts";
import { LIMITS } from "../testing/model-connection.ts";
import type { ModelServer } from "../testing/model-server.ts";
import { App, bytes, receivedFrames, MINUTE, NOTES, serverOn } from "../testing/test-page.ts";
import { ConnectionHost } from "./connection-host.ts";
import { serverFrameOf } from "./connection-messages.ts";

/** Options of a room that shares a connection instead of opening its own. */
function over(connection: ConnectionHost): Partial<RoomConnectionOptions> {
  return { connection, url: undefined, token: undefined } as unknown as Partial<RoomConnectionOptions>;
}

test("[COH1] several rooms share one connection and its rates, and the connection forgets a room that was left", async () => {
  const server = serverOn();
  server.limits = LIMITS;
  const connection = new ConnectionHost({ url: "ws://h", token: "t" }, server.world(1));
  const shared = over(connection);
  const [notes, tasks] = [new App(server, 1, shared), new App(server, 2, { ...shared, room: "tasks" })];
  await server.clock.advance(1_000);
  expect(server.connections.size).toBe(1);
  for (let value = 0; value < 40; value++) {
    notes.host.send(bytes(value));
    tasks.host.send(bytes(value));
  }
  await server.clock.advance(50);
  expect(receivedFrames(server, "edit").length).toBeLessThanOrEqual(LIMITS.editBurst);
  await server.clock.advance(30_000);
  expect([notes.host.saved, tasks.host.saved]).toEqual([true, true]);
  notes.host.disconnect();
  tasks.host.send(bytes(7));
  await server.clock.advance(1_000);
  expect([notes.host.status, tasks.host.status, tasks.host.saved, server.connections.size]).toEqual(["disconnected", "connected", true, 1]);
});

/** Two rooms on one connection. The JOIN of the second is sent and not answered yet. */
async function askForTasks() {
  const server = serverOn();
  const connection = new ConnectionHost({ url: "ws://h", token: "t" }, server.world(1));
  const shared = over(connection);
  const notes = new App(server, 1, shared);
  await server.clock.advance(1_000);
  const tasks = new App(server, 2, { ...shared, room: "tasks" });
  await untilReceived(server, "join", 2);
  return { server, shared, notes, tasks };
}

/** Stops as soon as the server has received the frames, while its answers are on their way. */
async function untilReceived(server: ModelServer, type: ClientFrame["type"], count: number): Promise<void> {
  for (let step = 0; step < 100_000 && receivedFrames(server, type).length < count; step++) await server.clock.advance(0.01);
}

test("[COH11] a room that is left before its JOIN is answered is left on the server too, once", async () => {
  const { server, notes, tasks } = await askForTasks();
  tasks.host.disconnect();
  await server.clock.advance(1_000);
  expect(receivedFrames(server, "leave").map(({ channel }) => channel)).toEqual([2]);
  notes.host.send(bytes(1));
  tasks.host.connect();
  await server.clock.advance(1_000);
  expect([notes.host.saved, notes.statuses, tasks.host.status, receivedFrames(server, "leave").length]).toEqual([
    true,
    ["connecting", "connected"],
    "connected",
    1,
  ]);
});

test.each(["the same", "another"])("[COH11] a room that is wanted again before its JOIN is answered stays joined, by %s", async (whose) => {
  const { server, shared, tasks } = await askForTasks();
  tasks.host.disconnect();
  if (whose === "the same") tasks.host.connect();
  const wanting = whose === "the same" ? tasks : new App(server, 3, { ...shared, room: "tasks" });
  await server.clock.advance(1_000);
  expect([wanting.host.status, receivedFrames(server, "join").length, receivedFrames(server, "leave")]).toEqual(["connected", 3, []]);
});

test("[COH11] a room that is left during a rejoin is left once, and a room that its own listener leaves is not joined again", async () => {
  const { server, tasks } = await askForTasks();
  tasks.host.send(bytes(1));
  await server.clock.advance(1_000);
  server.room("tasks").trimmedThrough = 1;
  const resync = { type: "resync-required", channel: 2, reason: "other-epoch", head: { epoch: 1 as never, seq: 1 as never } } as const;
  server.send(resync);
  await untilReceived(server, "join", 3);
  tasks.host.disconnect();
  await server.clock.advance(1_000);
  expect([receivedFrames(server, "join").length, receivedFrames(server, "leave").length]).toEqual([3, 1]);

  tasks.host.connect();
  tasks.host.on("snapshot", () => tasks.host.disconnect());
  await server.clock.advance(1_000);
  server.send(resync);
  await server.clock.advance(1_000);
  expect([tasks.host.status, receivedFrames(server, "join").length, receivedFrames(server, "leave").length]).toEqual([
    "disconnected",
    4,
    2,
  ]);
});

test("[COH11] the client leaves a room on the server when a rejoin is rejected", async () => {
  const { server, tasks } = await askForTasks();
  await server.clock.advance(1_000);
  server.refuseJoins = { reason: "room-full", retryAfterMs: 10_000 };
  server.send({ type: "resync-required", channel: 2, reason: "too-old", head: { epoch: 1 as never, seq: 0 as never } });
  await server.clock.advance(MINUTE);
  expect([tasks.host.status, receivedFrames(server, "leave")]).toEqual(["waiting", []]);
  tasks.host.disconnect();
  await server.clock.advance(1_000);
  expect(receivedFrames(server, "leave").map(({ channel }) => channel)).toEqual([2]);
});

test("[COH2] a second member of a room uses an additional connection, which closes when its last room is left", async () => {
  const server = serverOn();
  const connection = new ConnectionHost({ url: "ws://h", token: "t" }, server.world(1));
  const shared = (seed: number): RoomConnection => new RoomConnection({ connection, room: NOTES }, server.world(seed));
  const [first, second, third] = [shared(1), shared(2), shared(3)];
  await server.clock.advance(1_000);
  expect([first, second, third].map(({ status }) => status)).toEqual(["connected", "connected", "connected"]);
  expect([server.connections.size, first.participants.size]).toEqual([3, 3]);
  second.send(bytes(7));
  await server.clock.advance(1_000);
  expect([first.seq, second.seq, second.saved, third.seq]).toEqual([1, 1, true, 1]);

  second.destroy();
  await server.clock.advance(1_000);
  expect([server.connections.size, third.status]).toEqual([2, "connected"]);
  connection.disconnect();
  await server.clock.advance(1_000);
  expect([server.connections.size, first.status, third.status]).toEqual([0, "disconnected", "disconnected"]);
  connection.connect();
  await server.clock.advance(1_000);
  expect([server.connections.size, first.status, third.status]).toEqual([2, "connected", "connected"]);
  first.destroy();
  const fourth = shared(4);
  await server.clock.advance(1_000);
  expect([server.connections.size, fourth.status], "the first connection has the room free again").toEqual([2, "connected"]);
  for (const room of [third, fourth]) room.destroy();
  connection.disconnect();
  await server.clock.advance(MINUTE);
  expect([server.connections.size, server.clock.pending]).toEqual([0, 0]);
});

test("[COH24] a connection that is disconnected while a room opens its store stays disconnected", async () => {
  const server = serverOn();
  const connection = new ConnectionHost({ url: "ws://h", token: "t" }, server.world(1));
  const room = new RoomConnection({ connection, room: NOTES, store: new DeviceStore(new MemoryStore()) }, server.world(2));
  connection.disconnect();
  await server.clock.advance(MINUTE);
  expect([connection.status, room.status, server.connections.size]).toEqual(["disconnected", "disconnected", 0]);
  connection.connect();
  await server.clock.advance(1_000);
  expect([room.status, room.stored]).toEqual(["connected", true]);
});

test("[COH23] a connection reports how its socket closed; null if this client closed it", async () => {
  const server = serverOn();
  const connection = new ConnectionHost({ url: "ws://h", token: () => "t.o.k" }, server.world(1));
  const closes: unknown[] = [];
  connection.on("close", (close) => closes.push(close?.code ?? null));
  connection.connect();
  await server.clock.advance(1_000);
  server.send({ type: "going-away", reconnectAfterMs: 5 });
  await server.clock.advance(1_000);
  expect([closes, connection.status], "a move to another gateway closes no connection in use").toEqual([[], "connected"]);
  server.cut();
  await server.clock.advance(10_000);
  server.cut(CLOSE.overloaded.code);
  await server.clock.advance(MINUTE);
  connection.disconnect();
  await server.clock.advance(1_000);
  expect(closes).toEqual([1006, CLOSE.overloaded.code, null]);
});

test("[COH10] destroying a room long after it was left does not affect its successor", async () => {
  const server = serverOn();
  const connection = new ConnectionHost({ url: "ws://h", token: "t" }, server.world(1));
  const shared = over(connection);
  const before = new App(server, 1, shared);
  await server.clock.advance(1_000);
  before.host.disconnect();
  const since = new App(server, 2, shared);
  await server.clock.advance(1_000);
  before.host.destroy();
  server.cut();
  await server.clock.advance(MINUTE);
  since.host.send(bytes(1));
  await server.clock.advance(1_000);
  expect([since.host.status, since.edits]).toEqual(["connected", ["1:1 own"]]);
});

test.each(["destroyed", "left", "left, wanted again and left"])(
  "[COH12] a successor that replaces a room %s in the room's own listener joins after the LEAVE",
  async (how) => {
    const server = serverOn();
    const connection = new ConnectionHost({ url: "ws://h", token: "t" }, server.world(1));
    const shared = over(connection);
    const before = new App(server, 1, shared);
    const other = new App(server, 5);
    await server.clock.advance(1_000);
    let after: App | undefined;
    before.host.on("saved", (saved) => {
      if (!saved || after !== undefined) return;
      if (how === "destroyed") before.host.destroy();
      else before.host.disconnect();
      if (how === "left, wanted again and left") {
        before.host.connect();
        before.host.disconnect();
      }
      after = new App(server, 2, shared);
    });
    before.host.send(bytes(1));
    await server.clock.advance(1_000);
    other.host.send(bytes(2));
    await server.clock.advance(1_000);
    after!.host.send(bytes(3));
    await server.clock.advance(1_000);
    expect([after!.host.status, after!.host.saved, after!.edits]).toEqual(["connected", true, ["1:1", "2:2", "3:3 own"]]);
    expect(server.receivedFrames.filter(({ type }) => type === "join" || type === "leave").map(({ type }) => type)).toEqual([
      "join",
      "join",
      "leave",
      "join",
    ]);
  },
);

test("[COH12] a room that a listener leaves and enters again during a rejoin sends its JOIN after the LEAVE", async () => {
  const { server, tasks } = await askForTasks();
  tasks.host.send(bytes(1));
  await server.clock.advance(1_000);
  server.room("tasks").trimmedThrough = 1;
  const before = server.receivedFrames.length;
  tasks.host.once("snapshot", () => {
    tasks.host.disconnect();
    tasks.host.connect();
  });
  server.send({ type: "resync-required", channel: 2, reason: "other-epoch", head: { epoch: 1 as never, seq: 1 as never } });
  await server.clock.advance(1_000);
  expect(server.receivedFrames.slice(before).flatMap(({ type }) => (type === "join" || type === "leave" ? [type] : []))).toEqual([
    "leave",
    "join",
  ]);
  expect([tasks.host.status, tasks.host.synced]).toEqual(["connected", true]);
});

test("[COH3] an ack for an unknown channel has no effect, and another client's edit is not taken for an own one", async () => {
  const server = serverOn();
  const ann = new App(server, 1);
  await server.clock.advance(1_000);
  server.send({ type: "ack", channel: 9, epoch: 1 as never, counter: 1, seq: 1 as never, count: 1 });
  server.send({
    type: "committed",
    channel: 1,
    edits: {
      epoch: 1 as never,
      firstSeq: 1 as never,
      edits: [{ client: "someone_else____" as ClientId, counter: 5, parentSeq: 0 as never, payload: bytes(8) }],
    },
  });
  await server.clock.advance(100);
  expect([ann.edits, ann.host.status]).toEqual([["1:8"], "connected"]);
});

test("[COH4] when a gateway announces its shutdown the next connection opens before the old one closes, and no edit is lost or applied twice", async () => {
  const server = serverOn();
  const [ann, bob] = [new App(server, 1), new App(server, 2)];
  await server.clock.advance(1_000);
  const [old] = server.connections;
  let typed = 0;
  const type = async (ms: number): Promise<void> => {
    for (let passed = 0; passed < ms; passed += 5) {
      ann.host.send(bytes(++typed % 256));
      await server.clock.advance(5);
    }
  };
  await type(100);
  server.send({ type: "going-away", reconnectAfterMs: 500 });
  await type(450);
  expect(server.connections.has(old!), "no client moves before its time").toBe(true);
  await type(500);
  await server.clock.advance(1_000);
  expect([server.connections.has(old!), server.connections.size]).toEqual([false, 2]);
  expect(ann.edits).toEqual(Array.from({ length: typed }, (_, index) => `${index + 1}:${(index + 1) % 256} own`));
  expect(bob.edits).toHaveLength(typed);
  expect([...ann.problems, ...ann.refusals, ...bob.problems, ...bob.refusals]).toEqual([]);
  expect(ann.statuses, "away for one answer to JOIN only").toEqual(["connecting", "connected", "connecting", "connected"]);
});

test("[COH5] a connection to a closing gateway stays in use while no other gateway is available, and its end is handled like any other", async () => {
  const server = serverOn();
  const ann = new App(server, 1);
  await server.clock.advance(1_000);
  server.reachable = false;
  server.send({ type: "going-away", reconnectAfterMs: 0 });
  for (let second = 1; second <= 20; second++) {
    ann.host.send(bytes(second));
    await server.clock.advance(1_000);
    expect(ann.host.saved).toBe(true);
  }
  expect([ann.statuses, ann.problems]).toEqual([["connecting", "connected"], []]);
  server.cut(4001);
  server.reachable = true;
  await server.clock.advance(1_000);
  expect([ann.host.status, ann.edits.length, server.connections.size]).toEqual(["connected", 20, 1]);
  expect(ann.statuses).toEqual(["connecting", "connected", "waiting", "connecting", "connected"]);
});

test("[COH7] while the gateway has lost NATS the client tries another gateway; once NATS is back it keeps its connection", async () => {
  const server = serverOn();
  const ann = new App(server, 1);
  await server.clock.advance(1_000);
  const [connectionOfAnn] = server.connections;
  server.reachable = false; // The other gateways have lost NATS too.
  server.send({ type: "degraded", backbone: "lost", reconnectAfterMs: 500 });
  await server.clock.advance(5_000);
  expect([ann.host.status, server.connections.has(connectionOfAnn!)]).toEqual(["degraded", true]);
  ann.host.send(bytes(1));
  server.send({ type: "degraded", backbone: "found", reconnectAfterMs: 0 });
  server.reachable = true;
  await server.clock.advance(30_000);
  expect([ann.host.status, ann.host.saved, [...server.connections]]).toEqual(["connected", true, [connectionOfAnn]]);

  server.send({ type: "degraded", backbone: "lost", reconnectAfterMs: 500 });
  await server.clock.advance(2_000);
  expect([ann.host.status, server.connections.has(connectionOfAnn!), server.connections.size]).toEqual(["connected", false, 1]); // The client has moved.
  expect(ann.problems).toEqual([]);
});

test("[COH6] the client renews its token on the open connection", async () => {
  const server = serverOn();
  server.tokenExpiresInMs = 10_000;
  let tokens = 0;
  const ann = new App(server, 1, { token: () => `t.o.${++tokens}` } as Partial<RoomConnectionOptions>);
  await server.clock.advance(30_000);
  expect(receivedFrames(server, "renew").map(({ token }) => token)).toEqual(["t.o.2", "t.o.3", "t.o.4"]);
  expect([receivedFrames(server, "hello").length, ann.statuses]).toEqual([1, ["connecting", "connected"]]);
});

test("[COH8] a token function that returns no JWT is reported as failed, and called again", async () => {
  const server = serverOn();
  const answers: unknown[] = [
    undefined,
    { token: "t" },
    "",
    "<!doctype html><title>Sign in</title>",
    "Bearer t.o.k",
    "Unauthorized",
    "t.o.k",
  ];
  const ann = new App(server, 1, { token: () => answers.shift() as string } as Partial<RoomConnectionOptions>);
  await server.clock.advance(2 * MINUTE);
  const text = "text that is no JWT, such as a page or the answer of a proxy";
  expect(ann.problems.map(({ message }) => message)).toEqual(
    ["undefined", "object", "an empty string", text, text, text].map(
      (what) => `the application's token function returned ${what}: it must return a JWT; it is called again later`,
    ),
  );
  expect([ann.host.status, answers]).toEqual(["connected", []]);
});

test.each(["t.o.k\r\n", " t.o.k", () => "t.o.k\n"])("[COH26] white space around the token is removed (case %#)", async (token) => {
  const server = serverOn();
  const ann = new App(server, 1, { token } as Partial<RoomConnectionOptions>);
  await server.clock.advance(MINUTE);
  expect([receivedFrames(server, "hello").map((hello) => hello.token), ann.problems]).toEqual([["t.o.k"], []]);
});

test.each(["no token", " "])(
  "[COH27] a fixed token that is no JWT reaches the server, whose refusal ends the client: %j",
  async (token) => {
    const server = serverOn();
    const ann = new App(server, 1, { token });
    await server.clock.advance(MINUTE);
    expect([receivedFrames(server, "hello").map((hello) => hello.token), ann.problems]).toEqual([[token], []]);
  },
);

test("[COH16] an error of the token function is reported as text, with its cause", async () => {
  const server = serverOn();
  const failures: unknown[] = [
    new Error("backend 500"),
    new TypeError("fetch failed", { cause: new AggregateError([new Error("::1 refused"), new Error("127.0.0.1 refused")], "") }),
    "no",
    undefined,
    { message: "no session", status: 401 },
    Object.create(null),
  ];
  const token = (): string => {
    if (failures.length === 0) return "t.o.k";
    throw failures.shift();
  };
  const ann = new App(server, 1, { token } as Partial<RoomConnectionOptions>);
  await server.clock.advance(0);
  expect(ann.host.outage?.why).toBe("the application's token function failed: backend 500");
  await server.clock.advance(10 * MINUTE);
  expect(ann.problems.map(({ kind, message }) => [kind, message])).toEqual(
    ["backend 500", "fetch failed: Error: ::1 refused; Error: 127.0.0.1 refused", "no", "undefined", "no session", "[object Object]"].map(
      (what) => ["token-failed", `the application's token function failed: ${what}; it is called again later`],
    ),
  );
  expect(ann.host.status).toBe("connected");
});

test("[COH17] the client listens to the platform's network events as long as the connection is wanted", async () => {
  const server = serverOn();
  const listeners = new Set<(change: NetworkChange) => void>();
  const watchNetwork: WatchNetwork = (report) => {
    listeners.add(report);
    return () => listeners.delete(report);
  };
  const host = new ConnectionHost({ url: "ws://h", token: "t" }, { ...server.world(1), watchNetwork });
  expect(listeners.size, "not wanted yet").toBe(0);
  host.connect();
  await server.clock.advance(1_000);
  expect(listeners.size).toBe(1);
  server.reachable = false;
  server.cut("silently");
  for (const report of listeners) report("doubtful");
  await server.clock.advance(5_000);
  expect(host.outage).toBeDefined();
  await server.clock.advance(2 * MINUTE);
  server.reachable = true;
  for (const report of listeners) report("back");
  await server.clock.advance(600);
  expect(host.status).toBe("connected");
  host.disconnect();
  expect(listeners.size).toBe(0);
});

test("[COH9] the client fails once, with advice in the error, if the platform forbids a socket to the URL", async () => {
  const server = serverOn();
  const forbidding = {
    ...server.world(1),
    openSocket: () => {
      throw new Error("SecurityError");
    },
  };
  const host = new RoomConnection({ url: "ws://h", token: "t", room: NOTES } as RoomConnectionOptions, forbidding);
  const refusals: string[] = [];
  host.on("refused", ({ message }) => refusals.push(message));
  await server.clock.advance(MINUTE);
  expect([refusals.length, refusals[0]?.includes("wss:"), host.status, server.clock.pending]).toEqual([1, true, "stopped", 0]);
});

test.each([1, 3])(
  "[COH18] a connection that stalls and then delivers everything at once stays within the server's rates: %i rooms",
  async (count) => {
    const server = serverOn();
    server.limits = { ...LIMITS, silenceMsMax: 75_000, pingIntervalMs: 30_000 };
    const connection = new ConnectionHost({ url: "ws://h", token: "t" }, server.world(1));
    const shared = over(connection);
    const rooms = Array.from({ length: count }, (_, index) => new App(server, index, { ...shared, room: `room ${index}` }));
    await server.clock.advance(1_000);
    const bucket = new TokenBucket({ burst: LIMITS.editBurst, perSecond: LIMITS.editsPerSecond }, server.clock.now());
    let [arrived, refused] = [0, 0];
    const type = async (ms: number): Promise<void> => {
      for (let passed = 0; passed < ms; passed += 80) {
        rooms[(passed / 80) % count]!.host.send(bytes(1));
        for (let step = 0; step < 8; step++) {
          await server.clock.advance(10);
          const all = receivedFrames(server, "edit").length;
          for (; arrived < all; arrived++) if (!bucket.take(server.clock.now())) refused += 1;
        }
      }
    };
    await type(3_200);
    server.stalledUntil = server.clock.now() + 7_000;
    await type(7_040);
    await type(4_000);
    expect(refused).toBe(0);
    await server.clock.advance(30_000);
    expect(rooms.map(({ host }) => host.saved)).toEqual(rooms.map(() => true));
  },
);

test("[COH19] a room whose edits are not answered does not hold back other rooms", async () => {
  const server = serverOn();
  server.limits = LIMITS;
  const connection = new ConnectionHost({ url: "ws://h", token: "t" }, server.world(1));
  const shared = over(connection);
  const [notes, tasks] = [new App(server, 1, shared), new App(server, 2, { ...shared, room: "tasks" })];
  await server.clock.advance(1_000);
  server.faults = { ...server.faults, editLost: 1 };
  for (let value = 0; value < 40; value++) notes.host.send(bytes(value));
  await server.clock.advance(1_000);
  server.faults = { ...server.faults, editLost: 0 };
  tasks.host.send(bytes(1));
  await server.clock.advance(1_000);
  expect([notes.host.saved, tasks.host.saved]).toEqual([false, true]);
});

/**
 * A connection with at most 100 ms each way, a PING every half minute, and an application whose platform reports when
 * it is shown again.
 */
async function onSlowConnection(limits: Partial<Limits>) {
  const server = serverOn();
  server.faults = { ...server.faults, delayMsMax: 100 };
  server.limits = { ...LIMITS, pingIntervalMs: 30_000, silenceMsMax: 75_000, editBurst: 60, editsPerSecond: 30, ...limits };
  let show = (): void => {};
  let losesPongs = false;
  let bytesPerMs = Infinity;
  let freeAt = 0;
  let bytesPerMsDown = Infinity;
  const world = server.world(1);
  const watchNetwork: WatchNetwork = (report) => {
    show = () => report("doubtful");
    return () => {};
  };
  const openSocket: OpenSocket = (url, listener) => {
    let arrivesAt = 0;
    let isClosed = false;
    const received = (bytes: Uint8Array): void => {
      if (losesPongs && serverFrameOf(bytes)?.type === "pong") return;
      arrivesAt = Math.max(arrivesAt, world.clock.now()) + bytes.byteLength / bytesPerMsDown;
      world.clock.after(arrivesAt - world.clock.now(), () => isClosed || listener.received(bytes));
    };
    const socket = world.openSocket(url, { ...listener, received });
    const close = (): void => {
      isClosed = true;
      socket.close();
    };
    const send = (bytes: Uint8Array): void => {
      freeAt = Math.max(freeAt, world.clock.now()) + bytes.byteLength / bytesPerMs;
      world.clock.after(freeAt - world.clock.now(), () => socket.send(bytes));
    };
    return { send, close };
  };
  const connection = new ConnectionHost({ url: "ws://h", token: "t" }, { ...world, watchNetwork, openSocket });
  const ann = new App(server, 1, over(connection));
  await server.clock.advance(1_000);
  const losePongs = (isLosing: boolean): void => void (losesPongs = isLosing);
  const slowUplink = (rate: number): void => void (bytesPerMs = rate);
  const slowDownlink = (rate: number): void => void (bytesPerMsDown = rate);
  return { server, ann, losePongs, slowUplink, slowDownlink, show: () => show() };
}

test.each([
  ["edits", 1, {}],
  ["bytes", 4_000, { bytesBurst: 40_000 }],
])(
  "[COH20] %s that use up the rate after a PING are sent again when its PONG arrives, without waiting for the interval",
  async (_what, size, limits) => {
    const { server, ann, show } = await onSlowConnection(limits);
    const before = receivedFrames(server, "ping").length;
    show();
    for (let count = 0; count < 100; count++) ann.host.send(new Uint8Array(size));
    await server.clock.advance(10_000);
    expect(receivedFrames(server, "ping").length).toBeGreaterThan(before);
    expect([ann.host.saved, ann.edits.length]).toEqual([true, 100]);
  },
);

test.each<[string, Partial<Limits>]>([
  ["one control frame", { controlBurst: 1, controlsPerSecond: 1 }],
  ["two control frames", { controlBurst: 4 }],
  ["fewer bytes than a PING", { bytesBurst: LIMITS.editBytesMax }],
])("[COH21] PING and PONG do not alternate endlessly if the unconfirmed maximum is %s", async (_what, limits) => {
  const { server, ann, show } = await onSlowConnection(limits);
  show();
  ann.host.send(bytes(1));
  await server.clock.advance(10_000);
  expect(ann.host.saved).toBe(true);
  const before = receivedFrames(server, "ping").length;
  await server.clock.advance(2 * MINUTE);
  expect(receivedFrames(server, "ping").length - before).toBeLessThanOrEqual(4);
  ann.host.send(bytes(2));
  await server.clock.advance(10_000);
  expect([ann.host.saved, ann.edits.length]).toEqual([true, 2]);
});

test.each(["what is sent is held back", "no PONG comes"])(
  "[COH22] a connection on which %s for ten seconds continues once the fault is over",
  async (how) => {
    const { server, ann, losePongs } = await onSlowConnection({});
    if (how === "no PONG comes") losePongs(true);
    else server.stalledUntil = server.clock.now() + 10_000;
    for (let count = 0; count < 100; count++) ann.host.send(bytes(count));
    await server.clock.advance(9_999);
    expect(ann.host.saved).toBe(false);
    losePongs(false);
    await server.clock.advance(40_000);
    expect([ann.host.saved, ann.edits.length, ann.statuses]).toEqual([true, 100, ["connecting", "connected"]]);
    ann.host.send(bytes(100));
    await server.clock.advance(10_000);
    expect(ann.host.saved).toBe(true);
  },
);

test("[COH28] when the network fails without a sign, typing ends the connection within seconds, and a working one continues the room", async () => {
  const { server, ann } = await onSlowConnection({});
  await server.clock.advance(45_000);
  server.cut("silently");
  ann.host.send(bytes(1));
  await server.clock.advance(18_000);
  expect([ann.host.saved, ann.statuses]).toEqual([true, ["connecting", "connected", "waiting", "connecting", "connected"]]);
});

test("[COH29] a large edit on a slow uplink is sent once, even if the page is shown again meanwhile", async () => {
  const limits = { editBytesMax: 500_000, frameBytesMax: 600_000, bytesBurst: 16_000_000, bytesPerSecond: 6_000_000 };
  const { server, ann, show, slowUplink } = await onSlowConnection(limits);
  slowUplink(6);
  ann.host.send(new Uint8Array(490_000));
  for (let checks = 0; checks < 10; checks++) {
    await server.clock.advance(8_000);
    show();
  }
  await server.clock.advance(10_000);
  expect([ann.host.saved, ann.statuses]).toEqual([true, ["connecting", "connected"]]);
  expect(receivedFrames(server, "edit")).toHaveLength(1);
});

test.each([
  [6, 150_000],
  [25, 490_000],
  [12, 490_000],
])(
  "[COH30] typing while a slow downlink of %d bytes/ms carries an edit of %d bytes interrupts the connection at most once",
  async (rate, size) => {
    const limits = { editBytesMax: 500_000, frameBytesMax: 600_000, bytesBurst: 16_000_000, bytesPerSecond: 6_000_000 };
    const { server, ann, slowDownlink } = await onSlowConnection(limits);
    const bob = new App(server, 2, {});
    await server.clock.advance(1_000);
    slowDownlink(rate);
    bob.host.send(new Uint8Array(size));
    for (let typed = 0; typed < 300; typed++) {
      ann.host.send(bytes(1));
      await server.clock.advance(1_000);
    }
    await server.clock.advance(10_000);
    expect([ann.host.saved, ann.edits.some((edit) => edit.length > size)]).toEqual([true, true]);
    expect(ann.statuses.filter((status) => status === "waiting").length).toBeLessThanOrEqual(1);
  },
);

test("[COH25] the URL names the first room, and another gateway after one that sent the client away or did not answer", async () => {
  const server = serverOn();
  const connection = new ConnectionHost({ url: "ws://h", token: () => "t.o.k" }, server.world(1));
  connection.connect();
  await server.clock.advance(1_000);
  new App(server, 1, { ...over(connection), room: "notes" });
  new App(server, 2, { ...over(connection), room: "tasks" });
  await server.clock.advance(10_000);
  const requested = (): string[] => server.requestedUrls.splice(0).map((url) => url.replace(/=[0-9a-f]{4}/, "=KEY"));
  expect(requested()).toEqual(["ws://h/"]);
  server.send({ type: "going-away", reconnectAfterMs: 5 });
  await server.clock.advance(1_000);
  expect(requested(), "the gateway leaves").toEqual(["ws://h/?route=KEY-1"]);
  server.cut(CLOSE.goingAway.code);
  await server.clock.advance(20_000);
  expect(requested(), "this one leaves at once").toEqual(["ws://h/?route=KEY-2"]);
  server.cut();
  await server.clock.advance(20_000);
  expect(requested(), "a connection that worked was lost").toEqual(["ws://h/?route=KEY"]);
  server.reachable = false;
  server.cut();
  await server.clock.advance(60_000);
  const [first, ...later] = requested();
  expect([first, later[0], later[1], later[2], later[3]]).toEqual([
    "ws://h/?route=KEY",
    ...["-1", "-2", "-3", ""].map((to) => `ws://h/?route=KEY${to}`),
  ]);
});
