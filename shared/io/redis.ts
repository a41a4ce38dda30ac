/**
 * Connects to Redis for as long as the process lives. While it is away every command fails at once: boards are
 * behind then, new bans are not kept, and nobody waits. What was on its way when a connection broke is not sent again
 * by itself either: whoever sent it looks first.
 */

import { Cluster, Redis } from "ioredis";

import type { Log } from "../log.ts";

export type RedisLine = {
  readonly redis: Redis | Cluster;
  /** How often a connection has broken: after that a server may have come back with less than it had. */
  breaks(): number;
  stop(): void;
};

const COMMAND_MS_MAX = 5_000;
const RECONNECT_MS_MAX = 1_000;

/** `urls`: one of a single server, or several of a Redis Cluster, comma-separated. Does not wait for it. */
export function redisLine(urls: string, log: Log): RedisLine {
  const retry = (times: number): number => Math.min(50 * times, RECONNECT_MS_MAX);
  const common = { protocol: 2, commandTimeout: COMMAND_MS_MAX, maxRetriesPerRequest: 0, autoResendUnfulfilledCommands: false, connectionName: "coroom" } as const;
  const nodes = urls.split(",").map((url) => url.trim());
  const redis =
    nodes.length > 1
      ? new Cluster(nodes, { enableOfflineQueue: false, enableAutoPipelining: true, clusterRetryStrategy: retry, redisOptions: common })
      : new Redis(nodes[0]!, { ...common, enableOfflineQueue: false, retryStrategy: retry, enableAutoPipelining: true });
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
