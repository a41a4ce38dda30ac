/**
 * A tenant's boards from the keystroke to users who watch them: the SDK, a gateway, the leaderboard and Redis, as
 * `coroom start` runs them.
 */

import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

import { Redis } from "ioredis";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";

import { makeToken } from "../../cli/token.ts";
import { type TenantRankings, watchTenantBoard, type WatchedTenantBoard } from "../../client/boards/main.ts";
import { RoomConnection } from "../../client/index.ts";
import type { Engine } from "../../engines/engine.ts";
import { startTestRedis } from "../contract/test-engines.ts";
import { DemoSystem, FIRST_START_MS_MAX, PATIENCE_MS } from "./browser.ts";
import { eventually } from "./eventually.ts";

const SECRET = randomBytes(32).toString("hex");
/** Pause between two requests of a user, within the rate of board reads. */
const ROUND_MS = 250;
const BOARDS_PATH = "/v1/leaderboard/people?window=all&limit=10";

let folder: string;
let redisServer: Engine;
let redis: Redis;
let system: DemoSystem;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "coroom-tenant-board-"));
  redisServer = await startTestRedis({ dataDir: folder });
  redis = new Redis(redisServer.url);
  // Presence earns no points, because the duration of a test varies.
  const settings = { JWT_SECRET: SECRET, BOARD_SESSION_POINTS: "0", BOARD_TOTALS_MS: "500" };
  system = await DemoSystem.start({ REDIS_URL: redisServer.url, ...settings });
}, FIRST_START_MS_MAX);

afterAll(async () => {
  await system?.stop();
  redis?.disconnect();
  await redisServer?.stop();
  rmSync(folder, { recursive: true, force: true });
});

const tokenOf = (user: string, tenant: string, rights: readonly string[], ttl = 3_600): Promise<string> =>
  makeToken({ room: ["*"], user, name: user.toUpperCase(), rights, tenant, ttl }, SECRET);

/** Sends edits of one point each. Returns when the log has them. */
async function edits(room: string, tenant: string, user: string, count: number): Promise<void> {
  const connection = new RoomConnection({ url: system.url, room, token: () => tokenOf(user, tenant, ["read", "write"]) });
  onTestFinished(() => connection.destroy());
  for (let edit = 0; edit < count; edit++) connection.send(Uint8Array.of(1, edit));
  await eventually("all is saved", () => connection.synced && connection.saved);
}

function watch<Ranks extends keyof TenantRankings>(board: Ranks, token: () => Promise<string>): WatchedTenantBoard<Ranks> {
  const watched = watchTenantBoard({ url: system.url, board, window: "year", token });
  onTestFinished(() => watched.stop());
  return watched;
}

test("[LIVE15] people and rooms of a tenant are shown live to a user with the right, and only of the own tenant", async () => {
  const token = (): Promise<string> => tokenOf("viewer", "acme", ["boards"]);
  const [people, rooms] = [watch("people", token), watch("rooms", token)];
  const shows = (places: string): Promise<void> =>
    eventually(
      `the boards show ${places}`,
      () => {
        const [byPerson, byRoom] = [
          people.ranking.map(({ name, score }) => `${name} ${score}`),
          rooms.ranking.map((at) => `${at.room} ${at.points}`),
        ];
        return people.state === "live" && [...byPerson, ...byRoom].join() === places;
      },
      PATIENCE_MS,
    );
  await edits("notes", "acme", "ada", 3);
  await edits("plans", "globex", "eve", 9);
  await shows("ADA 3,notes 3");
  await edits("plans", "acme", "grace", 4);
  await edits("notes", "acme", "grace", 2);
  await shows("GRACE 6,ADA 3,notes 5,plans 4");
  expect([people.members, people.points, rooms.members, rooms.points, people.windowId]).toEqual([2, 9, 2, 9, rooms.windowId]);
});

test("[LIVE16] without the right a board is stopped with the reason, and an expired token is replaced", async () => {
  const refused = watch("people", () => tokenOf("ada", "acme", ["read", "write"]));
  await eventually("it is stopped", () => refused.state === "stopped", PATIENCE_MS);
  expect(refused.error?.message).toMatch(/claim `rights` contains `boards` \(or `admin`, with the rooms `\*`\) \(HTTP 403\)$/);

  let tokens = 0;
  const renewed = watch("people", () => tokenOf("bob", "initech", ["boards"], (tokens += 1) === 1 ? 2 : 3_600));
  await eventually("the first token has expired", () => tokens >= 2, PATIENCE_MS);
  await edits("notes", "initech", "bob", 1);
  await eventually("the board is live with the second", () => renewed.ranking[0]?.score === 1 && renewed.state === "live", PATIENCE_MS);
});

/** Number of boards that Redis has read. */
async function boardReads(): Promise<number> {
  const stats = await redis.info("commandstats");
  return Number(/^cmdstat_zrange:calls=(\d+)/m.exec(stats)?.[1] ?? 0);
}

test("[LIVE17] hundreds of watchers of a board cost Redis one read per second, and an unchanged board is answered with 304", async () => {
  await edits("notes", "hooli", "gavin", 2);
  const reader = await tokenOf("first", "hooli", ["boards"]);
  let etag = "";
  const poll = async (token: string): Promise<Response> => {
    const headers = { authorization: `Bearer ${token}`, ...(etag === "" ? {} : { "if-none-match": etag }) };
    return fetch(system.url + BOARDS_PATH, { headers });
  };
  await eventually("the edits are on the board", async () => {
    const answer = await poll(reader);
    const body = (await answer.json()) as { points?: number; isBehind?: boolean };
    if (body.points !== 2 || body.isBehind !== false) return false;
    expect(answer.headers.get("cache-control")).toBe("private, max-age=1");
    etag = answer.headers.get("etag")!;
    return true;
  });
  const tokens = await Promise.all(Array.from({ length: 300 }, (_, user) => tokenOf(`user-${user}`, "hooli", ["boards"])));
  const [begun, before] = [performance.now(), await boardReads()];
  const statuses = new Map<number, number>();
  /** Long enough that reads by the leaderboard's own interval, twice per second, would exceed the limit. */
  for (const end = begun + 5_000; performance.now() < end; await sleep(ROUND_MS)) {
    for (const { status } of await Promise.all(tokens.map(poll))) statuses.set(status, (statuses.get(status) ?? 0) + 1);
  }
  const reads = (await boardReads()) - before;
  const seconds = (performance.now() - begun) / 1_000;
  expect([...statuses.keys()]).toEqual([304]);
  expect(reads).toBeGreaterThan(0);
  expect(reads, `${statuses.get(304)} requests within ${seconds} s`).toBeLessThanOrEqual(Math.floor(seconds) + 2);
});
