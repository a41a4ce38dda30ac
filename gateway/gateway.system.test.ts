/** A gateway on a real nats-server with clients on real sockets. The room's owner is a fake that uses NATS. */

import { once } from "node:events";

import { SignJWT } from "jose";
import { connect, type NatsConnection } from "nats";
import { Registry } from "prom-client";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { WebSocket } from "ws";

import { subjectsOf } from "../shared/bus/subjects.ts";
import { type ClientKey, type Epoch, roomKey, type RoomId, type Seq, type TenantId } from "../shared/ids.ts";
import { ensureLogStreams } from "../shared/io/log-stream.ts";
import type { Running } from "../shared/process/lifecycle.ts";
import { sharedSettings } from "../shared/settings/common-settings.ts";
import { readSettings } from "../shared/settings/settings.ts";
import { SILENT_LOG } from "../shared/testing/silent-log.ts";
import { CLOSE_MEANINGS } from "../shared/wire/close-codes.ts";
import { PROTOCOL_VERSION } from "../shared/wire/frames.ts";
import { claimPort } from "../engines/free-port.ts";
import { type RealNats, startRealNats, until } from "../test/contract/real-nats.ts";
import { gatewaySettings } from "./config.ts";
import { startGateway } from "./main.ts";
import { FakeLog, FakeOwner } from "./testing/fake-owner.ts";
import { WireClient } from "./testing/wire-client.ts";

const SECRET = "a secret of at least 32 bytes, for tests only";
const ROOM = "notes";

let nats: RealNats;
let natsConnection: NatsConnection;
let environment: string;
let runs = 0;
let gateways: Running[];
let clients: WireClient[];
let owners: FakeOwner[];
let log: FakeLog;

beforeAll(async () => {
  nats = await startRealNats();
});
afterAll(() => nats.stop());
beforeEach(async () => {
  natsConnection = await connect({ servers: nats.url, maxReconnectAttempts: -1, reconnectTimeWait: 20 });
  environment = `gateway${++runs}`;
  [gateways, clients, owners, log] = [[], [], [], new FakeLog()];
});
afterEach(async () => {
  for (const client of clients) client.close();
  for (const owner of owners) owner.stop();
  await Promise.all(gateways.map((gateway) => gateway.stop()));
  await natsConnection.close();
});

async function start(settings: Record<string, string> = {}): Promise<string> {
  const flags = { environment, natsUrl: nats.url, port: "0", jwtSecret: SECRET, drainMsMax: "0", ...settings };
  const config = { ...readSettings({ ...sharedSettings, ...gatewaySettings }, { flags, env: {} }), serverSilenceMsMax: 300 };
  const gateway = await startGateway(config, { log: SILENT_LOG, registry: new Registry() });
  gateways.push(gateway);
  return `127.0.0.1:${gateway.port}`;
}

function startOwner(name: string): FakeOwner {
  const owner = new FakeOwner(natsConnection, subjectsOf(environment), log, roomKey("default" as TenantId, ROOM as RoomId), name);
  owners.push(owner);
  return owner;
}

async function token(user: string, claims: object = {}, expiry = "1h"): Promise<string> {
  return new SignJWT({ rooms: ["notes", "drafts-*"], rights: ["read", "write"], ...claims })
    .setProtectedHeader({ alg: "HS256" })
    .setSubject(user)
    .setExpirationTime(expiry)
    .sign(new TextEncoder().encode(SECRET));
}

async function enter(address: string, user: string, claims: object = {}): Promise<WireClient> {
  const client = await WireClient.greet(`ws://${address}/v1/connect`, await token(user, claims));
  clients.push(client);
  return client;
}

test("[GW1] an edit goes from its author over the owner to another client, and the author receives an ack", async () => {
  startOwner("rs-1");
  const address = await start();
  const [ann, bob] = [await enter(address, "ann"), await enter(address, "bob")];
  const { channel } = await ann.join(ROOM, "annannann");
  await bob.join(ROOM, "bobbobbob");
  ann.edit(channel, 1, "hello");
  expect(await ann.next("ack")).toMatchObject({ channel, counter: 1, seq: 1, count: 1 });
  expect((await bob.next("committed")).edits).toMatchObject({ epoch: 1, firstSeq: 1 });
  expect([...bob.committed()]).toEqual([[1, "hello"]]);
  expect(ann.committed().size).toBe(0);
});

