/**
 * The leaderboard's ports that Redis implements: boards, display names, the progress report of each partition, and the
 * windows that are still to be archived.
 */

import type { Cluster, Redis } from "ioredis";
import { z } from "zod";

import { partitionOf } from "../../shared/bus/subjects.ts";
import { parseRoomKey, type UnixMillis } from "../../shared/ids.ts";
import { defineScripts, redisConnection, type RedisConnection, watchRedis } from "../../shared/io/redis.ts";
import type { Log } from "../../shared/process/log.ts";
import type { SharedConfig } from "../../shared/settings/common-settings.ts";
import type { Clock } from "../../shared/time/clock.ts";
import { isTenantBoard, type Keys, keysOf, ROLES } from "../boards/keys.ts";
import { parseWindow } from "../boards/windows.ts";
import type { LeaderboardConfig } from "../config.ts";
import type { LeaderboardMetrics } from "../metrics.ts";
import type { Closing, Closings, Progress, StoredNames } from "../ports.ts";
import { allKeysOf } from "./board-hashes.ts";
import { redisBoard, redisBoardReads } from "./redis-boards.ts";
import { redisTenants } from "./redis-tenants.ts";

export function redisPorts(
  config: SharedConfig & LeaderboardConfig,
  { clock, log, metrics }: { clock: Clock; log: Log; metrics: LeaderboardMetrics },
) {
  const { boardRoles: roles, boardTail: tail, boardShownMax, boardNamesPerRoomMax, boardNamesPerTenantMax } = config;
  const keys = keysOf(config.environment);
  const connection = redisConnection(config.redisUrl, log);
  /**
   * Redis answers a connection in order, and a write may contain thousands of scores. So a reader on the connection of the
   * writes would wait for all that were sent before, of any tenant.
   */
  const reading = redisConnection(config.redisUrl, logOfReads(log));
  const reaches = watchBoth([connection, reading], clock, metrics.redisUnreached);
  const hotMembers = 2 * boardShownMax;
  const boards = redisBoard(connection.redis, keys, { hotMembers, tail, roles });
  const namesMax = { perRoom: boardNamesPerRoomMax, perTenant: boardNamesPerTenantMax };
  const tenants = redisTenants(connection.redis, keys, { roles, hotMembers });
  return {
    ports: {
      boards,
      reads: redisBoardReads(reading.redis, keys),
      closings: redisClosings(connection, keys, config.logPartitions),
      progress: { ...redisProgress(connection, keys), read: redisProgress(reading, keys).read },
      tenants,
      closedTenants: tenants,
      names: { ...redisNames(connection.redis, keys, namesMax), read: redisNames(reading.redis, keys, namesMax).read },
    },
    reaches: reaches.reaches,
    isAway: connection.isAway,
    obstacle: connection.obstacle,
    stop: (): void => {
      reaches.stop();
      reading.stop();
      connection.stop();
    },
  };
}

/** Each connection reports its own outage, because Redis may refuse one of them alone, for example at its maximum number of clients. */
function logOfReads(log: Log): Log {
  const facts = { connection: "reads" };
  return {
    ...log,
    warn: (found, text) => log.warn({ ...found, ...facts }, text),
    info: (found, text) => log.info({ ...found, ...facts }, text),
  };
}

/** Redis is reached if each connection reaches it. The requests also keep a connection without reads from being dropped as idle by a firewall. */
function watchBoth(connections: readonly RedisConnection[], clock: Clock, unreached: { set(value: number): void }) {
  const values = connections.map(() => 0);
  const watches = connections.map((connection, index) =>
    watchRedis(connection, clock, {
      set: (value) => {
        values[index] = value;
        unreached.set(Math.max(...values));
      },
    }),
  );
  return {
    reaches: (): boolean | undefined => {
      const found = watches.map((watch) => watch.reaches());
      return found.includes(undefined) ? undefined : !found.includes(false);
    },
    stop: (): void => watches.forEach((watch) => watch.stop()),
  };
}

type NameScripts = { storeName(keys: number, ...args: (string | number)[]): Promise<1 | null> };

/** Maximum number of stored names; further names are not stored. */
type NamesMax = { readonly perRoom: number; readonly perTenant: number };

