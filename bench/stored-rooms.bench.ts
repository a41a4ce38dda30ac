/**
 * What a stored room costs while nobody has it open: memory and disk of nats-server and redis-server, and memory of the
 * process of `coroom start`. Users join rooms over WebSockets, edit and leave. The figures are the growth between half
 * of the rooms and all of them, so they contain nothing of an empty system. The memory of nats-server depends on when it
 * collected its garbage, so its growth from the empty system to all rooms is printed too.
 *
 * Rooms have one tenant and the same few users, because a user's entry in the boards of the tenant is no cost of a room.
 * Closed windows are archived an hour later at the earliest, so the archive is not measured.
 */

import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

import { NODE_FLAGS } from "../cli/node-flags.ts";
import { makeToken } from "../cli/token.ts";
import { spawnChild } from "../engines/child.ts";
import type { Engine } from "../engines/engine.ts";
import { claimPort } from "../engines/free-port.ts";
import { startNatsServer } from "../engines/nats-server.ts";
import { startRedisServer } from "../engines/redis-server.ts";
import { keysOf, tenantBoard } from "../leaderboard/boards/keys.ts";
import { ALL_TIME } from "../leaderboard/boards/windows.ts";
import type { RoomId, TenantId } from "../shared/ids.ts";
import { closeNats, connectNats, type NatsConnection } from "../shared/io/nats.ts";
import type { RedisConnection } from "../shared/io/redis.ts";
import { positiveInteger, wholeNumber } from "../shared/settings/settings.ts";
import { eventually } from "../test/system/eventually.ts";
import { defineExperiment, type Print } from "./experiment.ts";
import { connectedRedis } from "./leaderboard-measures.ts";
import { RoomVisitor } from "./load/room-visitor.ts";
import { residentBytesOf } from "./server-usage.ts";
import {
  type Amount,
  folderBytes,
  KEY_KINDS,
  type KeyKind,
  liveHeapBytes,
  natsByStream,
  redisByWindow,
  redisInfo,
  type StreamAmount,
} from "./stored-rooms-measures.ts";
import { LIFTED_LIMITS } from "./systems/coroom.ts";

type StoredRoomsPlan = {
  readonly rooms: number;
  readonly participants: number;
  readonly edits: number;
  /** Without work, before memory is read. */
  readonly pauseSeconds: number;
  readonly print: Print;
};

/** The state of the system at one number of rooms. */
type Stored = {
  readonly rooms: number;
  /** Bytes by what is measured. */
  readonly bytes: Readonly<Record<(typeof BYTES)[number], number>>;
  readonly redis: Readonly<Record<KeyKind, Amount>>;
  readonly nats: Readonly<Record<string, StreamAmount>>;
};

const BYTES = [
  "node memory",
  "redis-server memory",
  "redis-server memory in use",
  "redis-server folder",
  "nats-server memory",
  "nats-server live heap",
  "nats-server memory after a restart",
  "nats-server live heap after a restart",
  "nats-server folder",
] as const;

const ENVIRONMENT = "bench-stored";
const TENANT = "default" as TenantId;
const JWT_SECRET = "a secret of the bench, 32 characters";
/** Rooms that are edited at the same time. */
const LANES = 16;
const READY_MS_MAX = 120_000;
const SETTLED_MS_MAX = 900_000;
const STOP_MS_MAX = 15_000;

/** Rooms are saved, counted, trimmed and released within seconds. The stored data do not depend on these times. */
const SOON = {
  SNAPSHOT_AGE_MS_MAX: "3000",
  SNAPSHOT_INTERVAL_MS_MIN: "1000",
  REPLAY_WINDOW_MS: "12000",
  HISTORY_SEGMENT_MS_MIN: "5000",
  BOARD_CHECKPOINT_MS_MAX: "6000",
  BOARD_TOTALS_MS: "3000",
  DOCUMENT_IDLE_MS_MAX: "3000",
  ROOM_IDLE_MS_MAX: "3000",
};
/**
 * Rooms that wait for their trim. Users wait while there are more: the document service releases rooms before they are
 * trimmed when memory is half full, and a sweep trims them an hour later.
 */
