/** Usage in a real Redis, under the gateway's user: each batch counts once, and each day is bounded and forgotten. */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";

import { redisUsers } from "../../cli/local-engines.ts";
import { withUser } from "../../cli/local-addresses.ts";
import type { Engine } from "../../engines/engine.ts";
import type { GatewayId, TenantId, UnixMillis } from "../../shared/ids.ts";
import { redisConnection, type RedisConnection } from "../../shared/io/redis.ts";
import { SILENT_LOG } from "../../shared/testing/silent-log.ts";
import { until } from "../../test/contract/real-nats.ts";
import { startTestRedis } from "../../test/contract/test-engines.ts";
import { noUsage, OTHER_TENANTS, type UsageCounts } from "../usage/usage-counts.ts";
import { dayAfter, startOf, type UsageDay } from "../../shared/time/usage-day.ts";
import type { UsageBatch } from "../usage/usage-days.ts";
import { Prng } from "../../shared/collections/prng.ts";
import { redisUsage, USAGE_DAYS_KEPT } from "./redis-usage.ts";

const passwordOf = (role: string): string => `password of ${role}`;
const ENVIRONMENT = "test";

let folder: string;
let redis: Engine;
let connection: RedisConnection;
let day = "2090-01-01" as UsageDay;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "coroom-usage-"));
  redis = await startTestRedis({ dataDir: join(folder, "redis"), users: redisUsers(ENVIRONMENT, passwordOf) });
  connection = redisConnection(withUser(redis.url, "gateway", passwordOf("gateway")), SILENT_LOG);
  await until(() => connection.redis.ping().catch(() => undefined), "Redis to be reached");
});
afterAll(async () => {
  connection.stop();
  await redis.stop();
  rmSync(folder, { recursive: true, force: true });
});
beforeEach(() => {
  day = dayAfter(day, 2); // Each test has its own.
});

const storeOf = (gateway: string, fieldsMax = 100) => redisUsage(connection, ENVIRONMENT, gateway as GatewayId, { fieldsMax });
const edits = (count: number): UsageCounts => ({ ...noUsage(), edits: count });
function batch(number: number, tenants: Record<string, UsageCounts>): UsageBatch {
  return { day, number, tenants: new Map(Object.entries(tenants) as [TenantId, UsageCounts][]) };
}
async function editsOf(tenant?: string): Promise<Record<string, number>> {
  const kept = await storeOf("reader").read(day, tenant as TenantId | undefined);
  return Object.fromEntries([...kept].map(([name, usage]) => [name, usage.edits]));
}

test("[UST1] batches of several gateways add up, and a repeated batch adds nothing", async () => {
  const [one, two] = [storeOf("g1"), storeOf("g2")];
  await one.add(batch(1, { acme: edits(3), beta: edits(1) }));
  await two.add(batch(1, { acme: edits(4) }));
  await one.add(batch(1, { acme: edits(3), beta: edits(1) }));
  await one.add(batch(2, { acme: edits(10) }));
  await one.add(batch(1, { acme: edits(3), beta: edits(1) }));
  expect(await editsOf()).toEqual({ acme: 17, beta: 1 });
  expect(await editsOf("beta")).toEqual({ beta: 1 });
  expect(await editsOf("unknown")).toEqual({});
});

test("[UST2] every quantity has its own sum, exact up to 2^53", async () => {
  const usage: UsageCounts = {
    connections: 1,
    connectionMs: 2,
    edits: 3,
    editBytes: 4,
    presenceMessages: 5,
    receivedBytes: 6,
    deliveredBytes: 2 ** 52,
    refusals: 8,
  };
  const store = storeOf("g1");
  await store.add(batch(1, { acme: usage }));
  await store.add(batch(2, { acme: { ...usage, deliveredBytes: 2 ** 52 - 1 } }));
  expect((await store.read(day, undefined)).get("acme" as TenantId)).toEqual({
    connections: 2,
    connectionMs: 4,
    edits: 6,
    editBytes: 8,
    presenceMessages: 10,
    receivedBytes: 12,
    deliveredBytes: 2 ** 53 - 1,
    refusals: 16,
    storedBytes: 0,
    peakConnections: 0,
  });
});

test("[UST3] a day has at most its number of fields: further tenants count together, and nothing is lost", async () => {
  const store = storeOf("g1", 10);
  for (let number = 1; number <= 10; number++)
    await store.add(batch(number, Object.fromEntries(Array.from({ length: 5 }, (_, index) => [`t${number}-${index}`, edits(1)]))));
  await store.add(batch(11, { "t1-0": edits(1) }));
  const kept = await editsOf();
  expect(await connection.redis.hlen(`${ENVIRONMENT}:usage:${day}`)).toBeLessThanOrEqual(12);
  expect([kept["t1-0"], Object.values(kept).reduce((sum, each) => sum + each, 0)]).toEqual([2, 51]);
  expect(kept[OTHER_TENANTS]).toBeGreaterThan(30);
});

test("[UST4] Redis forgets a day 400 days after its end", async () => {
  // The gateway's user may not read the time.
  const other = await startTestRedis({ dataDir: join(folder, "other") });
  const free = redisConnection(other.url, SILENT_LOG);
  try {
    await until(() => free.redis.ping().catch(() => undefined), "Redis to be reached");
    const store = redisUsage(free, ENVIRONMENT, "g1" as GatewayId);
    await store.add(batch(1, { acme: edits(1) }));
    await store.raise({ day: dayAfter(day, 1), tenants: [["acme" as TenantId, 1]] });
    for (const days of [0, 1])
      expect(await free.redis.pexpiretime(`${ENVIRONMENT}:usage:${dayAfter(day, days)}`)).toBe(startOf(dayAfter(day, 401 + days)));
    expect(USAGE_DAYS_KEPT).toBe(400);
  } finally {
    free.stop();
    await other.stop();
  }
});

