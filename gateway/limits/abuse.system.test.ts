/** Clients with faults are delayed, then banned: real sockets on two gateways, with and without a real Redis. */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Redis } from "ioredis";
import { afterAll, beforeAll, expect, test } from "vitest";

import type { Engine } from "../../engines/engine.ts";
import { until } from "../../test/contract/real-nats.ts";
import { startTestRedis } from "../../test/contract/test-engines.ts";
import { gatewayRig, metric, OPERATOR, outcomeOf, ROOM, tokenOf } from "../testing/gateway-rig.ts";
import type { WireClient } from "../testing/wire-client.ts";

const rig = gatewayRig("abuse", { abusePointsMax: "26", abuseBanMs: "600000" });
let redis: Engine;
let folder: string;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "coroom-abuse-"));
  redis = await startTestRedis({ dataDir: join(folder, "redis") });
});
afterAll(async () => {
  await redis.stop();
  rmSync(folder, { recursive: true, force: true });
});

/** Reconnects and misbehaves until the gateway refuses the connection. */
async function misbehave(
  address: string,
  user: string,
  from: string,
  fault: (client: WireClient) => void,
): Promise<(number | "welcome")[]> {
  const seen: (number | "welcome")[] = [];
  for (let time = 0; time < 10 && seen.at(-1) !== 4009 && seen.at(-1) !== 4006; time++) {
    const client = await rig.greet(address, user, { from });
    seen.push(await outcomeOf(client));
    if (seen.at(-1) !== "welcome") break;
    fault(client);
    await client.end();
  }
  return seen;
}

/** Waits until Redis holds the only ban. */
async function keptInRedis(): Promise<void> {
  const redisClient = new Redis(redis.url);
  await until(async () => Object.keys(await redisClient.hgetall(`${rig.environment}:sanctions`)).length === 1, "the ban in Redis");
  redisClient.disconnect();
}

const garbage = (client: WireClient): void => client.sendBytes(Uint8Array.of(0x02, 0xff));

test("[ABS1] a user who sends invalid frames is delayed, then banned on all gateways; others at the address are not", async () => {
  const [one, two] = [await rig.start(), await rig.start()];
  const tabs = await Promise.all([1, 2, 3].map(() => rig.greet(two, "eve", { from: "203.0.113.7" })));
  for (const client of tabs) await client.next("welcome");
  expect(await misbehave(one, "eve", "203.0.113.7", garbage)).toEqual(["welcome", 4006]); // A delay begins above 13 of 26 points, and one such frame counts 15.
  expect(await metric(one, 'coroom_gateway_abuse_total{measure="hold-off",suspect="user"}')).toBe(1);
  for (const client of tabs) garbage(client);
  await until(async () => (await metric(two, 'coroom_gateway_abuse_total{measure="ban",suspect="user"}')) === 1, "the ban");
  for (const address of [one, two]) {
    await until(async () => (await metric(address, "coroom_gateway_sanctions")) === 1, "the ban to be known");
    const back = await rig.greet(address, "eve");
    expect((await back.next("retry-later")).retryAfterMs).toBeGreaterThan(300_000);
    expect((await back.end()).code).toBe(4009);
    expect(await outcomeOf(await rig.greet(address, "ann", { from: "203.0.113.7" }))).toBe("welcome");
  }
});

test("[ABS2] an address that sends frames out of turn without a known user is delayed, and another address is not", async () => {
  const address = await rig.start({ connectionsPerIpMax: "10" });
  const from = "203.0.113.9";
  const codes = new Set<number>();
  for (let time = 0; time < 20 && !codes.has(4009); time++) {
    const client = await rig.connect(address, from);
    client.send({ type: "ping", nonce: 1 });
    codes.add((await client.end()).code);
    if (codes.has(4006)) break;
  }
  expect([...codes]).toEqual([4103, 4006]); // Closed for a frame before HELLO, then refused when it connects.
  expect(await outcomeOf(await rig.greet(address, "ann", { from: "203.0.113.10" }))).toBe("welcome");
  expect(await metric(address, 'coroom_gateway_abuse_total{measure="hold-off",suspect="address"}')).toBeGreaterThan(0);
});

