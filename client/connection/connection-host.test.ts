/** Rooms on a connection: shared, moved from one gateway to the next, renewed. */

import { expect, test } from "vitest";

import type { ClientId } from "../../shared/ids.ts";
import { TokenBucket } from "../../shared/token-bucket.ts";
import type { ClientFrame, Limits } from "../../shared/wire/frames.ts";
import { ConnectionHost } from "./connection-host.ts";
import type { NetworkNews, OpenSocket, WatchNetwork } from "../ports.ts";
import type { RoomHostOptions } from "../room/room-events.ts";
import { RoomHost } from "../room/room-host.ts";
import { App, bytes, heard, MINUTE, NOTES, serverOn } from "../testing/app.ts";
import { LIMITS, type ModelServer } from "../testing/model-server.ts";
import { serverFrameOf } from "./server-frames.ts";

/** Options of a room that shares a connection instead of opening its own. */
function over(connection: ConnectionHost): Partial<RoomHostOptions> {
  return { connection, url: undefined, token: undefined } as unknown as Partial<RoomHostOptions>;
}

test("[COH1] several rooms share one connection, its pace too; a room left is left alone", async () => {
  const server = serverOn();
  server.limits = LIMITS;
  const connection = new ConnectionHost({ url: "ws://h", token: "t" }, server.world(1));
  const shared = over(connection);
  const [notes, tasks] = [new App(server, 1, shared), new App(server, 2, { ...shared, room: "tasks" })];
  await server.clock.advance(1_000);
  expect(server.lines.size).toBe(1);
  for (let value = 0; value < 40; value++) {
    notes.host.send(bytes(value));
    tasks.host.send(bytes(value));
  }
  await server.clock.advance(50);
  expect(heard(server, "edit").length).toBeLessThanOrEqual(LIMITS.editBurst);
  await server.clock.advance(30_000);
  expect([notes.host.saved, tasks.host.saved]).toEqual([true, true]);
  notes.host.disconnect();
  tasks.host.send(bytes(7));
  await server.clock.advance(1_000);
  expect([notes.host.status, tasks.host.status, tasks.host.saved, server.lines.size]).toEqual(["disconnected", "connected", true, 1]);
});

/** Two rooms on one connection; the second is asked for and not joined yet. */
async function askForTasks() {
  const server = serverOn();
  const connection = new ConnectionHost({ url: "ws://h", token: "t" }, server.world(1));
  const shared = over(connection);
  const notes = new App(server, 1, shared);
  await server.clock.advance(1_000);
  const tasks = new App(server, 2, { ...shared, room: "tasks" });
  await untilHeard(server, "join", 2);
  return { server, shared, notes, tasks };
}

/** And not a moment longer: the answer is still on its way. */
async function untilHeard(server: ModelServer, type: ClientFrame["type"], count: number): Promise<void> {
  for (let step = 0; step < 100_000 && heard(server, type).length < count; step++) await server.clock.advance(0.01);
}

test("[COH11] a room that is left before it is joined is left on the server too, once", async () => {
  const { server, notes, tasks } = await askForTasks();
  tasks.host.disconnect();
  await server.clock.advance(1_000);
  expect(heard(server, "leave").map(({ channel }) => channel)).toEqual([2]);
  notes.host.send(bytes(1));
  tasks.host.connect();
  await server.clock.advance(1_000);
  expect([notes.host.saved, notes.statuses, tasks.host.status, heard(server, "leave").length]).toEqual([
    true,
    ["connecting", "connected"],
    "connected",
    1,
  ]);
});

test.each(["the same", "another"])("[COH11] a room that is wanted again before it is joined stays joined, by %s", async (whose) => {
  const { server, shared, tasks } = await askForTasks();
  tasks.host.disconnect();
  if (whose === "the same") tasks.host.connect();
  const wanting = whose === "the same" ? tasks : new App(server, 3, { ...shared, room: "tasks" });
  await server.clock.advance(1_000);
  expect([wanting.host.status, heard(server, "join").length, heard(server, "leave")]).toEqual(["connected", 3, []]);
});