test("[UST5] stored bytes stay at the highest value of the day, in any order with counts, and a tenant without other usage has a row", async () => {
  const random = new Prng(11);
  const [one, two] = [storeOf("g1", 12), storeOf("g2", 12)];
  const names = Array.from({ length: 6 }, (_, index) => `t${index}` as TenantId);
  const expected = new Map(names.map((name) => [name, { edits: 0, storedBytes: 0 }]));
  for (let number = 1; number <= 60; number++) {
    const [tenant, store] = [names[random.below(names.length)]!, random.below(2) === 0 ? one : two];
    const known = expected.get(tenant)!;
    if (random.below(2) === 0) {
      await store.add(batch(number, { [tenant]: edits(number) }));
      known.edits += number;
    } else {
      const storedBytes = random.below(2 ** 31) * 2 ** 22 + 1;
      const more: TenantId = names[random.below(names.length)]!;
      await store.raise({ day, tenants: [[tenant, storedBytes], [more, storedBytes]] }); // prettier-ignore
      for (const name of [tenant, more]) expected.get(name)!.storedBytes = Math.max(expected.get(name)!.storedBytes, storedBytes);
    }
  }
  await one.raise({ day, tenants: [["idle" as TenantId, 2 ** 53 - 1]] });
  const kept = await one.read(day, undefined);
  for (const name of names) expect(kept.get(name), name).toMatchObject(expected.get(name)!);
  expect(kept.get("idle" as TenantId)).toEqual({ ...noUsage(), storedBytes: 2 ** 53 - 1, peakConnections: 0 });
});

/** Minutes of the test's day. */
const minute = (count: number): UnixMillis => (startOf(day) + count * 60_000) as UnixMillis;
async function peaksOf(): Promise<Record<string, number>> {
  const kept = await storeOf("reader").read(day, undefined);
  return Object.fromEntries([...kept].map(([name, usage]) => [name, usage.peakConnections]));
}

test("[UST7] the peak of a day is the highest sum of one moment over all gateways, and a repeated sample adds nothing", async () => {
  const [one, two, three] = [storeOf("g1"), storeOf("g2"), storeOf("g3")];
  const sample = (store: typeof one, moment: number, tenants: Record<string, number>, part = 1): Promise<number> =>
    store.sample({ moment: minute(moment), part, tenants: Object.entries(tenants) as [TenantId, number][] });
  await sample(one, 1, { acme: 10, beta: 1 });
  await sample(two, 1, { acme: 5 });
  await sample(two, 2, { acme: 9 });
  await sample(one, 2, { acme: 4 });
  expect(await peaksOf(), "not 10 + 9").toEqual({ acme: 15, beta: 1 });
  for (let again = 0; again < 3; again++) await sample(one, 1, { acme: 10, beta: 1 });
  await sample(one, 2, { beta: 7 }, 2);
  expect(await peaksOf()).toEqual({ acme: 15, beta: 7 });
  await sample(three, 1, { acme: 2 });
  expect(await peaksOf(), "a late sample of an earlier moment").toEqual({ acme: 17, beta: 7 });
  await one.add(batch(1, { acme: edits(3) }));
  await one.raise({ day, tenants: [["acme" as TenantId, 100]] });
  expect((await one.read(day, "acme" as TenantId)).get("acme" as TenantId)).toEqual({
    ...noUsage(),
    edits: 3,
    storedBytes: 100,
    peakConnections: 17,
  });
  await sample(one, 1_440, { acme: 50 });
  expect(await peaksOf(), "midnight belongs to the next day").toEqual({ acme: 17, beta: 7 });
});

test("[UST8] a moment has at most its number of fields, and Redis forgets it after five minutes", async () => {
  const free = redisConnection((await startTestRedis({ dataDir: join(folder, "moments") })).url, SILENT_LOG);
  try {
    await until(() => free.redis.ping().catch(() => undefined), "Redis to be reached");
    const store = redisUsage(free, ENVIRONMENT, "g1" as GatewayId, { fieldsMax: 3 });
    const moment = minute(0);
    const tenants = ["a", "b", "c", "d"].map((name) => [name as TenantId, 2] as const);
    expect(await store.sample({ moment, part: 1, tenants })).toBe(2); // One field is the gateway's.
    const key = `${ENVIRONMENT}:usage:connections:${moment}`;
    expect(await free.redis.hgetall(key)).toEqual({ "batch g1 1": "1", "a": "2", "b": "2" });
    expect(await free.redis.pexpiretime(key)).toBe(moment + 300_000);
  } finally {
    free.stop();
  }
});

test("[UST6] a day without space takes no further tenants, reports their count, and raises those that it has", async () => {
  const store = storeOf("g1", 3);
  const raise = (...tenants: [string, number][]): Promise<number> => store.raise({ day, tenants: tenants as [TenantId, number][] });
  expect(await raise(["a", 5], ["b", 4], ["c", 3], ["d", 2], ["e", 1])).toBe(2);
  expect(await raise(["a", 9], ["d", 9])).toBe(1);
  await store.add(batch(1, { d: edits(1) }));
  const kept = await store.read(day, undefined);
  expect([...kept].map(([tenant, { edits: count, storedBytes }]) => [tenant, count, storedBytes]).toSorted()).toEqual([
    [OTHER_TENANTS, 1, 0],
    ["a", 0, 9],
    ["b", 0, 4],
    ["c", 0, 3],
  ]);
});
