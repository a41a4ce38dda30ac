/**
 * Each tenant's rooms in Redis, by their points. What is written is a room's total as its own boards have it, and
 * only upwards: so it may be written again by anyone, in any order, and a total that was missed comes with the next.
 */

import type { Cluster, Redis } from "ioredis";

import { type RoomId, roomOf, tenantOf } from "../../shared/ids.ts";
import type { Keys, Role } from "../keys.ts";
import type { RankedRoom, TenantBoards } from "../ports.ts";
import { KEPT_MS, type Window } from "../windows.ts";

export function redisTenants(redis: Redis | Cluster, keys: Keys, { roles }: { roles: readonly Role[] }): TenantBoards {
  const role = roles.find((kept) => kept === "everyone") ?? roles[0];

  const pointsOf = async (room: Parameters<TenantBoards["tell"]>[0], window: Window): Promise<number> =>
    role === undefined ? 0 : Number((await redis.hget(keys.board(room, role, window).counts, "points")) ?? 0);

  return {
    tell: async (room, windows) => {
      const [tenant, member] = [tenantOf(room), roomOf(room)];
      const points = await Promise.all(windows.map((window) => pointsOf(room, window)));
      const writes = windows.flatMap((window, index) => {
        if (points[index] === 0) return [];
        const key = keys.tenant(tenant, window);
        const written = redis.zadd(key, "GT", points[index]!, member);
        return Number.isFinite(window.end) ? [written, redis.pexpireat(key, window.start + KEPT_MS[window.kind])] : [written];
      });
      await Promise.all(writes);
    },

    page: async (tenant, window, { offset, limit }) => {
      const key = keys.tenant(tenant, window);
      const [rooms, entries] = await Promise.all([redis.zcard(key), redis.zrevrange(key, offset, offset + limit - 1, "WITHSCORES")]);
      const ahead = entries.length === 0 ? 0 : await redis.zcount(key, `(${entries[1]}`, "+inf");
      return { rooms, ranking: ranked(entries, offset, ahead) };
    },

    rankOf: async (room, window) => {
      const key = keys.tenant(tenantOf(room), window);
      const points = await redis.zscore(key, roomOf(room));
      return points === null ? undefined : { rank: (await redis.zcount(key, `(${points}`, "+inf")) + 1, room: roomOf(room), points: Number(points) };
    },
  };
}

/** `ahead`: rooms with more points than the first of these. */
function ranked(entries: readonly string[], offset: number, ahead: number): RankedRoom[] {
  const ranking: RankedRoom[] = [];
  for (let index = 0; index < entries.length; index += 2) {
    const [room, points] = [entries[index] as RoomId, Number(entries[index + 1])];
    const before = ranking.at(-1);
    const rank = before === undefined ? ahead + 1 : before.points === points ? before.rank : offset + index / 2 + 1;
    ranking.push({ rank, room, points });
  }
  return ranking;
}
