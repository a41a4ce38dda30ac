/** Each limit, reached by real sockets on gateways that share a real nats-server: its error, its hint, its metric. */

import { SignJWT } from "jose";
import { connect, type NatsConnection } from "nats";
import { Registry } from "prom-client";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";

import { encodeCountsReport } from "../shared/bus/counts-report.ts";
import { subjectsOf } from "../shared/bus/subjects.ts";
import { readSettings } from "../shared/config.ts";
import { roomKey, type RoomId, type TenantId } from "../shared/ids.ts";
import type { Running } from "../shared/lifecycle.ts";
import type { Log } from "../shared/log.ts";
import { sharedSettings } from "../shared/settings.ts";
import { type RealNats, startRealNats, until } from "../test/contract/real-nats.ts";
import { gatewaySettings } from "./config.ts";
import { startGateway } from "./main.ts";
import { FakeLog, FakeOwner } from "./testing/fake-owner.ts";
import { WireClient } from "./testing/wire-client.ts";

const SECRET = "a secret of at least 32 bytes, for tests only";
const ROOM = "notes";
const silent: Log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

let nats: RealNats;
let line: NatsConnection;
let environment: string;
let runs = 0;
let gateways: Map<string, Running>;
let clients: WireClient[];
let owners: FakeOwner[];

beforeAll(async () => {
  nats = await startRealNats();
});
afterAll(() => nats.stop());
beforeEach(async () => {
  line = await connect({ servers: nats.url });
  environment = `limits${++runs}`;
  [gateways, clients, owners] = [new Map(), [], []];
});
afterEach(async () => {
  for (const client of clients) client.close();
  for (const owner of owners) owner.stop();
  await Promise.all([...gateways.values()].map((gateway) => gateway.stop()));
  await line.close();
});

async function start(settings: Record<string, string> = {}): Promise<string> {
  const flags = { environment, natsUrl: nats.url, port: "0", jwtSecret: SECRET, drainMsMax: "0", retryAfterMs: "7000", abusePointsMax: "1000000", ...settings };
  const config = { ...readSettings({ ...sharedSettings, ...gatewaySettings }, { flags, env: {} }), serverSilenceMsMax: 300 };
  const gateway = await startGateway(config, { log: silent, registry: new Registry() });
  const address = `127.0.0.1:${gateway.port}`;
  gateways.set(address, gateway);
  return address;
}

function startOwner(): FakeOwner {
  const owner = new FakeOwner(line, subjectsOf(environment), new FakeLog(), roomKey("default" as TenantId, ROOM as RoomId), "rs-1");
  owners.push(owner);
  return owner;
}

async function open(address: string, from?: string): Promise<WireClient> {
  const client = await WireClient.open(`ws://${address}/v1/connect`, from === undefined ? {} : { "x-forwarded-for": from });
  clients.push(client);
  return client;
}

function tokenOf(user: string, claims: object = {}): Promise<string> {
  return new SignJWT({ rooms: ["*"], rights: ["read", "write"], ...claims }).setProtectedHeader({ alg: "HS256" }).setSubject(user).setExpirationTime("1h").sign(new TextEncoder().encode(SECRET));
}

async function greet(address: string, user: string, claims: object = {}): Promise<WireClient> {
  const client = await open(address);
  client.send({ type: "hello", version: 1, token: await tokenOf(user, claims), agent: "test" });
  return client;
}

async function metric(address: string, sample: string): Promise<number> {
  const text = await (await fetch(`http://${address}/metrics`)).text();
  return Number(text.split("\n").find((each) => each.startsWith(`${sample} `))?.split(" ")[1] ?? 0);
}

/** It hears the counts of another. */
async function acquainted(address: string): Promise<void> {
  await until(async () => (await metric(address, "coroom_gateway_count_sources")) > 0, "another's counts");
}

/** Tries until the outcome is there: reports come every second. */
const WHEN_TOLD_MS = 8_000;