test("[COH11] a room left while it is asked for anew is left once; what its own listener leaves is not asked for", async () => {
  const { server, tasks } = await askForTasks();
  tasks.host.send(bytes(1));
  await server.clock.advance(1_000);
  server.room("tasks").trimmedThrough = 1;
  const resync = { type: "resync-required", channel: 2, reason: "other-epoch", head: { epoch: 1 as never, seq: 1 as never } } as const;
  server.send(resync);
  await untilHeard(server, "join", 3);
  tasks.host.disconnect();
  await server.clock.advance(1_000);
  expect([heard(server, "join").length, heard(server, "leave").length]).toEqual([3, 1]);

  tasks.host.connect();
  tasks.host.on("snapshot", () => tasks.host.disconnect());
  await server.clock.advance(1_000);
  server.send(resync);
  await server.clock.advance(1_000);
  expect([tasks.host.status, heard(server, "join").length, heard(server, "leave").length]).toEqual(["disconnected", 4, 2]);
});

test("[COH11] a room that the server takes nobody into is left there, by whoever was in it and asks anew", async () => {
  const { server, tasks } = await askForTasks();
  await server.clock.advance(1_000);
  server.refuseJoins = { reason: "room-full", retryAfterMs: 10_000 };
  server.send({ type: "resync-required", channel: 2, reason: "too-old", head: { epoch: 1 as never, seq: 0 as never } });
  await server.clock.advance(MINUTE);
  expect([tasks.host.status, heard(server, "leave")]).toEqual(["waiting", []]);
  tasks.host.disconnect();
  await server.clock.advance(1_000);
  expect(heard(server, "leave").map(({ channel }) => channel)).toEqual([2]);
});

test("[COH2] a room is on a connection once", () => {
  const server = serverOn();
  const connection = new ConnectionHost({ url: "ws://h", token: "t" }, server.world(1));
  new RoomHost({ connection, room: NOTES }, server.world(1));
  expect(() => new RoomHost({ connection, room: NOTES }, server.world(2))).toThrow("one RoomConnection or provider a room");
});

test("[COH10] a room destroyed long after it was left takes nothing from whoever is in it since", async () => {
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
  "[COH12] whoever takes the place of a room %s in its own listener joins behind its LEAVE",
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
    expect(server.heard.filter(({ type }) => type === "join" || type === "leave").map(({ type }) => type)).toEqual([
      "join",
      "join",
      "leave",
      "join",
    ]);
  },
);

test("[COH12] a room that is left and wanted again in its own listener, while it is asked for anew, joins behind its LEAVE too", async () => {
  const { server, tasks } = await askForTasks();
  tasks.host.send(bytes(1));
  await server.clock.advance(1_000);
  server.room("tasks").trimmedThrough = 1;
  const before = server.heard.length;
  tasks.host.once("snapshot", () => {
    tasks.host.disconnect();
    tasks.host.connect();
  });
  server.send({ type: "resync-required", channel: 2, reason: "other-epoch", head: { epoch: 1 as never, seq: 1 as never } });
  await server.clock.advance(1_000);
  expect(server.heard.slice(before).flatMap(({ type }) => (type === "join" || type === "leave" ? [type] : []))).toEqual(["leave", "join"]);
  expect([tasks.host.status, tasks.host.synced]).toEqual(["connected", true]);
});

