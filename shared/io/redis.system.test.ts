/** Each outage of a real Redis is one warning, and a Redis that can never be used is reported with the remedy. */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { Redis } from "ioredis";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";

import type { Engine } from "../../engines/engine.ts";
import { until } from "../../test/contract/real-nats.ts";
import { startTestRedis } from "../../test/contract/test-engines.ts";
import { SILENT_LOG } from "../testing/silent-log.ts";
import { redisConnection, watchRedis } from "./redis.ts";
import { systemClock } from "./system-clock.ts";

let folder: string;
let [first, second]: (Engine | undefined)[] = [];
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "coroom-redis-"));
  [first, second] = await Promise.all(["first", "second"].map((name) => startTestRedis({ dataDir: join(folder, name) })));
});
afterAll(async () => {
  await Promise.all([first?.stop(), second?.stop()]);
  rmSync(folder, { recursive: true, force: true });
});

function watch(urls: string) {
  const lines: string[] = [];
  const add = (_: object, sentence: string): void => void lines.push(sentence);
  const connection = redisConnection(urls, { ...SILENT_LOG, info: add, warn: add });
  const reach = watchRedis(connection, systemClock, { set: () => {} });
  onTestFinished(() => {
    reach.stop();
    connection.stop();
  });
  return { ...connection, ...reach, lines };
}

test("[RAD7] a replica is reported once with the remedy, until it is the primary", async () => {
  const admin = new Redis(second!.url);
  onTestFinished(() => void admin.disconnect());
  await admin.replicaof("127.0.0.1", String(first!.port));
  const { obstacle, reaches, isAway, lines } = watch(second!.url);
  await until(obstacle, "the obstacle");
  expect(obstacle()).toMatch(/is a replica, which cannot be written.*Set COROOM_REDIS_URL to the primary/);
  expect([reaches(), isAway()]).toEqual([false, true]);
  await admin.replicaof("NO", "ONE");
  await until(() => obstacle() === undefined, "the end of the obstacle");
  await until(reaches, "the answer of a primary");
  expect(lines).toEqual([expect.stringContaining("is a replica"), "Redis answers again"]);
});

test("[RAD8] several nodes that are no Redis Cluster are reported once with the remedy", async () => {
  const { obstacle, reaches, lines } = watch(`${first!.url},${second!.url}`);
  await until(() => reaches() === false, "the first check");
  expect(obstacle()).toMatch(/not a Redis Cluster.*Name one address for a single Redis/);
  expect(lines).toEqual([obstacle()]);
});

test("[RAD9] a Redis that hangs is one warning before commands fail because of it, and one line at its end", async () => {
  const { redis, isAway, reaches, lines } = watch(first!.url);
  await until(reaches, "the first check");
  first!.kill("SIGSTOP");
  const isKnown: boolean[] = [];
  const failed = redis.get("a key").catch(() => void isKnown.push(isAway()));
  await failed;
  expect(isKnown).toEqual([true]);
  first!.kill("SIGCONT");
  await until(() => !isAway(), "the end of the outage");
  expect(lines).toEqual([expect.stringContaining("Redis does not answer"), "Redis answers again"]);
});

test("[RAD10] commands that a killed Redis breaks find it away at once", async () => {
  const { redis, isAway, reaches, lines } = watch(first!.url);
  await until(reaches, "the first check");
  first!.kill("SIGSTOP");
  const isKnown: boolean[] = [];
  const failed = redis.get("a key").catch(() => void isKnown.push(isAway()));
  first!.kill("SIGKILL");
  await failed;
  expect(isKnown).toEqual([true]);
  await first!.restart();
  await until(() => !isAway(), "the end of the outage");
  expect(lines.filter((line) => line.includes("does not answer")).length).toBeLessThanOrEqual(1);
});

test("[RAD11] a full Redis is one warning with the remedy, until it can be written again", async () => {
  const admin = new Redis(second!.url);
  onTestFinished(() => void admin.disconnect());
  const { isAway, obstacle, reaches, lines } = watch(second!.url);
  await until(reaches, "the first check");
  await admin.config("SET", "maxmemory", 1);
  await until(isAway, "the warning");
  await until(() => reaches() === false, "the check that found it");
  await expect(admin.set("a key", "")).rejects.toThrow("OOM");
  expect(obstacle(), "a leaderboard stays ready, because its boards can be read").toBeUndefined();
  await admin.config("SET", "maxmemory", 0);
  await until(reaches, "the memory");
  expect([isAway(), lines]).toEqual([false, [expect.stringMatching(/Redis is full.*Raise maxmemory/), "Redis answers again"]]);
});