/** Another member of the room, which the tested client must not affect. */
async function bystander(address: string): Promise<{ client: WireClient; unharmed: () => Promise<void> }> {
  const client = await enter(address, "bystander");
  const { channel } = await client.join(ROOM, "bystander");
  let counter = 0;
  return {
    client,
    unharmed: async () => {
      counter += 1;
      client.edit(channel, counter, `still here ${counter}`, counter - 1);
      const mine = `still here ${counter}`; // The edit may share a record with a stranger's edit. The record then returns instead of an ack.
      await client.until(
        () =>
          client.received.some(
            (frame) => (frame.type === "ack" && frame.counter === counter) || [...client.committed().values()].includes(mine),
          ),
        `the ack of edit ${counter}`,
      );
    },
  };
}

const hello = (jwt: string): Parameters<WireClient["send"]>[0] => ({ type: "hello", version: 1, token: jwt, agent: "test" });

test("[GW2] every protocol violation has its close code, and other members are not affected", async () => {
  startOwner("rs-1");
  const address = await start({ frameBytesMax: "4000", editBytesMax: "2000", resendBurst: "3" });
  const url = `ws://${address}/v1/connect`;
  const { unharmed } = await bystander(address);

  const signed = (claims: object, key: string) =>
    new SignJWT({ rooms: ["*"], rights: ["read"], ...claims })
      .setProtectedHeader({ alg: "HS256" })
      .setSubject("eve")
      .setExpirationTime("1h")
      .sign(new TextEncoder().encode(key));
  const unsecured =
    `${btoa(JSON.stringify({ alg: "none" }))}.${btoa(JSON.stringify({ sub: "eve", exp: 4e9, rooms: ["*"], rights: ["read"] }))}.`.replaceAll(
      "=",
      "",
    );

  const faults: [string, number, (client: WireClient) => void | Promise<void>][] = [
    ["a message of another protocol", 4400, (client) => client.sendBytes(Uint8Array.of(0x03, 0xff))],
    [
      "bytes that are no frame",
      4103,
      async (client) => (
        client.send(hello(await token("mallory"))),
        await client.next("welcome"),
        client.sendBytes(Uint8Array.of(0x03, 0xff))
      ),
    ],
    ["an empty frame", 4400, (client) => client.sendBytes(new Uint8Array(0))],
    ["a text", 4400, (client) => client.sendText("hello")],
    [
      "a frame that only gateways send",
      4103,
      async (client) => (client.send(hello(await token("eve"))), client.sendBytes(Uint8Array.of(0x87, 1))),
    ],
    ["a join before hello", 4103, (client) => void client.join(ROOM, "eveeveeve").catch(() => {})],
    [
      "an edit to a channel not joined",
      4103,
      async (client) => (client.send(hello(await token("eve"))), await client.next("welcome"), client.edit(7, 1, "x")),
    ],
    [
      "a second hello",
      4103,
      async (client) => (client.send(hello(await token("eve"))), await client.next("welcome"), client.send(hello("again"))),
    ],
    ["a frame over the limit", 4104, (client) => client.sendBytes(new Uint8Array(4001))],
    ["another protocol version", 4105, (client) => client.send({ type: "hello", version: 99, token: "", agent: "" })],
    ["no token", 4101, (client) => client.send(hello(""))],
    [
      "a token signed with another key",
      4101,
      async (client) => client.send(hello(await signed({}, "another secret, just as long as ours is"))),
    ],
    ["a token of algorithm none", 4101, (client) => client.send(hello(unsecured))],
    ["a token that names no rooms", 4101, async (client) => client.send(hello(await signed({ rooms: undefined }, SECRET)))],
    ["a token of a tenant with a dot", 4101, async (client) => client.send(hello(await signed({ tenant: "a.b" }, SECRET)))],
    ["an expired token", 4102, async (client) => client.send(hello(await token("eve", {}, "-1m")))],
    [
      "edits beyond the rate",
      4006,
      async (client) => {
        client.send(hello(await token("eve")));
        const { channel } = await client.join(ROOM, "eveeveeve");
        for (let counter = 1; counter <= 60; counter++) client.edit(channel, counter, "x");
      },
    ],
  ];
  for (const [what, code, misbehave] of faults) {
    const client = await WireClient.open(url);
    clients.push(client);
    await misbehave(client);
    expect([what, (await client.end()).code]).toEqual([what, code]);
    await unharmed();
  }
  const flooder = await WireClient.open(url);
  flooder.sendBytes(new Uint8Array(100_000));
  expect((await flooder.end()).code).toBe(1006); // The frame exceeds the library's limit, so the library closes the connection.
  await unharmed();
});

