/** The board scripts on a Redis Cluster of two servers. All keys of a room are in one slot, on one of the servers. */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Redis } from "ioredis";
import { afterAll, beforeAll, expect, test } from "vitest";

import type { Epoch, RoomKey, Seq, TenantId, UnixMillis, UserId } from "../../shared/ids.ts";
import { type RedisConnection, redisConnection } from "../../shared/io/redis.ts";
import { ownersRecordOf } from "../../shared/testing/owners-record.ts";
import { SILENT_LOG } from "../../shared/testing/silent-log.ts";
import { BINARIES } from "../../engines/binaries.ts";
import { type ChildProcessHandle, spawnChild } from "../../engines/child.ts";
import { findBinary } from "../../engines/find.ts";
import { claimPort } from "../../engines/free-port.ts";
import { type ScoreBatch, NO_USES, NOTHING_APPLIED } from "../../leaderboard/boards/board.ts";
import { type BoardOwner, CAPS, keysOf, tenantBoard } from "../../leaderboard/boards/keys.ts";
import { ALL_TIME, type Window, windowsAt } from "../../leaderboard/boards/windows.ts";
import { RoomProjection } from "../../leaderboard/counting/room-projection.ts";
import { redisBoard } from "../../leaderboard/io/redis-boards.ts";
import { redisNames } from "../../leaderboard/io/redis-ports.ts";
import { redisTenants } from "../../leaderboard/io/redis-tenants.ts";
import { recordOf, SCORING } from "../../leaderboard/testing/records.ts";
import { until } from "./real-nats.ts";

const SLOTS = 16_384;
const NOON = Date.UTC(2026, 6, 1, 12) as UnixMillis;
const HOUR = windowsAt(NOON)[0]!;
const KEYS = keysOf("cluster");

let dataDir: string;
const servers: { child: ChildProcessHandle; port: number; redis: Redis }[] = [];
let connection: RedisConnection;

beforeAll(async () => {
  dataDir = mkdtempSync(join(tmpdir(), "coroom-cluster-"));
  const { path, env } = await findBinary(BINARIES.redisServer, {});
  for (let index = 0; index < 2; index++) {
    const port = await claimPort(undefined, "127.0.0.1", "COROOM_REDIS_PORT");
    const bus = await claimPort(undefined, "127.0.0.1", "COROOM_REDIS_PORT");
    const args = [
      "--port",
      `${port}`,
      "--cluster-port",
      `${bus}`,
      "--cluster-enabled",
      "yes",
      "--cluster-config-file",
      `nodes-${index}.conf`,
      "--save",
      "",
      "--dir",
      dataDir,
    ];
    const child = await spawnChild({ path, args, env, cwd: dataDir, logFile: join(dataDir, `${index}.log`) });
    servers.push({ child, port, redis: new Redis(port, "127.0.0.1", { protocol: 2 }).on("error", () => {}) }); // The client fails until the server listens, and then connects.
    await servers[index]!.redis.cluster("ADDSLOTSRANGE", (SLOTS / 2) * index, (SLOTS / 2) * (index + 1) - 1);
    if (index > 0) await servers[0]!.redis.call("CLUSTER", "MEET", "127.0.0.1", port, bus);
  }
  await until(
    async () => (await Promise.all(servers.map(({ redis }) => redis.cluster("INFO")))).every((info) => info.includes("cluster_state:ok")),
    "the cluster",
  );
  connection = redisConnection(servers.map(({ port }) => `redis://127.0.0.1:${port}`).join(","), SILENT_LOG);
  await until(() => connection.redis.status === "ready", "the connection to the cluster");
});
afterAll(async () => {
  connection?.stop();
  for (const { redis, child } of servers) {
    redis.disconnect();
    await child.stop(2_000);
  }
  rmSync(dataDir, { recursive: true, force: true });
});

