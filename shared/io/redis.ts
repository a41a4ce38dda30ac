/**
 * Connects to Redis for the life of the process. While Redis is unreachable every command fails immediately: boards are
 * late, new bans are not stored, and no caller waits. A command that was in flight when a connection broke is not
 * repeated: the caller first checks whether it was applied. `watchRedis` finds out whether Redis answers.
 */

import { readFileSync } from "node:fs";

import { Cluster, Redis, ReplyError } from "ioredis";

import type { Millis } from "../ids.ts";
import type { Log } from "../process/log.ts";
import { redisAddress } from "../settings/redis-address.ts";
import type { Clock } from "../time/clock.ts";
import { within } from "../time/pause.ts";

export type RedisConnection = {
  readonly redis: Redis | Cluster;
  /** Number of lost connections. After a loss a server may return with less data than before. */
  breaks(): number;
  /** Redis cannot be used now. A warning has stated why, unless a lost connection is being opened again. */
  isAway(): boolean;
  /** The reason why Redis answers but can never be used with this setting. Undefined: there is none. */
  obstacle(): string | undefined;
  receiveCheck(found: RedisCheck): void;
  stop(): void;
};
/** `replica`, `full`: it answers, and cannot be written. */
type RedisCheck = "usable" | "replica" | "full" | "silent";

const SILENT = "Redis does not answer: boards and bans are not updated until it does. Check COROOM_REDIS_URL";
const REPLICA =
  "Redis is a replica, which cannot be written: boards and bans are not updated. Set COROOM_REDIS_URL to the primary; if that is lost, run REPLICAOF NO ONE on the replica";
export const FULL =
  "Redis is full (maxmemory): boards, new bans and usage are not stored, and are sent again. Raise maxmemory, or remove what else is stored there";
const NO_CLUSTER =
  "COROOM_REDIS_URL has several nodes, which are not a Redis Cluster: boards and bans are not updated. Name one address for a single Redis, or start the nodes with cluster-enabled yes and join them (redis-cli --cluster create)";
const SENTENCES: Readonly<Record<Exclude<RedisCheck, "usable">, string>> = { replica: REPLICA, full: FULL, silent: SILENT };
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
  /** The sentence of the last warning. One outage is one warning, and one line at its end. */
  let problem: string | undefined;
  const report = (found: string, cause?: Error): void => {
    if (found === problem || (found === SILENT && problem !== undefined)) return;
    log.warn(cause === undefined ? {} : { cause }, found);
    problem = found;
  };
  const end = (): void => {
    if (problem !== undefined) log.info({}, "Redis answers again");
    problem = undefined;
  };
  redis.on("error", (error: Error) => {
    const cause = "lastNodeError" in error && error.lastNodeError instanceof Error ? error.lastNodeError : error;
    report(isNoCluster(cause) ? NO_CLUSTER : SILENT, cause);
  });
  redis.on("ready", () => {
    if (problem !== REPLICA && problem !== FULL) end(); // Both accept connections.
  });
  return {
    redis,
    breaks: () => breaks,
    isAway: () => problem !== undefined || serversOf(redis).some(({ status }) => LOST.includes(status)),
    obstacle: () => (problem === SILENT || problem === FULL ? undefined : problem), // Boards of a full Redis can be read.
    receiveCheck: (found) => (found === "usable" ? end() : report(SENTENCES[found])),
    stop: () => redis.disconnect(),
  };
}

const LOST: readonly string[] = ["close", "reconnecting", "connecting", "connect", "end"];

/** A client of a cluster connects to a server when it needs it. */
function serversOf(redis: Redis | Cluster): readonly Redis[] {
  return redis instanceof Cluster ? redis.nodes("master") : [redis];
}

/** The first word of a refusal is its code. A single Redis refuses to name its slots with ERR; a wrong user has another code. */
function isNoCluster(cause: Error): boolean {
  return cause instanceof ReplyError && cause.message.startsWith("ERR ");
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
/** Together with `ASK_MS` less than `COMMAND_MS_MAX`, so that an outage is reported before commands fail because of it. */
const ANSWER_MS_MAX = 2_500;

/** `reaches`: undefined until it is known. `unreached`: a gauge that is 1 while Redis cannot be used, else 0. */
type RedisReach = { readonly reaches: () => boolean | undefined; stop(): void };

/**
 * Whether Redis can be used, from requests to each of its servers every two seconds. An open connection does not reveal
 * that its server is stuck, and a process without commands would notice neither. `onFound`: Redis can be used again; the
 * time since the first request without success.
 */
export function watchRedis(
  { redis, receiveCheck }: Pick<RedisConnection, "redis" | "receiveCheck">,
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
    const found = await within(clock, ANSWER_MS_MAX, askRedis(redis), "silent" as const);
    if (isStopped) return;
    reaches = found === "usable";
    unreached.set(reaches ? 0 : 1);
    // At first the client may still be connecting, for example to a cluster.
    if (!isFirst || found !== "silent") receiveCheck(found);
    if (!reaches) {
      if (!isFirst) lostAt ??= askedAt;
    } else if (lostAt !== undefined) {
      onFound(Math.round(clock.now() - lostAt));
      lostAt = undefined;
    }
    cancel = clock.after(ASK_MS, () => void look());
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

/** Asks each server once. */
export async function askRedis(redis: Redis | Cluster): Promise<RedisCheck> {
  const servers = serversOf(redis);
  const answers = await Promise.allSettled(servers.map((server) => server.ping()));
  if (answers.length === 0 || answers.some(({ status }) => status === "rejected")) return "silent";
  const memories = await Promise.all(servers.map((server) => server.info("memory").catch(() => "")));
  if (memories.some(isFull)) return "full";
  if (redis instanceof Cluster) return "usable"; // The client looks for the new primary of a slot itself.
  const info = await redis.info("replication").catch(() => ""); // A user of an earlier release may not ask.
  return /^role:slave/m.test(info) ? "replica" : "usable";
}

/** A refused write leaves its memory free. So a full Redis may be a little below its maximum, and stay there. */
const FULL_SHARE = 0.99;

/** Whether Redis refuses writes for its memory. With another policy it would evict keys, which `coroom doctor` reports. */
function isFull(memory: string): boolean {
  const read = (name: string): number => Number(new RegExp(`^${name}:(\\d+)`, "m").exec(memory)?.[1] ?? 0);
  const max = read("maxmemory");
  const used = read("used_memory") - read("mem_not_counted_for_evict");
  return max > 0 && used > FULL_SHARE * max && /^maxmemory_policy:noeviction/m.test(memory);
}
