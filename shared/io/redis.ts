/**
 * Connects to Redis for as long as the process lives. While it is away every command fails at once: boards are
 * behind then, new bans are not kept, and nobody waits. What was on its way when a connection broke is not sent again
 * by itself either: whoever sent it looks first.
 */

import { readFileSync } from "node:fs";

import { Cluster, Redis } from "ioredis";

import type { Log } from "../process/log.ts";
import { redisAddress } from "../settings/redis-address.ts";
import type { Clock } from "../time/clock.ts";

export type RedisConnection = {
  readonly redis: Redis | Cluster;
  /** How often a connection has broken: after that a server may have come back with less than it had. */
  breaks(): number;
  stop(): void;
};

const COMMAND_MS_MAX = 5_000;
const RECONNECT_MS_MAX = 1_000;

/** `urls`: one of a single server, or several of a Redis Cluster, comma-separated. Does not wait for it. */
export function redisConnection(urls: string, log: Log): RedisConnection {
  const retry = (times: number): number => Math.min(50 * times, RECONNECT_MS_MAX);
  const common = {
    protocol: 2,
    commandTimeout: COMMAND_MS_MAX,
    maxRetriesPerRequest: 0,
    autoResendUnfulfilledCommands: false,
    connectionName: "coroom",
  } as const;
  const { nodes, options } = redisAddress(urls);
  const redis =
    nodes.length > 1
      ? new Cluster([...nodes], {
          enableOfflineQueue: false,
          enableAutoPipelining: true,
          clusterRetryStrategy: retry,
          redisOptions: { ...common, ...options },
        })
      : new Redis({ ...common, ...options, ...nodes[0]!, enableOfflineQueue: false, retryStrategy: retry, enableAutoPipelining: true });
  let breaks = 0;
  const countBreaks = (node: Redis): void => void node.on("close", () => (breaks += 1));
  if (redis instanceof Cluster) redis.on("+node", countBreaks);
  else countBreaks(redis);
  let isAway = false;
  redis.on("error", (cause: Error) => {
    if (!isAway) log.warn({ cause }, "Redis is away: what is kept there falls behind until it is back; is COROOM_REDIS_URL right?");
    isAway = true;
  });
  redis.on("ready", () => {
    if (isAway) log.info({}, "Redis is back");
    isAway = false;
  });
  return { redis, breaks: () => breaks, stop: () => redis.disconnect() };
}

/**
 * The only way to give a client scripts: `files` of each its Lua, `beside` the module that asks. The first argument of
 * each is how many keys follow, and by its first argument the client picks what it sends together: scripts for different
 * servers of a cluster would be one pipeline, which it refuses. There each goes alone, and is sent on to another server alone.
 */
export function defineScripts<Scripts extends object>(
  redis: Redis | Cluster,
  beside: string,
  files: Readonly<Record<keyof Scripts & string, string>>,
): Scripts {
  const names = Object.keys(files) as (keyof Scripts & string)[];
  for (const name of names) redis.defineCommand(name, { lua: readFileSync(new URL(files[name], beside), "utf8") });
  if (redis instanceof Cluster) {
    redis.options.autoPipeliningIgnoredCommands = [...(redis.options.autoPipeliningIgnoredCommands ?? []), ...names];
  }
  return redis as unknown as Scripts; // `defineCommand` adds them to the client itself.
}

/**
 * Whether Redis answers, asked of each of its servers every other second: a connection that stands says nothing of one that is
 * stuck, and whoever has nothing to ask would notice neither.
 */
const EVERY_MS = 2_000;

/** `reaches`: undefined until it is known. `unreached`: set to 1 while it does not answer, and to 0. */
type RedisReach = { readonly reaches: () => boolean | undefined; stop(): void };

export function watchRedis(redis: Redis | Cluster, clock: Clock, unreached: { set(value: number): void }): RedisReach {
  let reaches: boolean | undefined;
  let isStopped = false;
  const look = async (): Promise<void> => {
    const servers = redis instanceof Cluster ? redis.nodes("master") : [redis];
    const answers = await Promise.allSettled(servers.map((server) => server.ping()));
    reaches = answers.length > 0 && answers.every(({ status }) => status === "fulfilled");
    unreached.set(reaches ? 0 : 1);
    if (!isStopped) cancel = clock.after(EVERY_MS, () => void look());
  };
  let cancel = clock.after(EVERY_MS, () => void look()); // Before that it may still be connecting.
  return {
    reaches: () => reaches,
    stop: () => {
      isStopped = true;
      cancel();
    },
  };
}