test("[BOARD10] rooms on every server of a cluster count, read, dump and restore at the same time", async () => {
  const boards = redisBoard(connection.redis, KEYS, { hotMembers: 1, tail: "ordered", roles: ["everyone", "editors"] });
  const rooms = Array.from({ length: 20 }, (_, index) => `acme.room-${index}` as RoomKey);
  expect(await ownersOf(rooms.map(KEYS.applied))).toEqual(new Set([0, 1]));
  await Promise.all(
    rooms.map(async (room, index) => {
      const projection = new RoomProjection(NOTHING_APPLIED, NO_USES, SCORING);
      const edits = (["ann", "bob", "bob"] as UserId[]).map((user) => ({ user, bytes: 1, time: NOON }));
      projection.receiveRecord(ownersRecordOf(recordOf(1, edits)), 1, NOON);
      const batch = projection.takeBatch()!;
      expect(await boards.apply(room, batch)).toEqual({ kind: "written" });
      expect(await boards.apply(room, batch)).toEqual({ kind: "stale", counted: { seq: 3, activity: 0 } });
      const dump = (await boards.dump(room, windowsAt(NOON)))!;
      expect(dump.boards).toHaveLength(12);
      for (const { role, window } of dump.boards) {
        expect((await boards.read(room, role, window)).hot.map(({ member, score }) => [member, score])).toEqual([["bob", 2]]);
        expect(
          (await boards.places(room, role, window, { kind: "from", offset: 0, limit: 5 }))?.standings.map(({ member, score }) => [
            member,
            score,
          ]),
        ).toEqual([
          ["bob", 2],
          ["ann", 1],
        ]);
      }
      const copy = `acme.copy-${index}` as RoomKey;
      expect(await boards.restore(copy, dump)).toEqual({ kind: "written" });
      expect(await boards.read(copy, "everyone", ALL_TIME)).toEqual(await boards.read(room, "everyone", ALL_TIME));
    }),
  );
  const tenants = redisTenants(connection.redis, KEYS, { roles: ["everyone"], hotMembers: 1 });
  const names = redisNames(connection.redis, KEYS, { perRoom: 2, perTenant: 3 });
  const changes = windowsAt(NOON).map((window) => ({ window, members: "all" as const }));
  await Promise.all(
    rooms.map(async (room) => {
      for (let time = 0; time < 2; time++) await tenants.sendTotals(room, changes); // A repeat counts once.
      for (const user of ["ann", "bob", "cy"]) await names.write(room, user, user.toUpperCase());
      expect(await names.read(room, ["bob", "cy", "nobody"])).toEqual(new Map([["bob", "BOB"]])); // At most two.
    }),
  );
  const scoresOf = async (owner: BoardOwner, offset: number): Promise<unknown> =>
    (await boards.places(owner, "everyone", ALL_TIME, { kind: "from", offset, limit: 2 }))?.standings.map(({ member, score }) => [
      member,
      score,
    ]);
  const people = tenantBoard("acme" as TenantId, "people");
  const peopleScores = (await boards.members(people, "everyone", ALL_TIME, ["ann", "bob"])).map(({ member, score }) => [member, score]);
  expect(peopleScores).toEqual([
    ["ann", 20],
    ["bob", 40],
  ]);
  expect((await boards.read(people, "everyone", ALL_TIME)).hot).toMatchObject([{ member: "bob", score: 40 }]);
  // All rooms reached their total at the same instant: their names decide.
  expect(await scoresOf(tenantBoard("acme" as TenantId, "rooms"), 18)).toEqual([
    ["room-1", 3],
    ["room-0", 3],
  ]);
});

test("[BOARD10] tenants on every server of a cluster are found and announced at the same time", async () => {
  const boards = redisBoard(connection.redis, KEYS, { hotMembers: 1, tail: "counted", roles: ["everyone"] });
  const tenants = redisTenants(connection.redis, KEYS, { roles: ["everyone"], hotMembers: 1 });
  const ids = Array.from({ length: 6 }, (_, index) => `tenant-${index}` as TenantId);
  const ownersOfTenants = await ownersOf(ids.map((tenant) => KEYS.whole(tenantBoard(tenant, "people"))));
  expect(ownersOfTenants).toEqual(new Set([0, 1]));
  const roomIn = (tenant: TenantId): RoomKey => `${tenant}.room` as RoomKey;
  await Promise.all(ids.map((tenant) => boards.apply(roomIn(tenant), batchAfter(0))));
  await Promise.all(ids.map((tenant) => tenants.sendTotals(roomIn(tenant), [{ window: ALL_TIME, members: new Set(["ann"]) }])));
  for (const tenant of ids) {
    for (const [ranking, member] of [
      ["people", "ann"],
      ["rooms", "room"],
    ] as const) {
      expect(await boards.read(tenantBoard(tenant, ranking), "everyone", ALL_TIME)).toMatchObject({
        members: 1,
        points: 1,
        hot: [{ member, score: 1 }],
      });
    }
  }
});

