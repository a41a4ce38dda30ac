/** Few members: the experiment counts correctly. Times are not checked. */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { afterAll, beforeAll, expect, test } from "vitest";

import type { Engine } from "../engines/engine.ts";
import { startNatsServer } from "../engines/nats-server.ts";
import { startRedisServer } from "../engines/redis-server.ts";
import { DemoSystem } from "../test/system/browser.ts";
import { benchBoardReads } from "./board-reads.bench.ts";
import { benchMemory, benchReads, benchUpdates, fillLargeBoard } from "./leaderboard-measures.ts";
import { benchLiveBoard } from "./live-board.bench.ts";

let dataDir: string;
let redis: Engine;
let nats: Engine;

beforeAll(async () => {
  dataDir = mkdtempSync(join(tmpdir(), "coroom-bench-boards-"));
  [redis, nats] = await Promise.all([
    startRedisServer({ dataDir: join(dataDir, "redis") }),
    startNatsServer({ dataDir: join(dataDir, "nats") }),
  ]);
});
afterAll(async () => {
  await Promise.all([redis?.stop(), nats?.stop()]);
  rmSync(dataDir, { recursive: true, force: true });
});

test("the projector and the bare script calls produce the same boards", async () => {
  const figures = await benchUpdates({ natsUrl: nats.url, redisUrl: redis.url }, { rooms: 20, users: 8, edits: 1_000, seed: 1 }, "small");
  expect(figures.projectorHash).toBe(figures.bareHash);
  expect(figures.edits).toBeLessThanOrEqual(800);
});

test("a large board needs less memory than one sorted set of all members", async () => {
  const board = await fillLargeBoard(redis.url, 5_000, "small-large", 1);
  const memory = await benchMemory(board, "small-large");
  expect(memory.hot + memory.counts).toBeLessThan(memory.allOrdered / 5);
  for (const times of Object.values(await benchReads(board, 20, 1))) expect(times).toHaveLength(20);
  board.connection.stop();
});

test("every kind of board read over HTTP is answered, and both processes use CPU for it", async () => {
  const load = { rooms: 4, members: 20, reads: 200 };
  const costs = await benchBoardReads({ natsUrl: nats.url, redisUrl: redis.url }, redis.pid, load);
  expect(costs.map(({ read }) => read)).toEqual([
    "first 100 places",
    "first 10 places",
    "own rank, 5 around",
    "1,000 given users",
    "first 100 places of one room",
  ]);
  expect(costs.reduce((sum, { leaderboard }) => sum + leaderboard, 0)).toBeGreaterThan(0);
});

test("every watcher of a busy room's board receives its list, and the figures count it", async () => {
  const system = await DemoSystem.start({ NATS_URL: nats.url, REDIS_URL: redis.url, ENVIRONMENT: "small", EDIT_BURST: "1000" });
  try {
    const token = async (user: string): Promise<string> => {
      const answer = await fetch(`${system.url}/demo/token?${new URLSearchParams({ room: "hot", user })}`);
      return ((await answer.json()) as { token: string }).token;
    };
    const figures = await benchLiveBoard(
      { url: system.url, token },
      { watchers: 8, writers: 4, editsPerSecond: 40, seconds: 2, warmUpSeconds: 2, shown: 3 },
    );
    expect(figures.listsPerSecond).toBeGreaterThan(0);
    expect(figures.listsPerSecond).toBeCloseTo(figures.listsPerSecondMost, 0);
    expect(figures.listBytesPerSecond).toBeGreaterThan(figures.listsPerSecond * 20);
    expect(figures.listAgesMs.length).toBeGreaterThan(0);
  } finally {
    await system.stop();
  }
});