test("[GW3] a connection without HELLO is closed after its deadline", async () => {
  const client = await WireClient.open(`ws://${await start({ helloMsMax: "100" })}/v1/connect`);
  expect((await client.end()).code).toBe(4007);
});

test("[GW34] a y-websocket client is refused in its protocol on the path of its room, and closed after the deadline of HELLO", async () => {
  const socket = new WebSocket(`ws://${await start({ helloMsMax: "100" })}/team/notes?token=t`);
  const [closed, refused] = [once(socket, "close"), once(socket, "message")];
  socket.on("open", () => socket.send(Uint8Array.of(0, 0, 1, 0)));
  const refusal = ((await refused) as [Buffer])[0];
  expect([[...refusal.subarray(0, 2)], String(refusal.subarray(3))]).toEqual([[2, 0], CLOSE_MEANINGS.otherProtocol]);
  expect((await closed).map(String)).toEqual(["4400", CLOSE_MEANINGS.otherProtocol]);
});

test("[GW4] a connection is closed when its token expires", async () => {
  const client = await WireClient.open(`ws://${await start({ jwtClockToleranceSeconds: "1" })}/v1/connect`);
  client.send(hello(await token("ann", {}, "3s")));
  await client.next("welcome");
  expect((await client.end()).code).toBe(4102);
});

test("[GW5] a token opens the rooms that it names, with the rights that it lists", async () => {
  startOwner("rs-1");
  const address = await start();
  const reader = await enter(address, "ann", { rights: ["read"] });
  const { channel, rights } = await reader.join(ROOM, "annannann");
  expect(rights).toEqual({ read: true, write: false });
  reader.edit(channel, 1, "no");
  expect(await reader.next("nack")).toMatchObject({ counter: 1, reason: "read-only" });
  void reader.join("secrets", "annannann").catch(() => {});
  expect(await reader.next("join-refused")).toMatchObject({ reason: "not-allowed" });

  const blind = await enter(address, "bob", { rights: ["write"] });
  void blind.join(ROOM, "bobbobbob").catch(() => {});
  expect(await blind.next("join-refused")).toMatchObject({ reason: "not-allowed" });
});

test("[GW6] after the owner is killed another server claims the room, and uncommitted edits are resent in order", async () => {
  const first = startOwner("rs-1");
  const address = await start();
  const [ann, bob] = [await enter(address, "ann"), await enter(address, "bob")];
  const { channel } = await ann.join(ROOM, "annannann");
  await bob.join(ROOM, "bobbobbob");
  ann.edit(channel, 1, "one");
  await ann.next("ack");

  first.mode = "ignore-edits";
  for (const counter of [2, 3, 4]) ann.edit(channel, counter, `edit ${counter}`, 1);
  await until(
    () => first.received.some((message) => message.kind === "edits" && message.edits.some(({ counter }) => counter === 4)),
    "the edits at the first owner",
  );
  first.stop();
  startOwner("rs-2");
  ann.edit(channel, 5, "edit 5", 1);
  await bob.until(() => bob.committed().size === 5, "all five edits");
  expect([...bob.committed().values()]).toEqual(["one", "edit 2", "edit 3", "edit 4", "edit 5"]);
});

