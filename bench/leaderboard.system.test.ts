/** The leaderboard's bench in small: that it measures what it says, never how long anything takes. */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { afterAll, beforeAll, expect, test } from "vitest";

import type { Engine } from "../engines/engine.ts";
import { startNatsServer } from "../engines/nats-server.ts";
import { startRedisServer } from "../engines/redis-server.ts";
import { benchMemory, benchReads, benchUpdates, fillLargeBoard } from "./leaderboard.bench.ts";

let dataDir: string;
let redis: Engine;
let nats: Engine;

beforeAll(async () => {
  dataDir = mkdtempSync(join(tmpdir(), "coroom-bench-boards-"));
  [redis, nats] = await Promise.all([startRedisServer({ dataDir: join(dataDir, "redis") }), startNatsServer({ dataDir: join(dataDir, "nats") })]);
}, 120_000);
afterAll(async () => {
  await Promise.all([redis?.stop(), nats?.stop()]);
  rmSync(dataDir, { recursive: true, force: true });
});

test("the projector and the bare script come to the same boards", async () => {
  const figures = await benchUpdates({ natsUrl: nats.url, redisUrl: redis.url }, { rooms: 20, users: 8, edits: 1_000, seed: 1 }, "small");
  expect(figures.projectorHash).toBe(figures.bareHash);
  expect(figures.edits).toBeLessThanOrEqual(800);
});

test("a large board costs less memory than all its members in order", async () => {
  const board = await fillLargeBoard(redis.url, 5_000, "small-large", 1);
  const memory = await benchMemory(board, "small-large");
  expect(memory.hot + memory.counts).toBeLessThan(memory.allOrdered / 5);
  for (const times of Object.values(await benchReads(board, 20, 1))) expect(times).toHaveLength(20);
  board.line.stop();
});