test("[COH3] frames that only a client may send, and acks of a client unknown, disturb nothing", async () => {
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

test("[COH4] when the gateway goes away the next line opens before this one is given up, and no edit is lost or doubled", async () => {
  const server = serverOn();
  const [ann, bob] = [new App(server, 1), new App(server, 2)];
  await server.clock.advance(1_000);
  const [old] = server.lines;
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
  expect(server.lines.has(old!), "nobody moves before the time").toBe(true);
  await type(500);
  await server.clock.advance(1_000);
  expect([server.lines.has(old!), server.lines.size]).toEqual([false, 2]);
  expect(ann.edits).toEqual(Array.from({ length: typed }, (_, index) => `${index + 1}:${(index + 1) % 256} own`));
  expect(bob.edits).toHaveLength(typed);
  expect([...ann.problems, ...ann.refusals, ...bob.problems, ...bob.refusals]).toEqual([]);
  expect(ann.statuses, "away for one answer to JOIN only").toEqual(["connecting", "connected", "connecting", "connected"]);
});

test("[COH5] as long as there is nowhere to move to, the line that goes away serves on, and its end is as any other", async () => {
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
  expect([ann.host.status, ann.edits.length, server.lines.size]).toEqual(["connected", 20, 1]);
  expect(ann.statuses).toEqual(["connecting", "connected", "waiting", "connecting", "connected"]);
});

test("[COH7] while the gateway has lost its backbone it is tried elsewhere; when it is found again the one line serves on", async () => {
  const server = serverOn();
  const ann = new App(server, 1);
  await server.clock.advance(1_000);
  const [line] = server.lines;
  server.reachable = false; // The other gateways have lost it too.
  server.send({ type: "degraded", backbone: "lost", reconnectAfterMs: 500 });
  await server.clock.advance(5_000);
  expect([ann.host.status, server.lines.has(line!)]).toEqual(["degraded", true]);
  ann.host.send(bytes(1));
  server.send({ type: "degraded", backbone: "found", reconnectAfterMs: 0 });
  server.reachable = true;
  await server.clock.advance(30_000);
  expect([ann.host.status, ann.host.saved, [...server.lines]]).toEqual(["connected", true, [line]]);

  server.send({ type: "degraded", backbone: "lost", reconnectAfterMs: 500 });
  await server.clock.advance(2_000);
  expect([ann.host.status, server.lines.has(line!), server.lines.size]).toEqual(["connected", false, 1]); // Moved.
  expect(ann.problems).toEqual([]);
});

test("[COH6] a token is renewed on the line in use", async () => {
  const server = serverOn();
  server.tokenExpiresInMs = 10_000;
  let tokens = 0;
  const ann = new App(server, 1, { token: () => `token ${++tokens}` } as Partial<RoomHostOptions>);
  await server.clock.advance(30_000);
  expect(heard(server, "renew").map(({ token }) => token)).toEqual(["token 2", "token 3", "token 4"]);
  expect([heard(server, "hello").length, ann.statuses]).toEqual([1, ["connecting", "connected"]]);
});

test("[COH8] a token function that gives no text is told as failed, and asked again", async () => {
  const server = serverOn();
  const answers: unknown[] = [undefined, { token: "t" }, "", "t"];
  const ann = new App(server, 1, { token: () => answers.shift() as string } as Partial<RoomHostOptions>);
  await server.clock.advance(MINUTE);
  expect(ann.problems.map(({ message }) => message)).toEqual(
    ["undefined", "object", "an empty one"].map(
      (what) => `the application's token function returned no text, but ${what}: it must give the JWT itself; it is asked again later`,
    ),
  );
  expect([ann.host.status, answers]).toEqual(["connected", []]);
});

test("[COH16] what a token function threw is told in words, with what lies behind it", async () => {
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
    if (failures.length === 0) return "t";
    throw failures.shift();
  };
  const ann = new App(server, 1, { token } as Partial<RoomHostOptions>);
  await server.clock.advance(0);
  expect(ann.host.outage?.why).toBe("the application's token function failed: backend 500");
  await server.clock.advance(10 * MINUTE);
  expect(ann.problems.map(({ kind, message }) => [kind, message])).toEqual(
    ["backend 500", "fetch failed: Error: ::1 refused; Error: 127.0.0.1 refused", "no", "undefined", "no session", "[object Object]"].map(
      (what) => ["token-failed", `the application's token function failed: ${what}; it is asked again later`],
    ),
  );
  expect(ann.host.status).toBe("connected");
});

test("[COH17] what the platform says of its network is heard for as long as the connection is wanted", async () => {
  const server = serverOn();
  const listeners = new Set<(news: NetworkNews) => void>();
  const watchNetwork: WatchNetwork = (tell) => {
    listeners.add(tell);
    return () => listeners.delete(tell);
  };
  const host = new ConnectionHost({ url: "ws://h", token: "t" }, { ...server.world(1), watchNetwork });
  expect(listeners.size, "not wanted yet").toBe(0);
  host.connect();
  await server.clock.advance(1_000);
  expect(listeners.size).toBe(1);
  server.reachable = false;
  server.cut("silently");
  for (const tell of listeners) tell("doubtful");
  await server.clock.advance(5_000);
  expect(host.outage).toBeDefined();
  await server.clock.advance(2 * MINUTE);
  server.reachable = true;
  for (const tell of listeners) tell("back");
  await server.clock.advance(600);
  expect(host.status).toBe("connected");
  host.disconnect();
  expect(listeners.size).toBe(0);
});

test("[COH9] where the platform allows no socket to the URL, it is refused with what to do, once", async () => {
  const server = serverOn();
  const forbidding = {
    ...server.world(1),
    openSocket: () => {
      throw new Error("SecurityError");
    },
  };
  const host = new RoomHost({ url: "ws://h", token: "t", room: NOTES } as RoomHostOptions, forbidding);
  const refusals: string[] = [];
  host.on("refused", ({ message }) => refusals.push(message));
  await server.clock.advance(MINUTE);
  expect([refusals.length, refusals[0]?.includes("wss:"), host.status, server.clock.pending]).toEqual([1, true, "stopped", 0]);
});

test.each([1, 3])(
  "[COH18] a line that stalls, and brings at once what was sent meanwhile, brings no more than may come: %i rooms",
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
          const all = heard(server, "edit").length;
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

test("[COH19] a room whose edits nobody answers holds back none of the others", async () => {
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

/** A line of 100 ms each way at most, which is pinged every half minute, and an application that its platform tells when it is shown again. */
async function onSlowLine(limits: Partial<Limits>) {
  const server = serverOn();
  server.faults = { ...server.faults, delayMsMax: 100 };
  server.limits = { ...LIMITS, pingIntervalMs: 30_000, silenceMsMax: 75_000, editBurst: 60, editsPerSecond: 30, ...limits };
  let show = (): void => {};
  let losesPongs = false;
  const world = server.world(1);
  const watchNetwork: WatchNetwork = (tell) => {
    show = () => tell("doubtful");
    return () => {};
  };
  const openSocket: OpenSocket = (url, listener) => {
    const received = (bytes: Uint8Array): void => {
      if (!losesPongs || serverFrameOf(bytes)?.type !== "pong") listener.received(bytes);
    };
    return world.openSocket(url, { ...listener, received });
  };
  const connection = new ConnectionHost({ url: "ws://h", token: "t" }, { ...world, watchNetwork, openSocket });
  const ann = new App(server, 1, over(connection));
  await server.clock.advance(1_000);
  const losePongs = (isLosing: boolean): void => void (losesPongs = isLosing);
  return { server, ann, losePongs, show: () => show() };
}

test.each([
  ["edits", 1, {}],
  ["bytes", 4_000, { bytesBurst: 40_000 }],
])(
  "[COH20] %s that fill the line behind a PING ask anew with its PONG, and do not stand still until the interval is over",
  async (_what, size, limits) => {
    const { server, ann, show } = await onSlowLine(limits);
    const before = heard(server, "ping").length;
    show();
    for (let count = 0; count < 100; count++) ann.host.send(new Uint8Array(size));
    await server.clock.advance(10_000);
    expect(heard(server, "ping").length).toBeGreaterThan(before);
    expect([ann.host.saved, ann.edits.length]).toEqual([true, 100]);
  },
);

test.each<[string, Partial<Limits>]>([
  ["one control frame", { controlBurst: 1, controlsPerSecond: 1 }],
  ["two control frames", { controlBurst: 4 }],
  ["fewer bytes than a PING", { bytesBurst: LIMITS.editBytesMax }],
])("[COH21] PING and PONG do not follow each other without end where what may be on its way is %s", async (_what, limits) => {
  const { server, ann, show } = await onSlowLine(limits);
  show();
  ann.host.send(bytes(1));
  await server.clock.advance(10_000);
  expect(ann.host.saved).toBe(true);
  const before = heard(server, "ping").length;
  await server.clock.advance(2 * MINUTE);
  expect(heard(server, "ping").length - before).toBeLessThanOrEqual(4);
  ann.host.send(bytes(2));
  await server.clock.advance(10_000);
  expect([ann.host.saved, ann.edits.length]).toEqual([true, 2]);
});

test.each(["what is sent is held back", "no PONG comes"])("[COH22] a line on which %s for a minute goes on once it mends", async (how) => {
  const { server, ann, losePongs } = await onSlowLine({});
  if (how === "no PONG comes") losePongs(true);
  else server.stalledUntil = server.clock.now() + MINUTE;
  for (let count = 0; count < 100; count++) ann.host.send(bytes(count));
  await server.clock.advance(MINUTE);
  expect(ann.host.saved).toBe(false);
  losePongs(false);
  await server.clock.advance(40_000);
  expect([ann.host.saved, ann.edits.length, ann.statuses]).toEqual([true, 100, ["connecting", "connected"]]);
  ann.host.send(bytes(100));
  await server.clock.advance(10_000);
  expect(ann.host.saved).toBe(true);
});
