/** How users are called, in Redis beside their boards. */

import type { Cluster, Redis } from "ioredis";

import type { Keys } from "../boards/keys.ts";
import type { StoredNames } from "../ports.ts";
import { defineScripts } from "../../shared/io/redis.ts";

type Scripts = { storeName(keys: number, ...args: (string | number)[]): Promise<null> };

/** `namesMax`: of one room; past it new ones are not stored. */
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
