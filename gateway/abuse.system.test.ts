/** Whoever makes trouble is held off, then banned: by real sockets on two gateways, with a real Redis and without. */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { Redis } from "ioredis";
import { SignJWT } from "jose";
import { Registry } from "prom-client";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";

import type { Engine } from "../engines/engine.ts";
import { startRedisServer } from "../engines/redis-server.ts";
import { readSettings } from "../shared/config.ts";
import type { Running } from "../shared/lifecycle.ts";
import type { Log } from "../shared/log.ts";
import { sharedSettings } from "../shared/settings.ts";
import { type RealNats, startRealNats, until } from "../test/contract/real-nats.ts";
import { gatewaySettings } from "./config.ts";
import { startGateway } from "./main.ts";
import { WireClient } from "./testing/wire-client.ts";

const SECRET = "a secret of at least 32 bytes, for tests only";
const OPERATOR = "what operators show";
const silent: Log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

let nats: RealNats;
let environment: string;
let runs = 0;
let gateways: Running[];
let clients: WireClient[];

let redis: Engine;
let folder: string;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "coroom-abuse-"));
  [nats, redis] = await Promise.all([startRealNats(), startRedisServer({ dataDir: join(folder, "redis") })]);
});
afterAll(async () => {
  await Promise.all([nats.stop(), redis.stop()]);
  rmSync(folder, { recursive: true, force: true });
});
beforeEach(() => {
  environment = `abuse${++runs}`;
  [gateways, clients] = [[], []];
});
afterEach(async () => {
  for (const client of clients) client.close();
  await Promise.all(gateways.map((gateway) => gateway.stop()));
});

async function start(settings: Record<string, string> = {}, redisUrl = ""): Promise<string> {
  const flags = { environment, natsUrl: nats.url, port: "0", jwtSecret: SECRET, internalSecret: OPERATOR, drainMsMax: "0", abusePointsMax: "30", clientAddressHeader: "x-forwarded-for", ...settings };
  const config = { ...readSettings({ ...sharedSettings, ...gatewaySettings }, { flags, env: {} }), serverSilenceMsMax: 300, redisUrl };
  const gateway = await startGateway(config, { log: silent, registry: new Registry() });
  gateways.push(gateway);
  return `127.0.0.1:${gateway.port}`;
}

function tokenOf(user: string, claims: object = {}): Promise<string> {
  return new SignJWT({ tenant: "acme", rooms: ["*"], rights: ["read", "write"], ...claims }).setProtectedHeader({ alg: "HS256" }).setSubject(user).setExpirationTime("1h").sign(new TextEncoder().encode(SECRET));
}

async function greet(address: string, user: string, from = ""): Promise<WireClient> {
  const client = await WireClient.open(`ws://${address}/v1/connect`, from === "" ? {} : { "x-forwarded-for": from });
  clients.push(client);
  client.send({ type: "hello", version: 1, token: await tokenOf(user), agent: "test" });
  return client;
}

async function metric(address: string, sample: string): Promise<number> {
  const text = await (await fetch(`http://${address}/metrics`)).text();
  return Number(text.split("\n").find((each) => each.startsWith(`${sample} `))?.split(" ")[1] ?? 0);
}

/** Welcomed, or how it was closed. */
async function outcome(client: WireClient): Promise<"welcome" | number> {
  await client.until(() => client.closed !== undefined || client.received.some(({ type }) => type === "welcome"), "an answer");
  return client.closed?.code ?? "welcome";
}

/** Comes back and misbehaves until it is not let in any more. */
async function misbehave(address: string, user: string, from: string, fault: (client: WireClient) => void): Promise<(number | "welcome")[]> {
  const seen: (number | "welcome")[] = [];
  for (let time = 0; time < 10 && seen.at(-1) !== 4009 && seen.at(-1) !== 4006; time++) {
    const client = await greet(address, user, from);
    seen.push(await outcome(client));
    if (seen.at(-1) !== "welcome") break;
    fault(client);
    await client.end();
  }
  return seen;
}

