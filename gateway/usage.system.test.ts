/** Usage by tenant and day from real clients, over a real Redis, to the HTTP answer. */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { afterAll, beforeAll, expect, test } from "vitest";

import type { Engine } from "../engines/engine.ts";
import { encodeJson } from "../shared/bus/json-messages.ts";
import type { StoragePeaks } from "../shared/bus/storage-messages.ts";
import type { TenantId } from "../shared/ids.ts";
import { dayOf } from "../shared/time/usage-day.ts";
import { until } from "../test/contract/real-nats.ts";
import { startTestRedis } from "../test/contract/test-engines.ts";
import { gatewayRig, metric, OPERATOR, outcomeOf, ROOM, TENANT, tokenOf } from "./testing/gateway-rig.ts";

const rig = gatewayRig("usage", { usageFlushMs: "1000", usageSampleMs: "1000", usageRowsMax: "2" });
let folder: string;
let redis: Engine;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "coroom-usage-"));
  redis = await startTestRedis({ dataDir: join(folder, "redis") });
});
afterAll(async () => {
  await redis.stop();
  rmSync(folder, { recursive: true, force: true });
});

type Row = Readonly<Record<string, number>>;

function read(address: string, query = "", bearer = OPERATOR): Promise<Response> {
  return fetch(`http://${address}/v1/usage${query}`, { headers: { authorization: `Bearer ${bearer}` } });
}

/** The sum of a tenant's days. Undefined: it has no usage. */
async function usageOf(address: string, tenant = TENANT): Promise<Row | undefined> {
  const response = await read(address, `?tenant=${tenant}`);
  if (response.status !== 200) return undefined;
  const { usage } = (await response.json()) as { usage: Row[] };
  if (usage.length === 0) return undefined;
  const names = Object.keys(usage[0]!).filter((name) => name !== "day" && name !== "tenant");
  return Object.fromEntries(names.map((name) => [name, usage.reduce((sum, row) => sum + row[name]!, 0)]));
}

test("[USY1] usage of all gateways adds up: edits count once, at the gateway of their author, also with a gateway that stops", async () => {
  rig.startOwner();
  const [one, two] = [await rig.start({}, redis.url), await rig.start({}, redis.url)];
  const [ann, bob] = [await rig.greet(one, "ann"), await rig.greet(two, "bob")];
  const { channel } = await ann.join(ROOM, "annannann");
  await bob.join(ROOM, "bobbobbob");
  for (let counter = 1; counter <= 3; counter++) ann.edit(channel, counter, "hello", counter - 1);
  await until(() => bob.committed().size === 3, "the edits at the other gateway");
  await rig.stop(one);
  await until(async () => ((await usageOf(two))?.["connections"] ?? 0) === 2, "the usage of both gateways");
  const usage = (await usageOf(two))!;
  expect(usage).toMatchObject({ connections: 2, edits: 3, refusals: 0 });
  expect(usage["editBytes"]).toBeGreaterThan(0);
  expect(usage["receivedBytes"]).toBeGreaterThan(usage["editBytes"]!);
  await until(async () => ((await usageOf(two))?.["deliveredBytes"] ?? 0) > usage["editBytes"]!, "the delivered bytes");
  await until(async () => ((await usageOf(two))?.["connectionSeconds"] ?? 0) > 0, "a second of a connection");
  expect((await usageOf(two))!["edits"]).toBe(3);
});

test("[USY2] an administrator reads its own tenant, others are refused, and an operator reads all tenants as JSON or CSV", async () => {
  const address = await rig.start({}, redis.url);
  for (const tenant of ["first", "second"]) await (await rig.greet(address, "ann", { tenant })).next("welcome");
  await until(async () => (await usageOf(address, "first")) !== undefined && (await usageOf(address, "second")) !== undefined, "the usage");
  const claims = { tenant: "first", rights: ["read", "admin"] };
  const asAdmin = await read(address, "", await tokenOf("boss", claims));
  const { usage } = (await asAdmin.json()) as { usage: { tenant: string }[] };
  expect([asAdmin.status, [...new Set(usage.map(({ tenant }) => tenant))]]).toEqual([200, ["first"]]);
  expect((await read(address, "?tenant=second", await tokenOf("boss", claims))).status).toBe(403);
  expect((await read(address, "", await tokenOf("ann", { tenant: "first" }))).status).toBe(403);
  expect((await read(address, "", "nonsense")).status).toBe(401);
  const today = new Date().toISOString().slice(0, 10);
  const csv = await read(address, `?format=csv&from=${today}`);
  expect(csv.headers.get("content-type")).toContain("text/csv");
  expect((await csv.text()).split("\r\n")[0]).toMatch(/^day,tenant,connections,/);
  await (await rig.greet(address, "ann", { tenant: "third" })).next("welcome");
  const errorOf = async (response: Response): Promise<unknown> => ((await response.json()) as { error?: unknown }).error;
  await until(async () => (await errorOf(await read(address))) === "too-many-rows", "more rows than allowed");
});

