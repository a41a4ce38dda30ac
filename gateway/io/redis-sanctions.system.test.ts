/** Sanctions in a real Redis do not depend on which gateway writes last. */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Redis } from "ioredis";
import { afterAll, beforeAll, expect, test } from "vitest";

import type { Sanction } from "../../shared/bus/admin-messages.ts";
import type { TenantId, UnixMillis, UserId } from "../../shared/ids.ts";
import { redisConnection, type RedisConnection } from "../../shared/io/redis.ts";
import { systemClock as clock } from "../../shared/io/system-clock.ts";
import { SILENT_LOG } from "../../shared/testing/silent-log.ts";
import type { Engine } from "../../engines/engine.ts";
import { until } from "../../test/contract/real-nats.ts";
import { startTestRedis } from "../../test/contract/test-engines.ts";
import { keyOf } from "../limits/sanctions.ts";
import type { SanctionStore } from "../ports.ts";
import { redisSanctions } from "./redis-sanctions.ts";

let folder: string;
let redis: Engine;
let connection: RedisConnection;
let store: SanctionStore;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "coroom-sanctions-"));
  redis = await startTestRedis({ dataDir: join(folder, "redis") });
  connection = redisConnection(redis.url, SILENT_LOG);
  store = redisSanctions(connection, "test", clock);
  await until(() => store.load().catch(() => undefined), "Redis to be reached");
});
afterAll(async () => {
  connection.stop();
  await redis.stop();
  rmSync(folder, { recursive: true, force: true });
});

const ban = (given: Partial<Sanction>): Sanction => ({
  target: { kind: "user", tenant: "acme" as TenantId, user: "eve the first" as UserId },
  level: "banned",
  until: (clock.wallNow() + 3_600_000) as UnixMillis,
  madeAt: 1_700_000_000_000 as UnixMillis,
  lifted: false,
  reason: "",
  ...given,
});

test("[SAN15] the later of two sanctions with one subject is stored in any order of saving; at the same time, the lift is stored", async () => {
  const [earlier, later] = [ban({ madeAt: 1_700_000_000_001 as UnixMillis }), ban({ madeAt: 1_700_000_000_002 as UnixMillis })];
  const lift = { ...later, lifted: true };
  for (const [index, [first, second, holds]] of [
    [earlier, later, later] as const,
    [later, earlier, later] as const,
    [later, lift, lift] as const,
    [lift, later, lift] as const,
  ].entries()) {
    const target = { kind: "user", tenant: "acme" as TenantId, user: `user ${index}` as UserId } as const;
    await store.save({ ...first, target });
    await store.save({ ...second, target });
    const all = await store.load();
    expect(all.filter((sanction) => keyOf(sanction) === keyOf({ ...holds, target }))).toEqual([{ ...holds, target }]);
  }
});

test("[SAN16] a stored value that is not a sanction is overwritten", async () => {
  const client = new Redis(redis.url);
  try {
    for (const nonsense of ["{", "null", '"a"', '{"madeAt":"never"}']) {
      const sanction = ban({});
      await client.hset("test:sanctions", keyOf(sanction), nonsense);
      await store.save(sanction);
      expect(await store.load()).toContainEqual(sanction);
    }
  } finally {
    client.disconnect();
  }
});