test("[LIM1] an address has so many connections on all gateways together, and those of a gateway that died are forgotten", async () => {
  const settings = { connectionsPerIpMax: "3", clientAddressHeader: "x-forwarded-for" };
  const [one, two] = [await start(settings), await start(settings)];
  const here = "203.0.113.7";
  for (let time = 0; time < 3; time++) await open(one, here);
  await expect(open(one, here)).rejects.toThrow("HTTP 429");
  expect(await metric(one, 'coroom_gateway_turned_away_total{reason="ip"}')).toBe(1);
  const isRefused = async (): Promise<boolean> => {
    await new Promise((resolve) => setTimeout(resolve, 200)); // Knocking at full speed is a storm, and answered as one.
    return open(two, here).then((client) => (client.close(), false), (error: Error) => error.message === "HTTP 429");
  };
  await until(isRefused, "the other gateway to know", WHEN_TOLD_MS);
  await open(two, "203.0.113.8");

  await gateways.get(one)!.stop();
  await until(() => open(two, here).catch(() => undefined), "the dead gateway's counts to lapse", WHEN_TOLD_MS);
}, 30_000);

test("[LIM2] a tenant has so many connections on all gateways together; the next are closed with a time to come back", async () => {
  const [one, two] = [await start({ connectionsPerTenantMax: "2" }), await start({ connectionsPerTenantMax: "2" })];
  await acquainted(two);
  await (await greet(one, "ann", { tenant: "acme" })).next("welcome");
  await (await greet(one, "bob", { tenant: "acme" })).next("welcome");
  const third = await greet(one, "cid", { tenant: "acme" });
  expect([await third.next("retry-later"), (await third.end()).code]).toEqual([{ type: "retry-later", retryAfterMs: 7_000 }, 4008]);
  expect(await metric(one, 'coroom_gateway_limits_reached_total{limit="tenant"}')).toBe(1);
  await until(async () => {
    const fourth = await greet(two, "dan", { tenant: "acme" });
    await fourth.until(() => fourth.closed !== undefined || fourth.received.length > 0, "an answer");
    fourth.close();
    return fourth.received[0]?.type === "retry-later";
  }, "the other gateway to know", WHEN_TOLD_MS);
  await (await greet(two, "eve", { tenant: "other" })).next("welcome");
}, 30_000);

test("[LIM3] a room has so many members on all gateways together; whoever is in may join again", async () => {
  startOwner();
  const [one, two] = [await start({ participantsPerRoomMax: "2" }), await start({ participantsPerRoomMax: "2" })];
  await acquainted(two);
  const ann = await greet(one, "ann");
  await ann.join(ROOM, "annannann");
  await (await greet(one, "bob")).join(ROOM, "bobbobbob");
  await ann.join(ROOM, "annannan2"); // In already.
  const refused = { reason: "room-full", retryAfterMs: 10_000 };
  const cid = await greet(one, "cid");
  void cid.join(ROOM, "cidcidcid").catch(() => {});
  expect(await cid.next("join-refused")).toMatchObject(refused);
  expect(await metric(one, 'coroom_gateway_limits_reached_total{limit="room"}')).toBe(1);
  await until(async () => {
    const dan = await greet(two, "dan");
    void dan.join(ROOM, "dandandan").catch(() => {});
    await dan.until(() => dan.received.length > 1, "an answer");
    dan.close();
    return dan.received.find((frame) => frame.type === "join-refused");
  }, "the other gateway to know", WHEN_TOLD_MS);
}, 30_000);

test("[LIM4] a tenant has so many open rooms; a join that would open another is refused, those open are joined as before", async () => {
  const owner = startOwner();
  const address = await start({ roomsPerTenantMax: "2" });
  const ann = await greet(address, "ann");
  await ann.join(ROOM, "annannann");
  const tell = (rooms: number): void => line.publish(subjectsOf(environment).counts, encodeCountsReport({ source: owner.server, counts: [{ kind: "tenant-rooms", key: "default", count: rooms }] }, 1_000));
  tell(2);
  await acquainted(address);
  void ann.join("another", "annannann").catch(() => {});
  expect(await ann.next("join-refused")).toMatchObject({ reason: "tenant-rooms", retryAfterMs: 10_000 });
  expect(await metric(address, 'coroom_gateway_limits_reached_total{limit="tenant-rooms"}')).toBe(1);
  await (await greet(address, "bob")).join(ROOM, "bobbobbob");
});

