/** The same scripts on a Redis Cluster of two: all keys of a room lie in one slot, whichever server has it. */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { Redis } from "ioredis";
import { afterAll, beforeAll, expect, test } from "vitest";

import { BINARIES } from "../../engines/binaries.ts";
import { type Child, spawnChild } from "../../engines/child.ts";
import { findBinary } from "../../engines/find.ts";
import { claimPort } from "../../engines/free-port.ts";
import { NO_USES, NOTHING_APPLIED } from "../../leaderboard/board.ts";
import { type RedisLine, redisLine } from "../../shared/io/redis.ts";
import { redisBoard } from "../../leaderboard/io/redis-board.ts";
import { redisNames } from "../../leaderboard/io/redis-names.ts";
import { redisTenants } from "../../leaderboard/io/redis-tenants.ts";
import { keysOf } from "../../leaderboard/keys.ts";
import { RoomProjection } from "../../leaderboard/room-projection.ts";
import { recordOf } from "../../leaderboard/testing/records.ts";
import { SCORING } from "../../leaderboard/testing/scoring.ts";
import { ALL_TIME, windowsAt } from "../../leaderboard/windows.ts";
import { decodeRecord } from "../../shared/bus/record.ts";
import type { RoomKey, TenantId, UnixMillis, UserId } from "../../shared/ids.ts";
import { until } from "./real-nats.ts";

const SLOTS = 16_384;
const SILENT = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };
const NOON = Date.UTC(2026, 6, 1, 12) as UnixMillis;

let dataDir: string;
const servers: { child: Child; port: number; redis: Redis }[] = [];
let line: RedisLine;

beforeAll(async () => {
  dataDir = mkdtempSync(join(tmpdir(), "coroom-cluster-"));
  const { path, env } = await findBinary(BINARIES.redisServer, {});
  for (let index = 0; index < 2; index++) {
    const port = await claimPort(undefined, "127.0.0.1", "COROOM_REDIS_PORT");
    const bus = await claimPort(undefined, "127.0.0.1", "COROOM_REDIS_PORT");
    const args = ["--port", `${port}`, "--cluster-port", `${bus}`, "--cluster-enabled", "yes", "--cluster-config-file", `nodes-${index}.conf`, "--save", "", "--dir", dataDir];
    const child = await spawnChild({ path, args, env, cwd: dataDir, logFile: join(dataDir, `${index}.log`) });
    servers.push({ child, port, redis: new Redis(port, "127.0.0.1", { protocol: 2 }).on("error", () => {}) }); // It connects before the server listens, and again.
    await servers[index]!.redis.cluster("ADDSLOTSRANGE", (SLOTS / 2) * index, (SLOTS / 2) * (index + 1) - 1);
    if (index > 0) await servers[0]!.redis.call("CLUSTER", "MEET", "127.0.0.1", port, bus);
  }
  await until(async () => (await Promise.all(servers.map(({ redis }) => redis.cluster("INFO")))).every((info) => info.includes("cluster_state:ok")), "the cluster", 30_000);
  line = redisLine(servers.map(({ port }) => `redis://127.0.0.1:${port}`).join(","), SILENT);
  await until(() => line.redis.status === "ready", "the line to the cluster");
}, 120_000);
afterAll(async () => {
  line?.stop();
  for (const { redis, child } of servers) {
    redis.disconnect();
    await child.stop(2_000);
  }
  rmSync(dataDir, { recursive: true, force: true });
});

test("[BOARD10] rooms on every server of a cluster count, read, dump and restore", async () => {
  const boards = redisBoard(line.redis, keysOf("cluster"), { hotMembers: 1, tail: "ordered", roles: ["everyone", "editors"] });
  for (let index = 0; index < 20; index++) {
    const room = `acme.room-${index}` as RoomKey;
    const projection = new RoomProjection(NOTHING_APPLIED, NO_USES, SCORING);
    const edits = (["ann", "bob", "bob"] as UserId[]).map((user) => ({ user, bytes: 1, time: NOON }));
    projection.receiveRecord(decodeRecord(recordOf(1, edits))!, 1, NOON);
    const batch = projection.takeBatch()!;
    expect(await boards.apply(room, batch)).toEqual({ kind: "written" });
    expect(await boards.apply(room, batch)).toEqual({ kind: "stale", counted: { seq: 3, activity: 0 } });
    const dump = (await boards.dump(room, windowsAt(NOON)))!;
    expect(dump.boards).toHaveLength(12);
    for (const { role, window } of dump.boards) {
      expect((await boards.read(room, role, window)).hot.map(({ member, score }) => [member, score])).toEqual([["bob", 2]]);
      expect((await boards.places(room, role, window, { kind: "from", offset: 0, limit: 5 }))?.standings.map(({ member, score }) => [member, score])).toEqual([["bob", 2], ["ann", 1]]);
    }
    const copy = `acme.copy-${index}` as RoomKey;
    expect(await boards.restore(copy, dump)).toEqual({ kind: "written" });
    expect(await boards.read(copy, "everyone", ALL_TIME)).toEqual(await boards.read(room, "everyone", ALL_TIME));
  }
  const tenants = redisTenants(line.redis, keysOf("cluster"), { roles: ["everyone"] });
  const names = redisNames(line.redis, keysOf("cluster"), { namesMax: 2 });
  for (let index = 0; index < 20; index++) {
    const room = `acme.room-${index}` as RoomKey;
    for (let time = 0; time < 2; time++) await tenants.tell(room, windowsAt(NOON)); // Told again it counts once.
    for (const user of ["ann", "bob", "cy"]) await names.write(room, user, user.toUpperCase());
    expect(await names.read(room, ["bob", "cy", "nobody"])).toEqual(new Map([["bob", "BOB"]])); // No more than two.
  }
  await tenants.meet("acme.room-1" as RoomKey, [ALL_TIME], ["ann", "bob"]);
  await tenants.meet("acme.room-2" as RoomKey, [ALL_TIME], ["bob", "cy"]);
  const { rooms, people, ranking } = await tenants.page("acme" as TenantId, ALL_TIME, { offset: 5, limit: 3 });
  expect(people).toBe(3);
  expect([rooms, ranking.map(({ rank, points }) => [rank, points])]).toEqual([20, [[1, 3], [1, 3], [1, 3]]]);
  expect(await tenants.rankOf("acme.room-7" as RoomKey, ALL_TIME)).toEqual({ rank: 1, room: "room-7", points: 3 });
  const perServer = await Promise.all(servers.map(({ redis }) => redis.dbsize()));
  expect(Math.min(...perServer)).toBeGreaterThan(0);
});