const WAITING_ROOMS_MAX = 4_000;
/** Few, so that leaderboards release rooms and the rest is what a steady process has. */
const BOARD_ROOMS_MAX = 500;
const UNLIMITED = ["ROOMS_PER_TENANT_MAX", "CONTROL_BURST", "CONTROLS_PER_SECOND", "CATCH_UP_BYTES_BURST", "CATCH_UP_BYTES_PER_SECOND"];

/** Ids as applications have them. Their lengths count in nearly every key and subject. */
function roomId(index: number): RoomId {
  return `3b9f0000-5a2e-4c41-9d7e-${String(index).padStart(12, "0")}` as RoomId;
}

function tokenOf(user: string): Promise<string> {
  return makeToken({ room: ["*"], user, name: `Name of ${user}`, rights: ["read", "write"], tenant: TENANT, ttl: 36_000 }, JWT_SECRET);
}

function userId(lane: number, member: number): string {
  return `user-${String(lane * 1_000 + member).padStart(15, "0")}`;
}

/** The whole of Coroom as `coroom start` runs it, beside engines of which the bench may read everything. */
type System = {
  readonly nats: Engine;
  readonly redis: Engine;
  readonly folder: string;
  readonly pid: number;
  readonly url: string;
  readonly metricsUrl: string;
  stop(): Promise<void>;
};

