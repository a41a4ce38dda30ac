/** The gateway's connection to Redis, and what it stores there: sanctions, and usage by tenant and day. */

import type { Operations } from "../../shared/bus/operations-events.ts";
import type { GatewayId } from "../../shared/ids.ts";
import type { Log } from "../../shared/process/log.ts";
import type { Clock } from "../../shared/time/clock.ts";
import type { GatewayMetrics } from "../metrics.ts";
import type { SanctionStore, UsageStore } from "../ports.ts";

type GatewayRedis = {
  readonly store: SanctionStore | undefined;
  readonly usageStore: UsageStore | undefined;
  /** Undefined: not known, or there is no Redis. */
  readonly reachesRedis: () => boolean | undefined;
  stop(): void;
};

/** Without a `url` nothing is stored, and the client of Redis is not loaded: it takes a sixth of the CPU of a gateway's start. */
export async function gatewayRedis(
  url: string,
  environment: string,
  gateway: GatewayId,
  { clock, log, metrics, operations }: { clock: Clock; log: Log; metrics: GatewayMetrics; operations: Operations },
): Promise<GatewayRedis> {
  if (url === "") return { store: undefined, usageStore: undefined, reachesRedis: () => undefined, stop: () => {} };
  const [{ redisConnection, watchRedis }, { redisSanctions }, { redisUsage }] = await Promise.all([
    import("../../shared/io/redis.ts"),
    import("./redis-sanctions.ts"),
    import("./redis-usage.ts"),
  ]);
  const connection = redisConnection(url, log);
  const onFound = (downMs: number): void => operations.report({ kind: "redis_lost", downMs });
  const reach = watchRedis(connection, clock, metrics.redisUnreached, onFound);
  const stop = (): void => {
    reach.stop();
    connection.stop();
  };
  return {
    store: redisSanctions(connection, environment, clock),
    usageStore: redisUsage(connection, environment, gateway),
    reachesRedis: reach.reaches,
    stop,
  };
}
