/**
 * Each tenant's rooms in Redis, by their points. A write sends a room's total from its own boards, and only raises the
 * stored total. So any process may repeat a write in any order, and the next write repairs a missed one. The number of
 * users in all rooms is a HyperLogLog: at most 12 KB, while a set would grow with the users.
 */

import type { Cluster, Redis } from "ioredis";

import { parseTenantId, type RoomId, roomOf, tenantOf } from "../../shared/ids.ts";
import { defineScripts } from "../../shared/io/redis.ts";
import type { Keys, MemberRole } from "../boards/keys.ts";
import type { ClosedTenant, ClosedTenants, RankedRoom, TenantBoards } from "../ports.ts";
import { KEPT_MS, parseWindow, type Window } from "../boards/windows.ts";

/** Maximum delay with which a closed window may be archived. */
const LATE_MS_MAX = 7 * 24 * 3_600_000;

type Scripts = {
  addUsers(keys: number, people: readonly string[], goesAt: readonly number[], users: readonly string[]): Promise<void>;
  sumPoints(keys: number, ...args: string[]): Promise<readonly string[]>;
  sendTotals(keys: number, ...args: string[]): Promise<void>;
};

export function redisTenants(
  redis: Redis | Cluster,
  keys: Keys,
  { roles }: { roles: readonly MemberRole[] },
): TenantBoards & ClosedTenants {
  const role = roles.find((kept) => kept === "everyone") ?? roles[0];

  const scripts = defineScripts<Scripts>(redis, import.meta.url, {
    addUsers: "add-users.lua",
    sumPoints: "totals.lua",
    sendTotals: "send-totals.lua",
  });

  return {
    addUsers: async (room, windows, users) => {
      if (users.length === 0) return;
      const tenant = tenantOf(room);
      const closing = windows.flatMap(({ id, end }) => (Number.isFinite(end) ? [end, `${tenant} ${id}`] : []));
      const people = windows.map((window) => keys.people(tenant, window));
      await Promise.all([
        closing.length > 0 && redis.zadd(keys.tenantsClosing, ...closing),
        scripts.addUsers(people.length, people, windows.map(goesAt), users),
      ]);
    },

    sendTotals: async (room, windows) => {
      if (role === undefined || windows.length === 0) return;
      const sums = await scripts.sumPoints(windows.length, ...windows.map((window) => keys.board(room, role, window).counts));
      const raised = windows.flatMap((window, index) =>
        sums[index] === "0" ? [] : [{ key: keys.tenant(tenantOf(room), window), sum: sums[index]!, goesAt: goesAt(window) }],
      );
      if (raised.length > 0) {
        await scripts.sendTotals(
          raised.length,
          ...raised.map(({ key }) => key),
          roomOf(room),
          ...raised.flatMap(({ sum, goesAt: at }) => [sum, String(at)]),
        );
      }
    },

    due: async (endedBefore, countMax) =>
      (await redis.zrangebyscore(keys.tenantsClosing, "-inf", endedBefore, "LIMIT", 0, countMax)).flatMap(closedOf),

    finish: async ({ tenant, window }, keepUntil) => {
      await Promise.all([keys.tenant(tenant, window), keys.people(tenant, window)].map((key) => redis.pexpireat(key, keepUntil)));
      await redis.zrem(keys.tenantsClosing, `${tenant} ${window.id}`);
    },

    page: async (tenant, window, { offset, limit }) => {
      const key = keys.tenant(tenant, window);
      const [rooms, people, entries] = await Promise.all([
        redis.zcard(key),
        redis.pfcount(keys.people(tenant, window)),
        redis.zrevrange(key, offset, offset + limit - 1, "WITHSCORES"),
      ]);
      const ahead = entries.length === 0 ? 0 : await redis.zcount(key, `(${entries[1]}`, "+inf");
      return { rooms, people, ranking: ranked(entries, offset, ahead) };
    },

    remove: async (room, windows) => {
      await Promise.all(windows.map((window) => redis.zrem(keys.tenant(tenantOf(room), window), roomOf(room))));
    },

    rankOf: async (room, window) => {
      const key = keys.tenant(tenantOf(room), window);
      const points = await redis.zscore(key, roomOf(room));
      return points === null
        ? undefined
        : { rank: (await redis.zcount(key, `(${points}`, "+inf")) + 1, room: roomOf(room), points: Number(points) };
    },
  };
}

/** The latest expiry. No leaderboard archives a window that receives a total after it was archived. 0: never. */
function goesAt({ kind, start, end }: Window): number {
  return Number.isFinite(end) ? start + KEPT_MS[kind] + LATE_MS_MAX : 0;
}

function closedOf(entry: string): ClosedTenant[] {
  const [tenantText = "", id = ""] = entry.split(" ");
  const [tenant, window] = [parseTenantId(tenantText), parseWindow(id)];
  return tenant === undefined || window === undefined ? [] : [{ tenant, window }];
}

/** `ahead`: number of rooms with more points than the first of these. */
function ranked(entries: readonly string[], offset: number, ahead: number): RankedRoom[] {
  const ranking: RankedRoom[] = [];
  for (let index = 0; index < entries.length; index += 2) {
    const [room, points] = [entries[index] as RoomId, Number(entries[index + 1])];
    const before = ranking.at(-1);
    const isTied = before !== undefined && before.points === points;
    const place = before === undefined ? ahead + 1 : offset + index / 2 + 1;
    ranking.push({ rank: isTied ? before.rank : place, room, points });
  }
  return ranking;
}