test("[ABS3] a ban in Redis outlives the gateways", async () => {
  const first = await rig.start({}, redis.url);
  await Promise.all([1, 2, 3].map(() => rig.greet(first, "eve"))).then(async (all) => {
    for (const client of all) await client.next("welcome");
    for (const client of all) garbage(client);
  });
  await keptInRedis();
  await rig.stop(first);
  const second = await rig.start({}, redis.url);
  await until(async () => (await metric(second, "coroom_gateway_sanctions")) === 1, "the ban after the restart");
  expect(await outcomeOf(await rig.greet(second, "eve"))).toBe(4009);
});

test("[ABS4] while Redis is unreachable, no user is locked out or waits; a ban from this time is stored afterwards", async () => {
  const address = await rig.start({}, redis.url);
  redis.kill("SIGKILL");
  await redis.exited;
  expect(await outcomeOf(await rig.greet(address, "ann"))).toBe("welcome");
  await Promise.all([1, 2, 3].map(() => rig.greet(address, "mallory"))).then(async (all) => {
    for (const client of all) await client.next("welcome");
    for (const client of all) garbage(client);
  });
  await until(async () => (await metric(address, "coroom_gateway_sanctions")) > 0, "the ban");
  expect(await outcomeOf(await rig.greet(address, "mallory"))).toBe(4009);
  expect(await outcomeOf(await rig.greet(address, "bob"))).toBe("welcome");
  await redis.restart();
  await keptInRedis();
});

test("[ABS5] scores are added over all gateways: a user with faults at one is delayed at another", async () => {
  const [one, two] = [await rig.start({ abusePointsMax: "100" }), await rig.start({ abusePointsMax: "100" })];
  for (const address of [one, one, one, two]) {
    const eve = await rig.greet(address, "eve");
    await eve.next("welcome");
    garbage(eve);
    await eve.end();
  }
  const isHeldOff = async (): Promise<boolean> => {
    await new Promise((resolve) => setTimeout(resolve, 200)); // Continuous attempts would exceed the rate of connections.
    return (await outcomeOf(await rig.greet(two, "eve"))) === 4006;
  };
  await until(isHeldOff, "the other gateway to know");
  expect(await metric(two, 'coroom_gateway_abuse_total{measure="hold-off",suspect="user"}')).toBeGreaterThan(0);
  expect(await outcomeOf(await rig.greet(two, "ann"))).toBe("welcome");
});

test("[ABS6] each pattern of abuse is counted by its name, and leads to a delay or a ban", async () => {
  const address = await rig.start({
    abusePointsMax: "4",
    helloMsMax: "300",
    frameBytesMax: "2000",
    editBytesMax: "1000",
    controlBurst: "50",
  });
  const greeted = async (user: string, err: (client: WireClient) => void): Promise<WireClient> =>
    erring(await rig.greet(address, user), err);
  const patterns: readonly [fault: string, err: () => Promise<WireClient>][] = [
    ["bad-frame", () => greeted("bad-frame", garbage)],
    ["too-large", () => greeted("too-large", (client) => client.sendBytes(new Uint8Array(3_000)))],
    ["too-fast", () => greeted("too-fast", (client) => times(60, (nonce) => client.send({ type: "ping", nonce })))],
    ["connect", () => greeted("connect", () => {})],
    ["join", () => greeted("join", (client) => times(48, (room) => void client.join(`room-${room}`, "joinjoinj").catch(() => {})))],
    [
      "bad-token",
      async () =>
        erring(await rig.connect(address, "203.0.113.20"), (client) =>
          client.send({ type: "hello", version: 1, token: "none", agent: "" }),
        ),
    ],
    ["no-hello", () => rig.connect(address, "203.0.113.21")],
  ];
  for (const [fault, err] of patterns) {
    const isKeptOut = async (): Promise<boolean> => [4006, 4009].includes(Number(await outcomeOf(await err())));
    await until(isKeptOut, `${fault} to be answered`);
    expect(await metric(address, `coroom_gateway_faults_total{fault="${fault}"}`), fault).toBeGreaterThan(0);
  }
});

