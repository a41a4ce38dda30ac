/** A gateway on a real nats-server, seen by clients on real sockets. The room's owner is a fake that speaks NATS. */

import { SignJWT } from "jose";
import { connect, type NatsConnection } from "nats";
import { Registry } from "prom-client";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";

import { claimPort } from "../engines/free-port.ts";
import { subjectsOf } from "../shared/bus/subjects.ts";
import { readSettings } from "../shared/settings/settings.ts";
import { type ClientKey, type Epoch, roomKey, type RoomId, type Seq, type TenantId } from "../shared/ids.ts";
import { ensureLogStreams } from "../shared/io/log-stream.ts";
import type { Running } from "../shared/process/lifecycle.ts";
import { sharedSettings } from "../shared/settings/common-settings.ts";
import { SILENT_LOG } from "../shared/testing/silent-log.ts";
import { PROTOCOL_VERSION } from "../shared/wire/frames.ts";
import { type RealNats, startRealNats, until } from "../test/contract/real-nats.ts";
import { gatewaySettings } from "./config.ts";
import { startGateway } from "./main.ts";
import { FakeLog, FakeOwner } from "./testing/fake-owner.ts";
import { WireClient } from "./testing/wire-client.ts";

const SECRET = "a secret of at least 32 bytes, for tests only";
const ROOM = "notes";

let nats: RealNats;
let line: NatsConnection;
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
  line = await connect({ servers: nats.url, maxReconnectAttempts: -1, reconnectTimeWait: 20 });
  environment = `gateway${++runs}`;
  [gateways, clients, owners, log] = [[], [], [], new FakeLog()];
});
afterEach(async () => {
  for (const client of clients) client.close();
  for (const owner of owners) owner.stop();
  await Promise.all(gateways.map((gateway) => gateway.stop()));
  await line.close();
});

async function start(settings: Record<string, string> = {}): Promise<string> {
  const flags = { environment, natsUrl: nats.url, port: "0", jwtSecret: SECRET, drainMsMax: "0", ...settings };
  const config = { ...readSettings({ ...sharedSettings, ...gatewaySettings }, { flags, env: {} }), serverSilenceMsMax: 300 };
  const gateway = await startGateway(config, { log: SILENT_LOG, registry: new Registry() });
  gateways.push(gateway);
  return `127.0.0.1:${gateway.port}`;
}