test("[GW7] a silent owner is replaced after the deadline, and the claim request names it as the suspect", async () => {
  const first = startOwner("rs-1");
  const address = await start({ ownerSilenceMsMax: "200" });
  const ann = await enter(address, "ann");
  const { channel } = await ann.join(ROOM, "annannann");
  ann.edit(channel, 1, "one");
  await ann.next("ack");

  first.mode = "silent";
  const second = startOwner("rs-2");
  ann.edit(channel, 2, "two", 1);
  expect(await ann.next("ack")).toMatchObject({ counter: 2, seq: 2, epoch: 2 });
  expect(second.claims[0]).toMatchObject({ suspect: "rs-1" });
});

test("[GW8] lost records are requested when a beacon or a later record reveals the gap", async () => {
  const owner = startOwner("rs-1");
  const address = await start();
  const [ann, bob] = [await enter(address, "ann"), await enter(address, "bob")];
  const { channel } = await ann.join(ROOM, "annannann");
  await bob.join(ROOM, "bobbobbob");
  owner.mode = "lose-records";
  ann.edit(channel, 1, "one");
  ann.edit(channel, 2, "two");
  await until(() => log.edits.length === 2, "the edits in the log");
  owner.beacon();
  await bob.until(() => bob.committed().size === 2, "the edits after the beacon");

  ann.edit(channel, 3, "three");
  await until(() => log.edits.length === 3, "the third edit in the log");
  owner.mode = "serve";
  ann.edit(channel, 4, "four");
  await bob.until(() => bob.committed().size === 4, "the edits after the gap");
  expect([...bob.committed()]).toEqual([
    [1, "one"],
    [2, "two"],
    [3, "three"],
    [4, "four"],
  ]);
});

test("[GW9] rooms catch up after a crash of NATS, and edits sent meanwhile arrive once", async () => {
  startOwner("rs-1");
  const address = await start();
  const [ann, bob] = [await enter(address, "ann"), await enter(address, "bob")];
  const { channel } = await ann.join(ROOM, "annannann");
  await bob.join(ROOM, "bobbobbob");
  ann.edit(channel, 1, "before");
  await ann.next("ack");
  const crashed = nats.crash();
  ann.edit(channel, 2, "during", 1);
  await crashed;
  ann.edit(channel, 3, "after", 1);
  await bob.until(() => bob.committed().size === 3, "all three edits");
  expect([...bob.committed().values()]).toEqual(["before", "during", "after"]);
  expect(log.edits.length).toBe(3);
});

test("[GW10] a join waits while no room server exists, and is then refused with a retry time", async () => {
  const address = await start({ joinMsMax: "500" });
  const ann = await enter(address, "ann");
  void ann.join(ROOM, "annannann").catch(() => {});
  expect(await ann.next("join-refused")).toMatchObject({ reason: "unavailable", retryAfterMs: 1000 });
});

test("[GW11] a late joiner receives all earlier edits once and in order while new edits arrive", async () => {
  startOwner("rs-1");
  const address = await start({ editBurst: "1000" });
  const ann = await enter(address, "ann");
  const { channel } = await ann.join(ROOM, "annannann");
  for (let counter = 1; counter <= 50; counter++) ann.edit(channel, counter, `${counter}`);
  const late = await enter(address, "late");
  await late.join(ROOM, "latelatelate");
  for (let counter = 51; counter <= 100; counter++) ann.edit(channel, counter, `${counter}`);
  await late.until(() => late.committed().size === 100, "all hundred edits");
  const firsts = late.received
    .filter((frame) => frame.type === "committed")
    .map(({ edits }) => [edits.firstSeq, edits.firstSeq + edits.edits.length - 1] as const);
  let head = 0;
  for (const [first, last] of firsts) {
    expect(first).toBeLessThanOrEqual(head + 1); // No record leaves a gap.
    head = Math.max(head, last);
  }
});

test("[GW12] pages of other origins and connections above the maximum are refused", async () => {
  const address = await start({ allowedOrigins: "https://app.example", connectionsMax: "1" });
  const url = `ws://${address}/v1/connect`;
  await expect(WireClient.open(url, { origin: "https://evil.example" })).rejects.toThrow("HTTP 403");
  clients.push(await WireClient.open(url, { origin: "https://app.example" }));
  await expect(WireClient.open(url)).rejects.toThrow("HTTP 503");
});