const garbage = (client: WireClient): void => client.sendBytes(Uint8Array.of(0x02, 0xff));

test("[ABS1] a user whose frames are none is held off, then banned on all gateways; others at its address are not", async () => {
  const [one, two] = [await start(), await start()];
  expect(await misbehave(one, "eve", "203.0.113.7", garbage)).toEqual(["welcome", 4006]); // 15 of 30 points: held off.
  expect(await metric(one, 'coroom_gateway_abuse_total{measure="hold-off",suspect="user"}')).toBe(1);
  const both = await Promise.all([1, 2, 3].map(() => greet(two, "eve", "203.0.113.7")));
  for (const client of both) await client.next("welcome");
  for (const client of both) garbage(client);
  await until(async () => (await metric(two, 'coroom_gateway_abuse_total{measure="ban",suspect="user"}')) === 1, "the ban");
  for (const address of [one, two]) {
    const back = await greet(address, "eve");
    expect((await back.next("retry-later")).retryAfterMs).toBeGreaterThan(50_000);
    expect((await back.end()).code).toBe(4009);
    expect(await outcome(await greet(address, "ann", "203.0.113.7"))).toBe("welcome");
  }
});

test("[ABS2] an address that sends what is no token, or storms in, is banned though nobody knows who it is; the others come in", async () => {
  const address = await start({ connectionsPerIpMax: "10" });
  const from = "203.0.113.9";
  const codes = new Set<number>();
  for (let time = 0; time < 20 && !codes.has(4009); time++) {
    const client = await WireClient.open(`ws://${address}/v1/connect`, { "x-forwarded-for": from });
    clients.push(client);
    client.sendBytes(Uint8Array.of(0x03, 0xff));
    codes.add((await client.end()).code);
    if (codes.has(4006)) break;
  }
  expect([...codes]).toEqual([4103, 4006]); // Refused, and then not even listened to.
  expect(await outcome(await greet(address, "ann", "203.0.113.10"))).toBe("welcome");
  expect(await metric(address, 'coroom_gateway_abuse_total{measure="hold-off",suspect="address"}')).toBeGreaterThan(0);
});

test("[ABS3] a ban outlives the gateways where there is a Redis", async () => {
  const first = await start({}, redis.url);
  await Promise.all([1, 2, 3].map(() => greet(first, "eve"))).then(async (all) => {
    for (const client of all) await client.next("welcome");
    for (const client of all) garbage(client);
  });
  await until(async () => (await metric(first, "coroom_gateway_sanctions")) === 1, "the ban");
  await gateways.pop()!.stop();
  const second = await start({}, redis.url);
  await until(async () => (await metric(second, "coroom_gateway_sanctions")) === 1, "the ban after the restart");
  expect(await outcome(await greet(second, "eve"))).toBe(4009);
});

test("[ABS4] while Redis is away nobody is locked out and nobody waits; a ban made meanwhile is kept when it is back", async () => {
  const address = await start({}, redis.url);
  redis.kill("SIGKILL");
  await redis.exited;
  expect(await outcome(await greet(address, "ann"))).toBe("welcome");
  await Promise.all([1, 2, 3].map(() => greet(address, "mallory"))).then(async (all) => {
    for (const client of all) await client.next("welcome");
    for (const client of all) garbage(client);
  });
  await until(async () => (await metric(address, "coroom_gateway_sanctions")) > 0, "the ban");
  expect(await outcome(await greet(address, "mallory"))).toBe(4009);
  expect(await outcome(await greet(address, "bob"))).toBe("welcome");
  await redis.restart();
  const line = new Redis(redis.url);
  await until(async () => Object.keys(await line.hgetall(`${environment}:sanctions`)).length === 1, "the ban in Redis");
  line.disconnect();
}, 40_000);
