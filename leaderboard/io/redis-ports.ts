/** The leaderboard's ports that Redis implements. */

import type { Clock } from "../../shared/time/clock.ts";
import { redisConnection, defineScripts } from "../../shared/io/redis.ts";
import { watchRedis } from "../../shared/io/redis.ts";
import type { Log } from "../../shared/process/log.ts";
import type { SharedConfig } from "../../shared/settings/common-settings.ts";
import { keysOf, type Keys } from "../boards/keys.ts";
import type { LeaderboardConfig } from "../config.ts";
import type { LeaderboardMetrics } from "../metrics.ts";
import { redisClosings, redisProgress } from "./redis-progress.ts";
import { redisTenants } from "./redis-tenants.ts";
import { redisBoard } from "./redis-board-writes.ts";
import type { Cluster, Redis } from "ioredis";
import type { StoredNames } from "../ports.ts";

export function redisPorts(
  config: SharedConfig & LeaderboardConfig,
  { clock, log, metrics }: { clock: Clock; log: Log; metrics: LeaderboardMetrics },
) {
  const { boardRoles: roles, boardTail: tail, boardShownMax, boardNamesPerRoomMax } = config;
  const keys = keysOf(config.environment);
  const line = redisConnection(config.redisUrl, log);
  const reach = watchRedis(line.redis, clock, metrics.redisUnreached);
  const boards = redisBoard(line.redis, keys, { hotMembers: 2 * boardShownMax, tail, roles });
  const tenants = redisTenants(line.redis, keys, { roles });
  return {
    ports: {
      boards,
      reads: boards,
      closings: redisClosings(line, keys),
      progress: redisProgress(line, keys),
      tenants,
      closedTenants: tenants,
      names: redisNames(line.redis, keys, { namesMax: boardNamesPerRoomMax }),
    },
    reaches: reach.reaches,
    stop: (): void => {
      reach.stop();
      line.stop();
    },
  };
}

/** Display names, in Redis beside the boards. */
type Scripts = { storeName(keys: number, ...args: (string | number)[]): Promise<null> };

/** `namesMax`: of one room; past it, new names are not stored. */
export function redisNames(redis: Redis | Cluster, keys: Keys, { namesMax }: { namesMax: number }): StoredNames {
  const scripts = defineScripts<Scripts>(redis, import.meta.url, { storeName: "names.lua" });
  return {
    write: async (room, user, name) =>
      void (await scripts.storeName(3, keys.applied(room), keys.names(room), keys.whole(room), user, name, namesMax)),
    read: async (room, users) => {
      if (users.length === 0) return new Map();
      const names = await redis.hmget(keys.names(room), ...users);
      return new Map(users.flatMap((user, index) => (names[index] == null ? [] : [[user, names[index]]])));
    },
  };
}
