/** How users are called, in Redis beside their boards. */

import type { Cluster, Redis } from "ioredis";

import type { Keys } from "../boards/keys.ts";
import type { StoredNames } from "../ports.ts";
import { DELETED } from "./redis-board.ts";

/** `namesMax`: of one room; past it new ones are not stored. */
export function redisNames(redis: Redis | Cluster, keys: Keys, { namesMax }: { namesMax: number }): StoredNames {
  return {
    write: async (room, user, name) => {
      const key = keys.names(room);
      const [length, isKnown, isDeleted] = await Promise.all([redis.hlen(key), redis.hexists(key, user), redis.hexists(keys.applied(room), DELETED)]);
      if (isDeleted === 0 && (length < namesMax || isKnown === 1)) await redis.hset(key, user, name);
    },
    read: async (room, users) => {
      if (users.length === 0) return new Map();
      const names = await redis.hmget(keys.names(room), ...users);
      return new Map(users.flatMap((user, index) => (names[index] == null ? [] : [[user, names[index]]])));
    },
  };
}
