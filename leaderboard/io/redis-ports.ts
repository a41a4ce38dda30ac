/** The leaderboard's side of Redis: a port for each thing that is kept there. */

import type { Clock } from "../../shared/clock.ts";
import { redisLine } from "../../shared/io/redis.ts";
import { watchRedis } from "../../shared/io/redis-reach.ts";
import type { Log } from "../../shared/log.ts";
import type { SharedConfig } from "../../shared/settings.ts";
import { keysOf } from "../boards/keys.ts";
import type { LeaderboardConfig } from "../config.ts";
import type { LeaderboardMetrics } from "../metrics.ts";
import { redisBoard } from "./redis-board.ts";
import { redisNames } from "./redis-names.ts";
import { redisClosings, redisProgress } from "./redis-progress.ts";
import { redisTenants } from "./redis-tenants.ts";

export function redisPorts(
  config: SharedConfig & LeaderboardConfig,
  { clock, log, metrics }: { clock: Clock; log: Log; metrics: LeaderboardMetrics },
) {
  const { boardRoles: roles, boardTail: tail, boardShownMax, boardNamesPerRoomMax } = config;
  const keys = keysOf(config.environment);
  const line = redisLine(config.redisUrl, log);
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