test("[GW13] production does not start without allowed origins, and no gateway starts without a long JWT secret", async () => {
  await expect(start({ production: "true" })).rejects.toThrow("COROOM_ALLOWED_ORIGINS");
  await expect(start({ jwtSecret: "" })).rejects.toThrow("COROOM_JWT_SECRET");
  await expect(start({ jwtSecret: "short" })).rejects.toThrow("too short");
});

/** Sends edits of 100 KB until the author has received this many acks. */
async function flood(author: WireClient, edits: number): Promise<void> {
  const { channel } = await author.join(ROOM, "floodflood");
  await author.flood(channel, edits, "x".repeat(100_000));
}

function seqsOf(client: WireClient): number[] {
  return [...client.committed().keys()];
}

test("[GW14] a client that does not read is closed with a code that lets it resume, and other clients continue", async () => {
  startOwner("rs-1");
  const address = await start({ editBurst: "100000", slowBytesMax: "200000", closingMsMax: "60000" });
  const [ann, stuck] = [await enter(address, "ann"), await enter(address, "stuck")];
  await stuck.join(ROOM, "stuckstuck");
  stuck.pause();
  const flooding = flood(ann, 120);
  const gauge = async () =>
    (await (await fetch(`http://${address}/metrics`)).text()).includes('coroom_gateway_closes_total{close="tooSlow"} 1');
  await until(gauge, "the slow client's close");
  stuck.resume(); // Before the gateway discards the unread data, and with it the close frame.
  expect((await stuck.end()).code).toBe(4002);
  await flooding;
  expect(seqsOf(stuck)).toEqual(seqsOf(stuck).map((_, index) => index + 1)); // No edit was skipped before the close.
});

test("[GW15] a client above the hard limit of unread bytes is disconnected, and no edit is skipped before", async () => {
  startOwner("rs-1");
  const address = await start({ editBurst: "100000", outboundBytesMax: "1000000", slowBytesMax: "1000000000", slowMsMax: "60000" });
  const [ann, stuck] = [await enter(address, "ann"), await enter(address, "stuck")];
  await stuck.join(ROOM, "stuckstuck");
  stuck.pause();
  const flooding = flood(ann, 150);
  await until(() => log.edits.length > 100, "the flood");
  stuck.resume();
  expect((await stuck.end()).code).toBe(1006);
  await flooding;
  expect(seqsOf(stuck)).toEqual(seqsOf(stuck).map((_, index) => index + 1));
});

test("[GW16] frames to one client and frames to all keep their order: two concurrent writers each receive every seq in turn", async () => {
  startOwner("rs-1");
  const address = await start({ editBurst: "10000", userEditsPerSecondMax: "10000" });
  const [ann, bob] = [await enter(address, "ann"), await enter(address, "bob")];
  const { channel } = await ann.join(ROOM, "annannann");
  await bob.join(ROOM, "bobbobbob");
  const edits = 500;
  for (let counter = 1; counter <= edits; counter++) {
    ann.edit(channel, counter, "from ann");
    bob.edit(channel, counter, "from bob");
    if (counter % 7 === 0) await new Promise(setImmediate); // Turns end in between, so that batches differ in size and authors.
  }
  await until(() => log.edits.length === 2 * edits, "all edits in the log");
  for (const client of [ann, bob]) {
    await until(() => seqsInTurn(client).at(-1) === 2 * edits, "the last seq");
    expect(seqsInTurn(client)).toEqual(Array.from({ length: 2 * edits }, (_, index) => index + 1));
  }
});

/** Seqs of acks and committed frames, in the order of arrival. */
function seqsInTurn(client: WireClient): number[] {
  return client.received.flatMap((frame) => {
    if (frame.type === "ack") return Array.from({ length: frame.count }, (_, index) => frame.seq + index);
    return frame.type === "committed" ? frame.edits.edits.map((_, index) => frame.edits.firstSeq + index) : [];
  });
}

test("[GW17] a gateway that has lost NATS too long closes its clients, so that they choose another, and refuses new ones", async () => {
  startOwner("rs-1");
  const address = await start({ backboneLossMsMax: "100" });
  const ann = await enter(address, "ann");
  await ann.join(ROOM, "annannann");
  nats.signal("SIGKILL");
  expect((await ann.end()).code).toBe(4003);
  await expect(WireClient.open(`ws://${address}/v1/connect`)).rejects.toThrow("HTTP 503");
  await nats.crash(); // Restarts NATS.
  await until(async () => (await fetch(`http://${address}/readyz`)).status === 200, "the gateway to be ready again");
});

