/** The gateway's connection to Redis, and what it stores there: sanctions, and usage by tenant and day. */

import { redisConnection, watchRedis } from "../../shared/io/redis.ts";
import type { GatewayId } from "../../shared/ids.ts";
import type { Log } from "../../shared/process/log.ts";
import type { Clock } from "../../shared/time/clock.ts";
import type { GatewayMetrics } from "../metrics.ts";
import type { SanctionStore, UsageStore } from "../ports.ts";
import { redisSanctions } from "./redis-sanctions.ts";
import { redisUsage } from "./redis-usage.ts";

type GatewayRedis = {
  readonly store: SanctionStore | undefined;
  readonly usageStore: UsageStore | undefined;
  /** Undefined: not known, or there is no Redis. */
  readonly reachesRedis: () => boolean | undefined;
  stop(): void;
};

/** Without a `url` nothing is stored. */
export function gatewayRedis(
  url: string,
  environment: string,
  gateway: GatewayId,
  { clock, log, metrics }: { clock: Clock; log: Log; metrics: GatewayMetrics },
): GatewayRedis {
  if (url === "") return { store: undefined, usageStore: undefined, reachesRedis: () => undefined, stop: () => {} };
  const connection = redisConnection(url, log);
  const reach = watchRedis(connection.redis, clock, metrics.redisUnreached);
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