test("[ABS7] a tenant whose users have faults one after the other is delayed; other tenants are not", async () => {
  const address = await rig.start({ tenantAbusePointsMax: "40", abusePointsMax: "1000" });
  for (const user of ["a", "b"]) {
    const client = await rig.greet(address, user);
    await client.next("welcome");
    garbage(client);
    await client.end();
  }
  const next = await rig.greet(address, "ann");
  expect([(await next.next("retry-later")).retryAfterMs > 0, (await next.end()).code]).toEqual([true, 4006]);
  expect(await metric(address, 'coroom_gateway_abuse_total{measure="hold-off",suspect="tenant"}')).toBe(1);
  expect(await outcomeOf(await rig.greet(address, "ann", { tenant: "other" }))).toBe("welcome");
});

test("[ABS8] a ban from all rooms, or from one room, applies to HTTP as it does to sockets", async () => {
  const address = await rig.start();
  const ban = (body: object) =>
    fetch(`http://${address}/v1/admin/ban`, {
      method: "POST",
      headers: { authorization: `Bearer ${OPERATOR}` },
      body: JSON.stringify({ tenant: "acme", seconds: 600, reason: "spam", ...body }),
    });
  const read = async (user: string, room: string): Promise<number> =>
    (await fetch(`http://${address}/v1/rooms/${room}/snapshot`, { headers: { authorization: `Bearer ${await tokenOf(user)}` } })).status;
  expect([await read("eve", ROOM), await read("bob", ROOM)]).toEqual([503, 503]); // Admitted: no document service exists here.
  await ban({ user: "eve" });
  await ban({ user: "bob", room: ROOM });
  expect([await read("eve", ROOM), await read("bob", ROOM), await read("bob", "other"), await read("ann", ROOM)]).toEqual([
    401, 403, 503, 503,
  ]);
});

test("[ABS14] an address that repeats bad tokens over HTTP is banned, and a wrong operator secret counts as one", async () => {
  const address = await rig.start();
  const headers = { "x-forwarded-for": "203.0.113.30", "authorization": "Bearer none" };
  const show = async (path: string): Promise<string> => (await (await fetch(`http://${address}${path}`, { headers })).json()).message;
  const messages = [];
  for (const path of ["snapshot", "document", "snapshot", "document", "snapshot"]) messages.push(await show(`/v1/rooms/${ROOM}/${path}`));
  messages.push(await show("/v1/admin/bans"));
  expect(messages.filter((message) => message.includes("banned"))).toEqual([]);
  expect(await metric(address, 'coroom_gateway_faults_total{fault="bad-token"}')).toBe(6); // Each counts 5 points, and 26 points are a ban.
  expect(await show(`/v1/rooms/${ROOM}/snapshot`)).toContain("banned");
  const back = await rig.greet(address, "ann", { from: "203.0.113.30" });
  expect(await outcomeOf(back)).toBe(4009);
  expect(await outcomeOf(await rig.greet(address, "ann", { from: "203.0.113.31" }))).toBe("welcome");
});