test("[GW25] a loss of NATS is announced to each client with a different time to move, and so is the recovery", async () => {
  startOwner("rs-1");
  const address = await start();
  const group = await Promise.all(["ann", "bob", "cid"].map((user) => enter(address, user)));
  const { channel } = await group[0]!.join(ROOM, "annannann");
  await nats.crash(async () => {
    const delays = await Promise.all(group.map(async (client) => (await client.next("degraded")).reconnectAfterMs));
    expect(delays.toSorted((a, b) => a - b)).toEqual([0, 7_500, 15_000]);
    group[0]!.edit(channel, 1, "kept meanwhile");
  });
  const { received } = group[0]!;
  // The ack may come after the recovery is announced.
  await group[0]!.until(() => received.some((frame) => frame.type === "ack" && frame.counter === 1), "the ack of the first edit");
  for (const client of group) expect(await client.next("degraded")).toEqual({ type: "degraded", backbone: "found", reconnectAfterMs: 0 });
});

test("[GW26] a client that sends HELLO while NATS is lost is welcomed, and the loss and the recovery are announced to it", async () => {
  startOwner("rs-1");
  const address = await start({ helloMsMax: "600000" });
  const ann = await enter(address, "ann");
  const late = await WireClient.open(`ws://${address}/v1/connect`);
  clients.push(late);
  await nats.crash(async () => {
    await ann.next("degraded");
    late.send({ type: "hello", version: PROTOCOL_VERSION, token: await token("bob"), agent: "test" });
    await late.next("welcome");
    expect(await late.next("degraded")).toMatchObject({ backbone: "lost" });
  });
  expect(await late.next("degraded")).toMatchObject({ backbone: "found" });
  await late.join(ROOM, "boblatebo");
});

test("[GW18] a gateway that stops closes its clients with the code goingAway, and its port can be reused immediately", async () => {
  const port = String(await claimPort(0, "127.0.0.1", "port")); // A port that outgoing connections of other processes cannot take meanwhile.
  await start({ port });
  await gateways.pop()!.stop();
  const address = await start({ port });
  const ann = await enter(address, "ann");
  await gateways.pop()!.stop();
  expect((await ann.end()).code).toBe(4001);
  expect(await start({ port })).toBe(address);
  await expect(start({ port })).rejects.toThrow("COROOM_PORT");
});

test("[GW19] 200 clients that join one room at once cause fewer than 5 catch-up requests to its owner", async () => {
  const owner = startOwner("rs-1");
  const address = await start({ ownerSilenceMsMax: "60000", recentMsMax: "60000" }); // No request is repeated because of a late answer.
  const ann = await enter(address, "ann");
  const { channel } = await ann.join(ROOM, "annannann");
  ann.edit(channel, 1, "one");
  await ann.next("ack");
  const questions = () => owner.received.filter(({ kind }) => kind === "catch-up-request").length;
  const before = questions();
  const group = await Promise.all(Array.from({ length: 200 }, (_, index) => enter(address, `user${index}`)));
  await Promise.all(group.map((client, index) => client.join(ROOM, `client-${index}`)));
  await Promise.all(group.map((client) => client.until(() => client.committed().size === 1, "the edit")));
  expect(questions() - before).toBeLessThan(5);
});

test("[GW32] a client that is sent to a snapshot becomes a participant only after it has joined from the snapshot", async () => {
  const announced: string[][] = [];
  startOwner("rs-1").onPresence = (message) => {
    if (message.kind === "members") announced.push(message.entered.map(({ user }) => user));
  };
  const address = await start();
  const newcomer = await enter(address, "newcomer");
  newcomer.send({
    type: "join",
    request: 1,
    room: ROOM as RoomId,
    clientKey: "newcomer" as ClientKey,
    position: { epoch: 1 as Epoch, seq: 5 as Seq },
  }); // The room is still empty.
  await newcomer.next("resync-required");
  const member = await enter(address, "member");
  await member.join(ROOM, "membermem");
  await until(() => announced.length > 0, "the announcement of a member");
  expect(new Set(announced.flat())).toEqual(new Set(["member"])); // Announced once, or again while no owner confirms it.
  await newcomer.join(ROOM, "newcomer");
  await until(() => announced.at(-1)?.includes("newcomer"), "the announcement of the newcomer");
});