export function redisNames(redis: Redis | Cluster, keys: Keys, { perRoom, perTenant }: NamesMax): StoredNames {
  const scripts = defineScripts<NameScripts>(redis, import.meta.url, { storeName: ["names.lua"] });
  return {
    write: async (owner, user, name) => {
      const namesMax = isTenantBoard(owner) ? perTenant : perRoom;
      const isFull = await scripts.storeName(3, keys.applied(owner), keys.names(owner), keys.whole(owner), user, name, namesMax);
      return isFull === 1 ? "full" : "written";
    },
    read: async (owner, users) => {
      if (users.length === 0) return new Map();
      const names = await redis.hmget(keys.names(owner), ...users);
      return new Map(users.flatMap((user, index) => (names[index] == null ? [] : [[user, names[index]]])));
    },
  };
}

const StoredReport = z.object({
  service: z.string(),
  through: z.number().transform((number) => number as UnixMillis),
  totalsSent: z.number().transform((number) => number as UnixMillis),
  isRebuilding: z.boolean(),
});

type SentinelScripts = { writeSentinel(keys: number, ...args: (string | number)[]): Promise<0 | 1> };

export function redisProgress({ redis, breaks }: RedisConnection, keys: Keys): Progress {
  const scripts = defineScripts<SentinelScripts>(redis, import.meta.url, { writeSentinel: ["write-sentinel.lua"] });
  /** Number of connection losses when this partition's last sentinel was written. */
  const breaksAt = new Map<number, number>();
  /** No two sentinels of a service have the same number. */
  let sentinelCount = 0;
  return {
    begin: async (partition, report) => {
      const sentinel = { service: report.service, number: ++sentinelCount };
      breaksAt.set(partition, breaks());
      await redis.set(keys.progress(partition), JSON.stringify({ ...report, ...sentinel }));
      return sentinel;
    },
    beat: async (partition, report, last) => {
      if (last === undefined) return { kind: "lost" };
      const now = breaks();
      const sentinel = { service: report.service, number: ++sentinelCount };
      const isWritten = await scripts.writeSentinel(
        1,
        keys.progress(partition),
        last.service,
        last.number,
        JSON.stringify({ ...report, ...sentinel }),
      );
      if (isWritten === 0) return { kind: "lost" };
      const isKept = breaksAt.get(partition) === now && last.service === report.service;
      breaksAt.set(partition, now);
      return { kind: isKept ? "kept" : "doubtful", sentinel };
    },
    read: async (partition) => {
      const report = await redis.get(keys.progress(partition));
      return report === null ? undefined : StoredReport.safeParse(JSON.parse(report)).data;
    },
  };
}

/** `partitions`: their number. */
export function redisClosings({ redis }: RedisConnection, keys: Keys, partitions: number): Closings {
  return {
    open: async (partition, room, windows) => {
      const ending = windows.filter(({ end }) => Number.isFinite(end));
      if (ending.length > 0) await redis.zadd(keys.closing(partition), ...ending.flatMap(({ id, end }) => [end, `${room} ${id}`]));
    },
    due: async (partition, endedBefore, countMax) => {
      const entries = await redis.zrangebyscore(keys.closing(partition), "-inf", endedBefore, "LIMIT", 0, countMax);
      const own: Closing[] = [];
      for (const entry of entries) {
        const closing = closingOf(entry);
        const home = closing && partitionOf(closing.room, partitions);
        if (closing === undefined || home === undefined) continue;
        if (home === partition) {
          own.push(closing);
          continue;
        }
        // `coroom split-log` has moved the room, and only its new partition knows when the window is counted.
        await redis.zadd(keys.closing(home), closing.window.end, entry);
        await redis.zrem(keys.closing(partition), entry);
      }
      return own;
    },
    finish: async (partition, { room, window }, keepUntil) => {
      for (const role of ROLES) {
        for (const key of await allKeysOf(redis, keys.board(room, role, window))) await redis.pexpireat(key, keepUntil);
      }
      await redis.zrem(keys.closing(partition), `${room} ${window.id}`);
    },
    remove: async (partition, room, windows) => {
      await redis.zrem(keys.closing(partition), ...windows.map(({ id }) => `${room} ${id}`));
    },
  };
}

/** Undefined: an entry of a later version. */
function closingOf(entry: string): Closing | undefined {
  const [roomText = "", id = ""] = entry.split(" ");
  const [room, window] = [parseRoomKey(roomText), parseWindow(id)];
  return room === undefined || window === undefined ? undefined : { room, window };
}
