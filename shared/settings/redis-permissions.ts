/**
 * Defines which role may use which keys and commands of Redis. The users of redis-server are generated from this table
 * (`coroom redis-users`). `leaderboard/boards/keys.ts`, `gateway/io/redis-sanctions.ts` and `gateway/io/redis-usage.ts` build the keys.
 */

/** The roles that use Redis. */
export const REDIS_ROLES = ["leaderboard", "gateway"] as const;
export type RedisRole = (typeof REDIS_ROLES)[number];

type RedisPermissions = { readonly keys: readonly string[]; readonly commands: readonly string[] };

/** The commands with which the client connects and follows the slots of a Redis Cluster. */
const CONNECTION = ["ping", "info", "hello", "select", "readonly", "asking", "client|setname", "cluster|slots"];
const SCRIPTS = ["eval", "evalsha"];

/** `pttl`, `pfadd`, `pfcount`: for leaderboards of earlier versions during an upgrade. */
const COUNTING = ["multi", "exec", "get", "set", "del", "unlink", "pttl", "pexpireat", "pfadd", "pfcount", "@hash", "@sortedset"];

/** Patterns of keys, and commands and categories (`@hash`). They also limit the commands within scripts. */
export function redisPermissions(role: RedisRole, environment: string): RedisPermissions {
  switch (role) {
    case "leaderboard":
      return {
        keys: ["board", "boards", "tenant", "tenants"].map((kind) => `${environment}:${kind}:*`),
        commands: [...CONNECTION, ...SCRIPTS, ...COUNTING],
      };
    case "gateway":
      return {
        keys: [`${environment}:sanctions`, `${environment}:usage:*`],
        commands: [...CONNECTION, ...SCRIPTS, "hget", "hgetall", "hlen", "hset", "hdel", "pexpireat"],
      };
  }
}