test("[ABS9] a banned address is refused over HTTP with any token; an operator at that address is not", async () => {
  const address = await rig.start();
  const from = "203.0.113.9";
  const headers = { "x-forwarded-for": from };
  const operate = (path: string, body: object): Promise<Response> =>
    fetch(`http://${address}/v1/admin/${path}`, {
      method: "POST",
      headers: { ...headers, authorization: `Bearer ${OPERATOR}` },
      body: JSON.stringify(body),
    });
  const read = async (more: Record<string, string>): Promise<[number, string]> => {
    const answer = await fetch(`http://${address}/v1/rooms/${ROOM}/snapshot`, {
      headers: { authorization: `Bearer ${await tokenOf("eve")}`, ...more },
    });
    return [answer.status, await answer.text()];
  };
  expect((await read(headers))[0], "let through: no document service is there").toBe(503);
  expect((await operate("ban", { address: from, seconds: 600, reason: "spam" })).status).toBe(200);
  expect(await read(headers)).toEqual([401, expect.stringContaining("banned for a time: spam")]);
  expect((await read({}))[0]).toBe(503);
  expect((await operate("lift", { address: from })).status).toBe(200);
  expect((await read(headers))[0]).toBe(503);
});

test("[ABS10] a connected user renews its token while its tenant is delayed, and that counts as no fault", async () => {
  const address = await rig.start({ tenantAbusePointsMax: "40", abusePointsMax: "1000" });
  const ann = await rig.greet(address, "ann");
  await ann.next("welcome");
  for (const user of ["a", "b"]) {
    const client = await rig.greet(address, user);
    await client.next("welcome");
    garbage(client);
    await client.end();
  }
  expect(await outcomeOf(await rig.greet(address, "bob"))).toBe(4006);
  const connects = await metric(address, 'coroom_gateway_faults_total{fault="connect"}');
  ann.send({ type: "renew", token: await tokenOf("ann") });
  expect((await ann.next("renewed")).tokenExpiresInMs).toBeGreaterThan(0);
  expect(await metric(address, 'coroom_gateway_faults_total{fault="connect"}')).toBe(connects);
});

test("[ABS11] a user who is banned during many joins becomes a member of none, and the rooms are released", async () => {
  const address = await rig.start({ abusePointsMax: "1", joinMsMax: "600000", roomLingerMs: "1" });
  const eve = await rig.greet(address, "eve");
  times(40, (room) => void eve.join(`room-${room}`, "eveeveeve").catch(() => {})); // Sent before WELCOME.
  expect((await eve.end()).code).toBe(4009);
  await until(async () => (await metric(address, "coroom_gateway_rooms")) === 0, "the rooms to be released");
});

function erring(client: WireClient, err: (client: WireClient) => void): WireClient {
  err(client);
  return client;
}

function times(count: number, run: (index: number) => void): void {
  for (let index = 0; index < count; index++) run(index);
}

test("[ABS12] a delayed user who returns early does not affect others at the address", async () => {
  const address = await rig.start({ tenantAbusePointsMax: "40" });
  const from = "203.0.113.30";
  for (const user of ["a", "b"]) {
    const client = await rig.greet(address, user);
    await client.next("welcome");
    garbage(client);
    await client.end();
  }
  for (const time of [1, 2, 3, 4]) expect([time, await outcomeOf(await rig.greet(address, "ann", { from }))]).toEqual([time, 4006]);
  expect(await metric(address, 'coroom_gateway_faults_total{fault="too-fast"}')).toBe(0);
  expect(await outcomeOf(await rig.greet(address, "ann", { tenant: "other", from }))).toBe("welcome");
});

test("[ABS13] a connection from a banned address is refused at once and delays no other connection", async () => {
  const address = await rig.start({ connectsPerSecondMax: "1", connectQueueMax: "2" });
  const from = "203.0.113.31";
  await fetch(`http://${address}/v1/admin/ban`, {
    method: "POST",
    headers: { authorization: `Bearer ${OPERATOR}` },
    body: JSON.stringify({ address: from, seconds: 600 }),
  });
  const banned = await Promise.all(Array.from({ length: 10 }, () => rig.connect(address, from)));
  for (const client of banned) expect((await client.end()).code).toBe(4009);
  expect(await outcomeOf(await rig.greet(address, "ann"))).toBe("welcome");
  expect(await metric(address, "coroom_gateway_connect_wait_seconds_count")).toBe(0);
});