/** The part of a moving room that has already arrived on the other server. */
const ARRIVED = {
  "nothing": () => [],
  "its boards": (room: RoomKey) => Object.values(KEYS.board(room, "everyone", ALL_TIME)),
  "its marks": (room: RoomKey) => [KEYS.applied(room), ...CAPS.map((cap) => KEYS.use(room, cap))],
};

test.each(Object.entries(ARRIVED))(
  "[BOARD18] a batch and a checkpoint of a room that moves to another server write all or nothing: %s there",
  async (arrived, arrivedOf) => {
    const boards = redisBoard(connection.redis, KEYS, { hotMembers: 1, tail: "counted", roles: ["everyone"] });
    const room = `acme.moves-${arrived.replace(" ", "-")}` as RoomKey;
    await boards.apply(room, batchAfter(0));
    const behind = (await boards.dump(room, [ALL_TIME]))!;
    const ahead = { ...behind, applied: { ...behind.applied, seq: 9 as Seq } };
    const scoreOf = async (): Promise<unknown> => (await boards.members(room, "everyone", ALL_TIME, ["ann"])).map(({ score }) => score);

    const move = await beginMove(room);
    await move.bring(arrivedOf(room));
    await expect(boards.apply(room, batchAfter(1))).rejects.toThrow(/redirections/);
    await expect(boards.apply(room, batchAfter(1, HOUR))).rejects.toThrow(/redirections/);
    await expect(boards.restore(room, ahead)).rejects.toThrow(/redirections/);
    await move.end();

    expect(await boards.load(room)).toMatchObject({ applied: { seq: 1 } });
    expect(await scoreOf()).toEqual([1]);
    expect(await boards.apply(room, batchAfter(1))).toEqual({ kind: "written" });
    expect(await scoreOf()).toEqual([2]);
    expect(await boards.restore(room, ahead)).toEqual({ kind: "written" });
    expect(await scoreOf()).toEqual([1]);
  },
);

/** One point for ann, who has used a part of every cap, in an existing board and in a new one. */
function batchAfter(seq: number, ...windows: Window[]): ScoreBatch {
  const use = { period: 1, hasBegun: false, points: new Map([["ann" as UserId, seq + 1]]) };
  return {
    after: { seq: seq as Seq, activity: 0, time: NOTHING_APPLIED.time },
    applied: { ...NOTHING_APPLIED, epoch: 1 as Epoch, seq: (seq + 1) as Seq },
    uses: { edits: use, deeds: use, present: use },
    windows: [ALL_TIME, ...windows],
    awards: new Map([["everyone", [{ member: "ann" as UserId, points: 1, reachedAt: seq + 1 }]]]),
  };
}

/** The server that has the slots of these keys, as the servers report it. */
async function ownersOf(keys: readonly string[]): Promise<Set<number>> {
  return new Set(await Promise.all(keys.map(ownerOf)));
}

async function ownerOf(key: string): Promise<number> {
  const slot = await slotOf(key);
  const ranges = await servers[0]!.redis.cluster("SLOTS");
  const [, , [, port]] = ranges.find(([first, last]) => first <= slot && slot <= last) as unknown as [number, number, [string, number]];
  return servers.findIndex((server) => server.port === port);
}

async function slotOf(key: string): Promise<number> {
  return servers[0]!.redis.cluster("KEYSLOT", key);
}

/** Moves a room's slot to the other server, as `redis-cli --cluster reshard` does it. */
async function beginMove(room: RoomKey) {
  const slot = await slotOf(KEYS.applied(room));
  const owner = await ownerOf(KEYS.applied(room));
  const [from, to] = [servers[owner]!, servers[1 - owner]!];
  const [fromId, toId] = [await from.redis.cluster("MYID"), await to.redis.cluster("MYID")];
  await to.redis.call("CLUSTER", "SETSLOT", slot, "IMPORTING", fromId);
  await from.redis.call("CLUSTER", "SETSLOT", slot, "MIGRATING", toId);
  const bring = async (keys: readonly string[]): Promise<void> => {
    if (keys.length > 0) await from.redis.call("MIGRATE", "127.0.0.1", to.port, "", 0, 5_000, "KEYS", ...keys);
  };
  const end = async (): Promise<void> => {
    await bring((await from.redis.cluster("GETKEYSINSLOT", slot, 1_000)) as string[]);
    for (const { redis } of [to, from]) await redis.call("CLUSTER", "SETSLOT", slot, "NODE", toId);
  };
  return { bring, end };
}