test("[LIM5] a tenant sends so many edits in a second; the rest are refused for a moment and reach the room when sent again", async () => {
  startOwner();
  const address = await start({ tenantEditsPerSecondMax: "5", editBurst: "100" });
  const ann = await greet(address, "ann");
  const { channel } = await ann.join(ROOM, "annannann");
  for (let counter = 1; counter <= 8; counter++) ann.edit(channel, counter, `${counter}`);
  const { counter, ...nack } = await ann.next("nack");
  expect(nack).toMatchObject({ reason: "tenant-rate", expected: counter, retryAfterMs: 1_000 });
  expect(await metric(address, 'coroom_gateway_limits_reached_total{limit="tenant-edits"}')).toBeGreaterThan(0);
  const bob = await greet(address, "bob");
  await bob.join(ROOM, "bobbobbob");
  await until(() => {
    const next = bob.committed().size + 1;
    if (next <= 8) ann.edit(channel, next, `${next}`, next - 1);
    return next > 8;
  }, "all eight edits", WHEN_TOLD_MS);
  expect([...bob.committed().values()]).toEqual(["1", "2", "3", "4", "5", "6", "7", "8"]);
});

test("[LIM6] a connection sends so many bytes, edits and frames; over it is closed with a time to come back", async () => {
  startOwner();
  const address = await start({ bytesBurst: "50000", bytesPerSecond: "10000", controlBurst: "20", resendBurst: "3" });
  const faults: [string, (client: WireClient, channel: number) => void][] = [
    ["bytes", (client, channel) => [1, 2, 3].forEach((counter) => client.edit(channel, counter, "x".repeat(20_000)))],
    ["edits", (client, channel) => Array.from({ length: 60 }, (_, index) => client.edit(channel, index + 1, "x"))],
    ["frames", (client) => Array.from({ length: 30 }, (_, index) => client.send({ type: "ping", nonce: index }))],
  ];
  for (const [limit, flood] of faults) {
    const client = await greet(address, limit);
    flood(client, (await client.join(ROOM, "annannann")).channel);
    expect([limit, await client.next("retry-later"), (await client.end()).code]).toEqual([limit, { type: "retry-later", retryAfterMs: 7_000 }, 4006]);
    expect(await metric(address, `coroom_gateway_limits_reached_total{limit="${limit}"}`)).toBe(1);
  }
});

test("[LIM7] a user fetches so many snapshots, and all together so many; the next are told when to ask again", async () => {
  const address = await start({ snapshotBurst: "2", snapshotsPerSecond: "1", gatewaySnapshotBurst: "3", gatewaySnapshotsPerSecond: "1" });
  const fetchAs = async (user: string): Promise<Response> => fetch(`http://${address}/v1/rooms/${ROOM}/snapshot`, { headers: { authorization: `Bearer ${await tokenOf(user)}` } });
  const statuses = async (...users: string[]) => {
    const seen: number[] = [];
    for (const user of users) seen.push((await fetchAs(user)).status);
    return seen;
  };
  expect(await statuses("ann", "ann", "ann", "bob", "bob")).toEqual([503, 503, 429, 503, 429]); // 503: no document service is there.
  expect((await fetchAs("bob")).headers.get("retry-after")).toBe("2");
  expect(await metric(address, 'coroom_gateway_limits_reached_total{limit="snapshots"}')).toBeGreaterThanOrEqual(1);
  expect(await metric(address, 'coroom_gateway_limits_reached_total{limit="gateway-snapshots"}')).toBeGreaterThanOrEqual(1);
});
