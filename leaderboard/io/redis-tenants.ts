/**
 * Each tenant's rooms in Redis, by their points. What is written is a room's total as its own boards have it, and
 * only upwards: so it may be written again by anyone, in any order, and a total that was missed comes with the next. How
 * many people there are in all rooms together is a HyperLogLog: 12 KB at most, where a set would grow with them.
 */

import type { Cluster, Redis } from "ioredis";

import { parseTenantId, type RoomId, roomOf, tenantOf } from "../../shared/ids.ts";
import type { Keys, Role } from "../keys.ts";
import type { ClosedTenant, ClosedTenants, RankedRoom, TenantBoards } from "../ports.ts";
import { parseWindow, type Window } from "../windows.ts";

export function redisTenants(redis: Redis | Cluster, keys: Keys, { roles }: { roles: readonly Role[] }): TenantBoards & ClosedTenants {
  const role = roles.find((kept) => kept === "everyone") ?? roles[0];

  const pointsOf = async (room: Parameters<TenantBoards["tell"]>[0], window: Window): Promise<number> =>
    role === undefined ? 0 : Number((await redis.hget(keys.board(room, role, window).counts, "points")) ?? 0);

  return {
    meet: async (room, windows, users) => {
      if (users.length > 0) await Promise.all(windows.map((window) => redis.pfadd(keys.people(tenantOf(room), window), ...users)));
    },

    tell: async (room, windows) => {
      const [tenant, member] = [tenantOf(room), roomOf(room)];
      const points = await Promise.all(windows.map((window) => pointsOf(room, window)));
      const told = windows.flatMap((window, index) => (points[index] === 0 ? [] : [{ window, points: points[index]! }]));
      const closing = told.flatMap(({ window }) => (Number.isFinite(window.end) ? [window.end, `${tenant} ${window.id}`] : []));
      if (closing.length > 0) await redis.zadd(keys.tenantsClosing, ...closing);
      await Promise.all(told.map(({ window, points: total }) => redis.zadd(keys.tenant(tenant, window), "GT", total, member)));
    },

    due: async (endedBefore, countMax) => (await redis.zrangebyscore(keys.tenantsClosing, "-inf", endedBefore, "LIMIT", 0, countMax)).flatMap(closedOf),

    finish: async ({ tenant, window }, keepUntil) => {
      await Promise.all([keys.tenant(tenant, window), keys.people(tenant, window)].map((key) => redis.pexpireat(key, keepUntil)));
      await redis.zrem(keys.tenantsClosing, `${tenant} ${window.id}`);
    },

    page: async (tenant, window, { offset, limit }) => {
      const key = keys.tenant(tenant, window);
      const [rooms, people, entries] = await Promise.all([redis.zcard(key), redis.pfcount(keys.people(tenant, window)), redis.zrevrange(key, offset, offset + limit - 1, "WITHSCORES")]);
      const ahead = entries.length === 0 ? 0 : await redis.zcount(key, `(${entries[1]}`, "+inf");
      return { rooms, people, ranking: ranked(entries, offset, ahead) };
    },

    rankOf: async (room, window) => {
      const key = keys.tenant(tenantOf(room), window);
      const points = await redis.zscore(key, roomOf(room));
      return points === null ? undefined : { rank: (await redis.zcount(key, `(${points}`, "+inf")) + 1, room: roomOf(room), points: Number(points) };
    },
  };
}

function closedOf(entry: string): ClosedTenant[] {
  const [tenantText = "", id = ""] = entry.split(" ");
  const [tenant, window] = [parseTenantId(tenantText), parseWindow(id)];
  return tenant === undefined || window === undefined ? [] : [{ tenant, window }];
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