test("[GW20] a gateway that stops is unready at once, serves its clients while they move one by one, and ends when all have moved", async () => {
  startOwner("rs-1");
  const address = await start({ drainMsMax: "60000" });
  const group = await Promise.all(["ann", "bob", "cid", "dan"].map((user) => enter(address, user)));
  const { channel } = await group[0]!.join(ROOM, "annannann");
  const stopped = gateways.pop()!.stop();
  const delays = await Promise.all(group.map(async (client) => (await client.next("going-away")).reconnectAfterMs));
  expect(delays.toSorted((a, b) => a - b)).toEqual([0, 11_250, 22_500, 33_750]);

  expect(await (await fetch(`http://${address}/readyz`)).text()).toBe("shutting down\n");
  await expect(WireClient.open(`ws://${address}/v1/connect`)).rejects.toThrow("HTTP 503");
  group[0]!.edit(channel, 1, "still served");
  expect(await group[0]!.next("ack")).toMatchObject({ counter: 1 });
  for (const client of group) client.close();
  await stopped;
});

test("[GW21] a client that has not moved in time is closed, and its edits reach the log before the gateway ends", async () => {
  const owner = startOwner("rs-1");
  const address = await start({ drainMsMax: "1", ownerSilenceMsMax: "100" });
  const ann = await enter(address, "ann");
  const { channel } = await ann.join(ROOM, "annannann");
  owner.mode = "ignore-edits";
  ann.edit(channel, 1, "the last edit");
  await until(() => owner.received.some(({ kind }) => kind === "edits"), "the edit at its owner");
  const stopped = gateways.pop()!.stop();
  expect((await ann.end()).code).toBe(4001);
  owner.mode = "serve";
  await stopped;
  expect(log.edits).toHaveLength(1);
});

test("[GW22] a renewed token extends the connection, and rooms that it does not open are left", async () => {
  startOwner("rs-1");
  const client = await WireClient.greet(`ws://${await start()}/v1/connect`, await token("ann", {}, "1m"));
  clients.push(client);
  const { channel } = await client.join(ROOM, "annannann");
  client.send({ type: "renew", token: await token("ann", { rights: ["read"] }, "1h") });
  expect((await client.next("renewed")).tokenExpiresInMs).toBeGreaterThan(600_000);
  expect(await client.next("left")).toMatchObject({ channel, reason: "rights-changed" });
  client.edit(channel, 1, "on its way"); // Sent before LEFT arrived. The gateway ignores it.
  expect((await client.join(ROOM, "annannann")).rights).toEqual({ read: true, write: false });
  client.send({ type: "renew", token: await token("ann", { rooms: [] }, "1h") });
  expect(await client.next("left")).toMatchObject({ channel, reason: "rights-revoked" });
  client.send({ type: "renew", token: await token("eve") });
  expect((await client.end()).code).toBe(4101);
  expect(log.edits).toHaveLength(0);
});

test("[GW23] connections above the allowed rate are closed with a time to retry", async () => {
  const address = await start({ connectsPerSecondMax: "2", connectQueueMax: "0", retryAfterMs: "7000", helloMsMax: "600000" });
  const group = await Promise.all(Array.from({ length: 40 }, () => WireClient.open(`ws://${address}/v1/connect`)));
  clients.push(...group);
  const away = async () =>
    Number(/turned_away_total\{reason="herd"\} (\d+)/.exec(await (await fetch(`http://${address}/metrics`)).text())?.[1]);
  await until(async () => (await away()) >= 10, "most of them to be refused");
  await until(async () => (await away()) === group.filter((client) => client.closed !== undefined).length, "their closes");
  for (const client of group.filter(({ closed }) => closed !== undefined)) {
    expect(client.received.map((frame) => frame.type)).toEqual(["retry-later", "error"]);
    expect([client.closed?.code, await client.next("retry-later")]).toEqual([4005, { type: "retry-later", retryAfterMs: 7_000 }]);
  }
  const admitted = group.find(({ closed }) => closed === undefined)!;
  admitted.send(hello(await token("ann")));
  await admitted.next("welcome");
});