test("[USY3] without Redis usage is not stored, and the answer describes the remedy; metrics show it", async () => {
  const address = await rig.start({ connectionsPerTenantMax: "1" });
  expect(await outcomeOf(await rig.greet(address, "ann"))).toBe("welcome");
  expect(await outcomeOf(await rig.greet(address, "bob"))).not.toBe("welcome");
  const response = await read(address);
  expect([response.status, await response.json()]).toMatchObject([503, { error: "no-redis" }]);
  await until(async () => (await metric(address, `coroom_gateway_tenant_connections{tenant="${TENANT}"}`)) === 1, "the connection");
  await until(async () => (await metric(address, `coroom_gateway_tenant_refusals_total{tenant="${TENANT}"}`)) === 1, "the refusal");
});

test("[USY4] while Redis is away edits are stored as before, usage waits, and Redis receives it afterwards", async () => {
  rig.startOwner();
  const address = await rig.start({}, redis.url);
  redis.kill("SIGKILL");
  await redis.exited;
  const [ann, bob] = [await rig.greet(address, "ann"), await rig.greet(address, "bob")];
  const { channel } = await ann.join(ROOM, "annannann");
  await bob.join(ROOM, "bobbobbob");
  ann.edit(channel, 1, "hello");
  expect(await ann.next("ack")).toMatchObject({ counter: 1, seq: 1 });
  await until(async () => (await metric(address, "coroom_gateway_usage_waiting")) > 0, "usage that waits");
  const away = await read(address);
  expect([away.status, await away.json()]).toMatchObject([503, { error: "unavailable" }]);

  await redis.restart();
  await until(async () => (await usageOf(address))?.["edits"] === 1, "the usage in Redis");
  expect(await usageOf(address)).toMatchObject({ connections: 2, edits: 1 });
});

test("[USY5] what a tenant stores has a row without any connection, from whichever gateway has Redis, and keeps the highest of the day", async () => {
  const [without, address] = [await rig.start(), await rig.start({}, redis.url)];
  const day = dayOf(Date.now());
  const send = (bytes: number): void =>
    rig.connection.publish(rig.subjects.storagePeaks, encodeJson({ day, tenants: [["quiet" as TenantId, bytes]] } satisfies StoragePeaks));
  await until(async () => (send(900), (await usageOf(address, "quiet")) !== undefined), "the stored bytes");
  for (let index = 0; index < 20; index++) send(100);
  rig.connection.publish(rig.subjects.storagePeaks, encodeJson({ day: "yesterday", tenants: [["quiet", 5_000]] }));
  send(1_200);
  await until(async () => (await usageOf(address, "quiet"))?.["storedBytes"] === 1_200, "the higher value");
  expect(await usageOf(address, "quiet")).toMatchObject({ connections: 0, edits: 0, storedBytes: 1_200 });
  expect((await read(without)).status).toBe(503);
});

test("[USY6] the peak of connections is the highest of all gateways together at one time, not the sum of each one's highest", async () => {
  const [one, two] = [await rig.start({}, redis.url), await rig.start({}, redis.url)];
  const tenant = "crowd";
  const peak = async (): Promise<number | undefined> => (await usageOf(two, tenant))?.["peakConnections"];
  const enter = async (address: string, user: string) => {
    const client = await rig.greet(address, user, { tenant });
    await client.next("welcome");
    return client;
  };
  await enter(one, "ann");
  const [bob] = [await enter(two, "bob"), await enter(two, "cy")];
  await until(async () => (await peak()) === 3, "the peak of both gateways");
  bob.close();
  await until(async () => (await metric(two, `coroom_gateway_tenant_connections{tenant="${tenant}"}`)) === 1, "one connection less");
  await enter(one, "dee");
  /** The row may be refused for a moment, because requests of one address have a rate. */
  const rowAfter = async (seconds: number): Promise<Row> => {
    let row: Row | undefined;
    await until(async () => ((row = await usageOf(two, tenant))?.["connectionSeconds"] ?? 0) > seconds, "the usage of more samples");
    return row!;
  };
  const { connectionSeconds } = await rowAfter(0);
  const { peakConnections } = await rowAfter(connectionSeconds! + 12); // Some samples of three connections.
  expect(peakConnections, "the highest of the gateways are 2 and 2").toBe(3);
});