async function startSystem(): Promise<System> {
  const folder = mkdtempSync(join(tmpdir(), "coroom-bench-stored-"));
  const [nats, redis] = await Promise.all([
    startNatsServer({ dataDir: join(folder, "nats"), env: { GODEBUG: "gctrace=1" } }), // nats-server logs each collection of garbage.
    startRedisServer({ dataDir: join(folder, "redis") }),
  ]);
  const [port, healthPort] = [await claimPort(0, "127.0.0.1", "port"), await claimPort(0, "127.0.0.1", "port")];
  const logFile = join(folder, "coroom.log");
  const settings = {
    ...SOON,
    ...Object.fromEntries([...LIFTED_LIMITS, ...UNLIMITED.map((name) => [name, String(1e9)] as const)]),
    ENVIRONMENT,
    JWT_SECRET,
    BOARD_ROOMS_MAX: String(BOARD_ROOMS_MAX),
    NATS_URL: nats.url,
    REDIS_URL: redis.url,
    PORT: String(port),
    HEALTH_PORT: String(healthPort),
    DATA_DIR: join(folder, "coroom"),
    LOG_LEVEL: "warn",
  };
  const child = await spawnChild({
    path: process.execPath,
    args: [...NODE_FLAGS, resolve("dist/cli/main.js"), "start"],
    env: Object.fromEntries(Object.entries(settings).map(([name, value]) => [`COROOM_${name}`, value])),
    cwd: resolve("."),
    logFile,
  });
  await eventually("coroom is ready", () => readFileSync(logFile, "utf8").includes("coroom ready"), READY_MS_MAX);
  return {
    nats,
    redis,
    folder,
    pid: child.pid,
    url: `ws://127.0.0.1:${port}`,
    metricsUrl: `http://127.0.0.1:${healthPort}/metrics`,
    stop: async () => {
      await child.stop(STOP_MS_MAX);
      await Promise.all([nats.stop(), redis.stop()]);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** `emptyNatsBytes`: memory of nats-server without any room. */
type StoredRooms = { readonly emptyNatsBytes: number; readonly half: Stored; readonly all: Stored };

/** Measured at half of the rooms and at all of them. Throws if an edit is refused, or if rooms do not come to rest. */
export async function measureStoredRooms(plan: StoredRoomsPlan): Promise<StoredRooms> {
  const system = await startSystem();
  try {
    const emptyNatsBytes = residentBytesOf(system.nats.pid);
    const half = Math.floor(plan.rooms / 2);
    await fill(system, 0, half, plan);
    const atHalf = await measureAt(half, system, plan);
    await fill(system, half, plan.rooms, plan);
    return { emptyNatsBytes, half: atHalf, all: await measureAt(plan.rooms, system, plan) };
  } finally {
    await system.stop();
  }
}

/** Edits the rooms `from` to `to`. The users are connected only meanwhile. */
async function fill({ url, metricsUrl }: System, from: number, to: number, { participants, edits, print }: StoredRoomsPlan): Promise<void> {
  const began = performance.now();
  const lanes = Array.from({ length: LANES }, (_, lane) =>
    Array.from({ length: participants }, (__, member) => new RoomVisitor(userId(lane, member))),
  );
  const visitors = lanes.flat();
  try {
    await Promise.all(visitors.map(async (visitor) => visitor.connect(url, await tokenOf(visitor.user))));
    let [next, waiting] = [from, 0];
    const watchWaiting = async (): Promise<void> => {
      for (; next < to; await sleep(500)) waiting = (await openRooms(metricsUrl))["coroom_documents_rooms"] ?? 0;
    };
    const editInTurn = async (ofLane: readonly RoomVisitor[]): Promise<void> => {
      while (next < to) {
        while (waiting > WAITING_ROOMS_MAX) await sleep(100);
        const room = roomId(next++);
        await Promise.all(ofLane.map((visitor) => visitor.visit(room, edits)));
      }
    };
    await Promise.all([watchWaiting(), ...lanes.map(editInTurn)]);
  } finally {
    for (const visitor of visitors) visitor.close();
  }
  print(`  ${to - from} rooms edited within ${((performance.now() - began) / 1_000).toFixed(0)} s`);
}

async function measureAt(rooms: number, system: System, { pauseSeconds, print }: StoredRoomsPlan): Promise<Stored> {
  const nats = await connectNats({ servers: system.nats.url, name: "bench" });
  const connection = await connectedRedis(system.redis.url);
  const { redis } = connection;
  const natsLog = join(system.folder, "nats", "nats-server.log");
  const began = performance.now();
  try {
    await settle(rooms, system, { nats, redis });
    print(`  ${rooms} rooms saved, counted, trimmed and released after ${((performance.now() - began) / 1_000).toFixed(0)} s`);
    await redis.call("BGREWRITEAOF"); // The file has grown to between once and twice its least size.
    await eventually("redis-server has rewritten its file", async () => (await redisInfo(redis, "aof_rewrite_in_progress")) === 0);
    await sleep(pauseSeconds * 1_000);
    const before = {
      "node memory": residentBytesOf(system.pid),
      "redis-server memory": residentBytesOf(system.redis.pid),
      "redis-server memory in use": await redisInfo(redis, "used_memory"),
      "redis-server folder": folderBytes(join(system.folder, "redis")),
      "nats-server memory": residentBytesOf(system.nats.pid),
      "nats-server live heap": liveHeapBytes(natsLog),
    };
    const byStream = await natsByStream(nats, ENVIRONMENT);
    await system.nats.restart();
    // Until then, the gateway refuses the users of the next rooms.
    await eventually("the gateway reaches NATS again", async () => (await fetch(`${system.url.replace("ws:", "http:")}/readyz`)).ok);
    await sleep(pauseSeconds * 1_000);
    const bytes = {
      ...before,
      "nats-server memory after a restart": residentBytesOf(system.nats.pid),
      "nats-server live heap after a restart": liveHeapBytes(natsLog),
      "nats-server folder": folderBytes(join(system.folder, "nats")),
    };
    return { rooms, bytes, redis: await redisByWindow(redis), nats: byStream };
  } finally {
    connection.stop();
    await closeNats(nats);
  }
}

/** Waits until only the last record of each room is in the log, all boards are counted, and no process has a room open. */
async function settle(
  rooms: number,
  system: System,
  { nats, redis }: { readonly nats: NatsConnection; readonly redis: RedisConnection["redis"] },
): Promise<void> {
  const isSettled = async (): Promise<boolean> => {
    const { log, KV_boardpoints: boards } = await natsByStream(nats, ENVIRONMENT);
    const open = await openRooms(system.metricsUrl);
    const ranked = await redis.hlen(keysOf(ENVIRONMENT).board(tenantBoard(TENANT, "rooms"), "everyone", ALL_TIME).full);
    state = `${log?.count} records in the log, ${boards?.subjects} checkpoints and ${ranked} ranks of boards, open ${JSON.stringify(open)}`;
    const isReleased = open["coroom_room_server_rooms"] === 0 && open["coroom_documents_rooms"] === 0;
    return log?.count === rooms && (boards?.subjects ?? 0) >= rooms && ranked === rooms && isReleased;
  };
  let state = "";
  for (const deadline = performance.now() + SETTLED_MS_MAX; !(await isSettled()); await sleep(500))
    if (performance.now() > deadline) throw new Error(`${rooms} rooms did not come to rest: ${state}`);
}

/** Rooms in memory by metric, of all partitions together. */
async function openRooms(url: string): Promise<Readonly<Record<string, number>>> {
  const text = await (await fetch(url)).text();
  const open: Record<string, number> = {};
  for (const [, name, value] of text.matchAll(/^(coroom_(?:room_server|documents|boards)_rooms)(?:\{[^}]*\})? (\d+)$/gm))
    open[name!] = (open[name!] ?? 0) + Number(value);
  return open;
}

export const storedRooms = defineExperiment({
  name: "stored-rooms",
  summary: "memory and disk of a room that nobody has open, for `coroom capacity`; twenty minutes, 1 GB",
  settings: {
    rooms: { parse: positiveInteger, fallback: 10_000, meaning: "rooms; memory is read at half of them and at all" },
    participants: { parse: positiveInteger, fallback: 2, meaning: "users who edit each room" },
    edits: { parse: positiveInteger, fallback: 3, meaning: "edits of each user in each room" },
    pauseSeconds: {
      parse: wholeNumber,
      fallback: 150,
      meaning: "seconds without work before memory is read; nats-server collects garbage every two minutes at the latest",
    },
  },
  run: async (options, print) => {
    for (const line of storedRoomsReport(await measureStoredRooms({ ...options, print }))) print(line);
  },
});

function storedRoomsReport({ emptyNatsBytes, half, all }: StoredRooms): readonly string[] {
  const rooms = all.rooms - half.rooms;
  const each = (value: (stored: Stored) => number): string => ((value(all) - value(half)) / rooms).toFixed(0).padStart(8);
  const megabytes = (bytes: number): string => `${(bytes / 1e6).toFixed(1)} MB`;
  return [
    `bytes for each room, from ${half.rooms} to ${all.rooms} rooms:`,
    ...BYTES.map(
      (name) => `${each(({ bytes }) => bytes[name])}  ${name} (${megabytes(half.bytes[name])} to ${megabytes(all.bytes[name])})`,
    ),
    `nats-server from ${megabytes(emptyNatsBytes)} without rooms:`,
    ...(["nats-server memory", "nats-server memory after a restart"] as const).map(
      (name) => `${((all.bytes[name] - emptyNatsBytes) / all.rooms).toFixed(0).padStart(8)}  ${name}`,
    ),
    "keys and bytes in Redis for each room, by the windows of boards:",
    ...KEY_KINDS.map(
      (kind) => `${each(({ redis }) => redis[kind].bytes)}  ${kind} (${each(({ redis }) => redis[kind].count).trim()} keys)`,
    ),
    "bytes in the streams of NATS for each room:",
    ...Object.entries(all.nats).map(
      ([name, { count, bytes, subjects }]) =>
        `${each(({ nats }) => nats[name]?.bytes ?? 0)}  ${name} (${count} messages of ${(bytes / count).toFixed(0)} bytes on ${subjects} subjects)`,
    ),
  ];
}