test("[GW24] connections above the rate wait in a short admission queue; a client that leaves frees its place, and others are closed when it is full", async () => {
  const address = await start({ connectsPerSecondMax: "1", connectQueueMax: "30", helloMsMax: "600000" });
  const metric = async (sample: string) =>
    Number(new RegExp(`${sample} (\\d+)`).exec(await (await fetch(`http://${address}/metrics`)).text())?.[1]);
  const greeting = hello(await token("ann"));
  const group = await Promise.all(Array.from({ length: 50 }, () => WireClient.open(`ws://${address}/v1/connect`)));
  clients.push(...group);
  for (const client of group) client.send(greeting);
  const isClosed = ({ closed }: WireClient): boolean => closed !== undefined;
  await until(
    async () => (await metric('coroom_gateway_turned_away_total{reason="herd"}')) === group.filter(isClosed).length,
    "all connections without a place to be refused",
  );
  expect(new Set(group.filter(isClosed).map(({ closed }) => closed?.code))).toEqual(new Set([4005]));

  const waiting = group.filter((client) => !isClosed(client) && client.received.length === 0);
  const patient = waiting.pop()!;
  for (const hasty of waiting) hasty.close();
  await patient.next("welcome"); // The gateway kept the HELLO while the client waited.
  await until(async () => (await metric("coroom_gateway_connects_waiting")) === 0, "an empty queue");
  expect(await metric("coroom_gateway_connect_wait_seconds_count")).toBeLessThan(20); // Clients that left used no turn.
});

test("[GW31] a gateway that reaches its clients late is unready but still accepts connections, and is ready again once the clients read", async () => {
  startOwner("rs-1");
  const address = await start({ editBurst: "100000", slowBytesMax: "1000000000", slowMsMax: "600000", outboundBytesMax: "1000000000" });
  const isReady = async (): Promise<boolean> => (await fetch(`http://${address}/readyz`)).ok;
  const ann = await enter(address, "ann");
  const stuck = await Promise.all(Array.from({ length: 10 }, (_, index) => enter(address, `stuck-${index}`)));
  await Promise.all(stuck.map((client, index) => client.join(ROOM, `stuckstuck${index}`)));
  await until(isReady, "the gateway to be ready, as it is in the end however late all that was");
  for (const client of stuck) client.pause();
  await flood(ann, 120);
  await until(async () => !(await isReady()), "the gateway to notice");
  await enter(address, "bob");
  for (const client of stuck) client.resume();
  await until(isReady, "the gateway to be ready", 120_000);
});

test("[GW27] a gateway whose partition count differs from the log's does not start", async () => {
  await ensureLogStreams(natsConnection, subjectsOf(environment), { partitions: 2, replicas: 1 });
  await expect(start()).rejects.toThrow(/Set COROOM_LOG_PARTITIONS=2 for every role/);
  await start({ logPartitions: "2" });
});

test("[GW30] a gateway that started before the log becomes unready when the partition counts differ", async () => {
  const address = await start();
  await ensureLogStreams(natsConnection, subjectsOf(environment), { partitions: 2, replicas: 1 });
  const unready = await until(async () => {
    const answer = await fetch(`http://${address}/readyz`);
    return answer.status === 503 && answer.text();
  }, "the gateway to notice");
  expect(unready).toContain("COROOM_LOG_PARTITIONS");
  await expect(enter(address, "ann")).rejects.toThrow("HTTP 503");
});

test("[GW33] connections that wait for admission when the gateway ends are closed with goingAway, like all others", async () => {
  const address = await start({ connectsPerSecondMax: "1", connectQueueMax: "30", drainMsMax: "1" });
  const group = await Promise.all(Array.from({ length: 5 }, () => WireClient.open(`ws://${address}/v1/connect`)));
  await gateways.pop()!.stop();
  expect(await Promise.all(group.map(async (client) => (await client.end()).code))).toEqual(group.map(() => 4001));
});
