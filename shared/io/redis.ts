/**
 * Connects to Redis for the life of the process. While Redis is unreachable every command fails immediately: boards are
 * late, new bans are not stored, and no caller waits. A command that was in flight when a connection broke is not
 * repeated: the caller first checks whether it was applied. `watchRedis` finds out whether Redis answers.
 */

import { readFileSync } from "node:fs";

import { Cluster, Redis } from "ioredis";

import type { Millis } from "../ids.ts";
import type { Log } from "../process/log.ts";
import { redisAddress } from "../settings/redis-address.ts";
import type { Clock } from "../time/clock.ts";

export type RedisConnection = {
  readonly redis: Redis | Cluster;
  /** Number of lost connections. After a loss a server may return with less data than before. */
  breaks(): number;
  /** Redis is away, and a warning has stated why. */
  isReported(): boolean;
  stop(): void;
};

const COMMAND_MS_MAX = 5_000;
const RECONNECT_MS_MAX = 1_000;

/**
 * `urls`: one address of a single server, or several of a Redis Cluster, separated by commas. Returns without waiting
 * for the connection.
 */
export function redisConnection(urls: string, log: Log): RedisConnection {
  const retry = (times: number): number => Math.min(50 * times, RECONNECT_MS_MAX);
  const common = {
    protocol: 2,
    commandTimeout: COMMAND_MS_MAX,
    maxRetriesPerRequest: 0,
    autoResendUnfulfilledCommands: false,
    connectionName: "coroom",
    disableClientInfo: true, // Redis before 7.2 knows no permission for it.
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
    if (!isAway) log.warn({ cause }, "Redis does not answer: boards and bans are not updated until it does. Check COROOM_REDIS_URL");
    isAway = true;
  });
  redis.on("ready", () => {
    if (isAway) log.info({}, "Redis answers again");
    isAway = false;
  });
  return { redis, breaks: () => breaks, isReported: () => isAway, stop: () => redis.disconnect() };
}

/**
 * Defines Lua scripts on a client. No other code does so. `files`: the Lua files of each script, which are joined in
 * order. `beside`: the module that uses them. The first argument of a script is the number of its keys. The client also groups commands into a
 * pipeline by that argument, and refuses a pipeline with scripts for different servers of a cluster. So in a cluster
 * each script is sent alone, and redirected alone.
 */
export function defineScripts<Scripts extends object>(
  redis: Redis | Cluster,
  beside: string,
  files: Readonly<Record<keyof Scripts & string, readonly string[]>>,
): Scripts {
  const names = Object.keys(files) as (keyof Scripts & string)[];
  for (const name of names)
    redis.defineCommand(name, { lua: files[name].map((file) => readFileSync(new URL(file, beside), "utf8")).join("\n") });
  if (redis instanceof Cluster) {
    redis.options.autoPipeliningIgnoredCommands = [...(redis.options.autoPipeliningIgnoredCommands ?? []), ...names];
  }
  return redis as unknown as Scripts; // `defineCommand` adds the scripts to the client itself.
}

const ASK_MS = 2_000;

/** `reaches`: undefined until it is known. `unreached`: a gauge that is 1 while Redis does not answer, else 0. */
type RedisReach = { readonly reaches: () => boolean | undefined; stop(): void };

/**
 * Whether Redis answers, from a request to each of its servers every two seconds. An open connection does not reveal
 * that its server is stuck, and a process without commands would notice neither. `onFound`: Redis answers again; the
 * time since the first request without an answer.
 */
export function watchRedis(
  redis: Redis | Cluster,
  clock: Clock,
  unreached: { set(value: number): void },
  onFound: (downMs: number) => void = () => {},
): RedisReach {
  let reaches: boolean | undefined;
  let lostAt: Millis | undefined;
  let isStopped = false;
  const look = async (): Promise<void> => {
    const askedAt = clock.now();
    const isFirst = reaches === undefined;
    const servers = redis instanceof Cluster ? redis.nodes("master") : [redis];
    const answers = await Promise.allSettled(servers.map((server) => server.ping()));
    reaches = answers.length > 0 && answers.every(({ status }) => status === "fulfilled");
    unreached.set(reaches ? 0 : 1);
    if (!reaches) {
      if (!isFirst) lostAt ??= askedAt; // Before, the client may still be connecting, for example to a cluster.
    } else if (lostAt !== undefined) {
      onFound(Math.round(clock.now() - lostAt));
      lostAt = undefined;
    }
    if (!isStopped) cancel = clock.after(ASK_MS, () => void look());
  };
  let cancel = clock.after(ASK_MS, () => void look());
  return {
    reaches: () => reaches,
    stop: () => {
      isStopped = true;
      cancel();
    },
  };
}