function startOwner(name: string): FakeOwner {
  const owner = new FakeOwner(line, subjectsOf(environment), log, roomKey("default" as TenantId, ROOM as RoomId), name);
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

test("[GW1] an edit travels from one client over the owner to the other, and its author gets an ack", async () => {
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

/** Somebody else in the room, who must not notice. */
async function bystander(address: string): Promise<{ client: WireClient; unharmed: () => Promise<void> }> {
  const client = await enter(address, "bystander");
  const { channel } = await client.join(ROOM, "bystander");
  let counter = 0;
  return {
    client,
    unharmed: async () => {
      counter += 1;
      client.edit(channel, counter, `still here ${counter}`, counter - 1);
      const mine = `still here ${counter}`; // It may be in one record with a stranger's: then it comes back itself.
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

test("[GW2] each thing a stranger may do wrong has its close code, and nobody else notices", async () => {
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
    ["bytes that are no frame", 4103, (client) => client.sendBytes(Uint8Array.of(0x03, 0xff))],
    ["an empty frame", 4103, (client) => client.sendBytes(new Uint8Array(0))],
    ["a text", 4103, (client) => client.sendText("hello")],
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
  expect((await flooder.end()).code).toBe(1006); // Too large even to be read: the library breaks the line.
  await unharmed();
});

test("[GW3] a hello that does not come ends the connection", async () => {
  const client = await WireClient.open(`ws://${await start({ helloMsMax: "100" })}/v1/connect`);
  expect((await client.end()).code).toBe(4007);
});

test("[GW4] a token that runs out ends the open connection", async () => {
  const client = await WireClient.open(`ws://${await start({ jwtClockToleranceSeconds: "1" })}/v1/connect`);
  client.send(hello(await token("ann", {}, "3s")));
  await client.next("welcome");
  expect((await client.end()).code).toBe(4102);
});

test("[GW5] a token opens the rooms it names and gives the rights it lists", async () => {
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

test("[GW6] a killed owner's room is claimed elsewhere, and what it had not committed is sent again in order", async () => {
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

test("[GW7] an owner that falls silent is taken over from after the deadline, and named as the suspect", async () => {
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

test("[GW8] records lost on the way are asked for when a beacon or a later record shows it", async () => {
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

test("[GW9] after a crash of NATS rooms catch up and edits sent meanwhile arrive once", async () => {
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

test("[GW10] while no room server is there a join waits, and is then refused with a time to come back", async () => {
  const address = await start({ joinMsMax: "500" });
  const ann = await enter(address, "ann");
  void ann.join(ROOM, "annannann").catch(() => {});
  expect(await ann.next("join-refused")).toMatchObject({ reason: "unavailable", retryAfterMs: 1000 });
});

test("[GW11] a late joiner gets what was before it, once and in order, while edits go on", async () => {
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
    expect(first).toBeLessThanOrEqual(head + 1); // Never a hole.
    head = Math.max(head, last);
  }
});

test("[GW12] pages of other origins are turned away, and no more connections are taken than allowed", async () => {
  const address = await start({ allowedOrigins: "https://app.example", connectionsMax: "1" });
  const url = `ws://${address}/v1/connect`;
  await expect(WireClient.open(url, { origin: "https://evil.example" })).rejects.toThrow("HTTP 403");
  clients.push(await WireClient.open(url, { origin: "https://app.example" }));
  await expect(WireClient.open(url)).rejects.toThrow("HTTP 503");
});

test("[GW13] in production nothing is open by default", async () => {
  await expect(start({ production: "true" })).rejects.toThrow("COROOM_ALLOWED_ORIGINS");
  await expect(start({ jwtSecret: "" })).rejects.toThrow("COROOM_JWT_SECRET");
  await expect(start({ jwtSecret: "short" })).rejects.toThrow("too short");
});

/** Fills the room with edits of 100 KB until the author has so many acks. */
async function flood(author: WireClient, edits: number): Promise<void> {
  const { channel } = await author.join(ROOM, "floodflood");
  await author.flood(channel, edits, "x".repeat(100_000));
}

function seqsOf(client: WireClient): number[] {
  return [...client.committed().keys()];
}

test("[GW14] a client that takes nothing is closed with a code that lets it resume; the others go on", async () => {
  startOwner("rs-1");
  const address = await start({ editBurst: "100000", slowBytesMax: "200000", closingMsMax: "60000" });
  const [ann, stuck] = [await enter(address, "ann"), await enter(address, "stuck")];
  await stuck.join(ROOM, "stuckstuck");
  stuck.pause();
  const flooding = flood(ann, 120);
  const gauge = async () =>
    (await (await fetch(`http://${address}/metrics`)).text()).includes('coroom_gateway_closes_total{close="tooSlow"} 1');
  await until(gauge, "the slow client's close");
  stuck.resume(); // Before what it has not taken is let go, its close with it.
  expect((await stuck.end()).code).toBe(4002);
  await flooding;
  expect(seqsOf(stuck)).toEqual(seqsOf(stuck).map((_, index) => index + 1)); // No edit was skipped before the close.
});

test("[GW15] a client that falls behind the hard limit is cut, and no edit is skipped before", async () => {
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

test("[GW16] frames sent to one and frames for all keep their order: two who write at once each get every seq in turn", async () => {
  startOwner("rs-1");
  const address = await start({ editBurst: "10000" });
  const [ann, bob] = [await enter(address, "ann"), await enter(address, "bob")];
  const { channel } = await ann.join(ROOM, "annannann");
  await bob.join(ROOM, "bobbobbob");
  const edits = 500;
  for (let counter = 1; counter <= edits; counter++) {
    ann.edit(channel, counter, "from ann");
    bob.edit(channel, counter, "from bob");
    if (counter % 7 === 0) await new Promise(setImmediate); // Turns end between, so that batches differ in size and authors.
  }
  await until(() => log.edits.length === 2 * edits, "all edits in the log");
  for (const client of [ann, bob]) {
    await until(() => seqsInTurn(client).at(-1) === 2 * edits, "the last seq");
    expect(seqsInTurn(client)).toEqual(Array.from({ length: 2 * edits }, (_, index) => index + 1));
  }
});

/** What acks and committed frames told, in the order they came. */
function seqsInTurn(client: WireClient): number[] {
  return client.received.flatMap((frame) => {
    if (frame.type === "ack") return Array.from({ length: frame.count }, (_, index) => frame.seq + index);
    return frame.type === "committed" ? frame.edits.edits.map((_, index) => frame.edits.firstSeq + index) : [];
  });
}

test("[GW17] when NATS stays away clients are sent to another gateway, and new ones are not taken", async () => {
  startOwner("rs-1");
  const address = await start({ backboneLossMsMax: "100" });
  const ann = await enter(address, "ann");
  await ann.join(ROOM, "annannann");
  nats.signal("SIGKILL");
  expect((await ann.end()).code).toBe(4003);
  await expect(WireClient.open(`ws://${address}/v1/connect`)).rejects.toThrow("HTTP 503");
  await nats.crash(); // Starts it again.
  await until(async () => (await fetch(`http://${address}/readyz`)).status === 200, "the gateway to be ready again");
});

test("[GW25] when NATS is away clients are told, each with another time to move, and told again when it is back", async () => {
  startOwner("rs-1");
  const address = await start();
  const crowd = await Promise.all(["ann", "bob", "cid"].map((user) => enter(address, user)));
  const { channel } = await crowd[0]!.join(ROOM, "annannann");
  await nats.crash(async () => {
    const delays = await Promise.all(crowd.map(async (client) => (await client.next("degraded")).reconnectAfterMs));
    expect(delays.toSorted((a, b) => a - b)).toEqual([0, 7_500, 15_000]);
    crowd[0]!.edit(channel, 1, "kept meanwhile");
  });
  expect(await crowd[0]!.next("ack")).toMatchObject({ counter: 1 });
  for (const client of crowd) expect(await client.next("degraded")).toEqual({ type: "degraded", backbone: "found", reconnectAfterMs: 0 });
});

test("[GW26] who says HELLO while NATS is away is welcomed, told so at once, and told when it is back", async () => {
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

test("[GW18] a gateway that stops sends its clients on, and another can have its port at once", async () => {
  const port = String(await claimPort(0, "127.0.0.1", "port")); // None that others' outgoing connections may take meanwhile.
  await start({ port });
  await gateways.pop()!.stop();
  const address = await start({ port });
  const ann = await enter(address, "ann");
  await gateways.pop()!.stop();
  expect((await ann.end()).code).toBe(4001);
  expect(await start({ port })).toBe(address);
  await expect(start({ port })).rejects.toThrow("COROOM_PORT");
});

test("[GW19] a crowd joining one room at once asks its owner a few times, not once each", async () => {
  const owner = startOwner("rs-1");
  const address = await start({ ownerSilenceMsMax: "60000", recentMsMax: "60000" }); // Nothing is asked again for being late.
  const ann = await enter(address, "ann");
  const { channel } = await ann.join(ROOM, "annannann");
  ann.edit(channel, 1, "one");
  await ann.next("ack");
  const questions = () => owner.received.filter(({ kind }) => kind === "catch-up-request").length;
  const before = questions();
  const crowd = await Promise.all(Array.from({ length: 200 }, (_, index) => enter(address, `user${index}`)));
  await Promise.all(crowd.map((client, index) => client.join(ROOM, `client-${index}`)));
  await Promise.all(crowd.map((client) => client.until(() => client.committed().size === 1, "the edit")));
  expect(questions() - before).toBeLessThan(5);
});

test("[GW32] whoever is sent to a snapshot is in the room for the others once it has joined from there", async () => {
  const told: string[][] = [];
  startOwner("rs-1").onPresence = (message) => {
    if (message.kind === "members") told.push(message.entered.map(({ user }) => user));
  };
  const address = await start();
  const newcomer = await enter(address, "newcomer");
  newcomer.send({
    type: "join",
    request: 1,
    room: ROOM as RoomId,
    clientKey: "newcomer" as ClientKey,
    position: { epoch: 1 as Epoch, seq: 5 as Seq },
  }); // Nothing is there yet.
  await newcomer.next("resync-required");
  const member = await enter(address, "member");
  await member.join(ROOM, "membermem");
  await until(() => told.length > 0, "a member is told of");
  expect(new Set(told.flat())).toEqual(new Set(["member"])); // Once or, where nobody answers, again.
  await newcomer.join(ROOM, "newcomer");
  await until(() => told.at(-1)?.includes("newcomer"), "the newcomer is told of");
});

test("[GW20] a gateway that stops is unready at once, serves on while its clients move one after the other, and ends when all have", async () => {
  startOwner("rs-1");
  const address = await start({ drainMsMax: "60000" });
  const crowd = await Promise.all(["ann", "bob", "cid", "dan"].map((user) => enter(address, user)));
  const { channel } = await crowd[0]!.join(ROOM, "annannann");
  const stopped = gateways.pop()!.stop();
  const delays = await Promise.all(crowd.map(async (client) => (await client.next("going-away")).reconnectAfterMs));
  expect(delays.toSorted((a, b) => a - b)).toEqual([0, 11_250, 22_500, 33_750]);

  expect(await (await fetch(`http://${address}/readyz`)).text()).toBe("shutting down\n");
  await expect(WireClient.open(`ws://${address}/v1/connect`)).rejects.toThrow("HTTP 503");
  crowd[0]!.edit(channel, 1, "still served");
  expect(await crowd[0]!.next("ack")).toMatchObject({ counter: 1 });
  for (const client of crowd) client.close();
  await stopped;
});

test("[GW21] whoever has not moved when the time is up is closed, and what it sent reaches the log first", async () => {
  const owner = startOwner("rs-1");
  const address = await start({ drainMsMax: "1", ownerSilenceMsMax: "100" });
  const ann = await enter(address, "ann");
  const { channel } = await ann.join(ROOM, "annannann");
  owner.mode = "ignore-edits";
  ann.edit(channel, 1, "the last word");
  await until(() => owner.received.some(({ kind }) => kind === "edits"), "the edit at its owner");
  const stopped = gateways.pop()!.stop();
  expect((await ann.end()).code).toBe(4001);
  owner.mode = "serve";
  await stopped;
  expect(log.edits).toHaveLength(1);
});

test("[GW22] a renewed token keeps the connection past the old one's end, and what it does not open is left", async () => {
  startOwner("rs-1");
  const client = await WireClient.greet(`ws://${await start()}/v1/connect`, await token("ann", {}, "1m"));
  clients.push(client);
  const { channel } = await client.join(ROOM, "annannann");
  client.send({ type: "renew", token: await token("ann", { rights: ["read"] }, "1h") });
  expect((await client.next("renewed")).tokenExpiresInMs).toBeGreaterThan(600_000);
  expect(await client.next("left")).toMatchObject({ channel, reason: "rights-changed" });
  client.edit(channel, 1, "on its way"); // Passed over.
  expect((await client.join(ROOM, "annannann")).rights).toEqual({ read: true, write: false });
  client.send({ type: "renew", token: await token("ann", { rooms: [] }, "1h") });
  expect(await client.next("left")).toMatchObject({ channel, reason: "rights-revoked" });
  client.send({ type: "renew", token: await token("eve") });
  expect((await client.end()).code).toBe(4101);
  expect(log.edits).toHaveLength(0);
});

test("[GW23] a crowd that connects at once is let in at the rate allowed, and the rest told to come later", async () => {
  const address = await start({ connectsPerSecondMax: "2", connectQueueMax: "0", retryAfterMs: "7000", helloMsMax: "600000" });
  const crowd = await Promise.all(Array.from({ length: 40 }, () => WireClient.open(`ws://${address}/v1/connect`)));
  clients.push(...crowd);
  const away = async () =>
    Number(/turned_away_total\{reason="herd"\} (\d+)/.exec(await (await fetch(`http://${address}/metrics`)).text())?.[1]);
  await until(async () => (await away()) >= 10, "most of them turned away");
  await until(async () => (await away()) === crowd.filter((client) => client.closed !== undefined).length, "their closes");
  for (const client of crowd.filter(({ closed }) => closed !== undefined)) {
    expect(client.received.map((frame) => frame.type)).toEqual(["retry-later", "error"]);
    expect([client.closed?.code, await client.next("retry-later")]).toEqual([4005, { type: "retry-later", retryAfterMs: 7_000 }]);
  }
  const admitted = crowd.find(({ closed }) => closed === undefined)!;
  admitted.send(hello(await token("ann")));
  await admitted.next("welcome");
});

test("[GW24] whoever comes while it is busy waits for a turn in a short queue; who does not wait leaves it, and beyond it is turned away", async () => {
  const address = await start({ connectsPerSecondMax: "1", connectQueueMax: "30", helloMsMax: "600000" });
  const metric = async (sample: string) =>
    Number(new RegExp(`${sample} (\\d+)`).exec(await (await fetch(`http://${address}/metrics`)).text())?.[1]);
  const greeting = hello(await token("ann"));
  const crowd = await Promise.all(Array.from({ length: 50 }, () => WireClient.open(`ws://${address}/v1/connect`)));
  clients.push(...crowd);
  for (const client of crowd) client.send(greeting);
  const isClosed = ({ closed }: WireClient): boolean => closed !== undefined;
  await until(
    async () => (await metric('coroom_gateway_turned_away_total{reason="herd"}')) === crowd.filter(isClosed).length,
    "all for whom there is no place to be turned away",
  );
  expect(new Set(crowd.filter(isClosed).map(({ closed }) => closed?.code))).toEqual(new Set([4005]));

  const waiting = crowd.filter((client) => !isClosed(client) && client.received.length === 0);
  const patient = waiting.pop()!;
  for (const hasty of waiting) hasty.close();
  await patient.next("welcome"); // What it said while it waited is not lost.
  await until(async () => (await metric("coroom_gateway_connects_waiting")) === 0, "nobody to wait");
  expect(await metric("coroom_gateway_connect_wait_seconds_count")).toBeLessThan(20); // Who left took nobody's turn.
});

test("[GW31] a gateway whose clients are reached late is not ready for more, takes those who come, and is ready once they are reached", async () => {
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

test("[GW27] a gateway that would name other parts of the log than there are does not start", async () => {
  await ensureLogStreams(line, subjectsOf(environment), { partitions: 2, replicas: 1 });
  await expect(start()).rejects.toThrow(/set COROOM_LOG_PARTITIONS=2 for every role/);
  await start({ logPartitions: "2" });
});

test("[GW30] nor does one stay ready that was there before the log", async () => {
  const address = await start();
  await ensureLogStreams(line, subjectsOf(environment), { partitions: 2, replicas: 1 });
  const unready = await until(async () => {
    const answer = await fetch(`http://${address}/readyz`);
    return answer.status === 503 && answer.text();
  }, "the gateway to notice");
  expect(unready).toContain("COROOM_LOG_PARTITIONS");
  await expect(enter(address, "ann")).rejects.toThrow("HTTP 503");
});
