/**
 * Each tenant's boards in Redis: its people by their points in all rooms, and its rooms. They have the form of a room's
 * boards and are read by the same code. A write sends scores of a room from its own boards, and adds only the difference
 * to what it sent before. So any process may repeat a write in any order, and the next write repairs a missed one.
 */

import type { Cluster, Redis } from "ioredis";

import { parseTenantId, type RoomId, type RoomKey, roomKey, roomOf, tenantOf, type UnixMillis } from "../../shared/ids.ts";
import { defineScripts } from "../../shared/io/redis.ts";
import { type BoardKeys, type Keys, type MemberRole, ROLES, TENANT_RANKINGS, tenantBoard } from "../boards/keys.ts";
import type { ClosedTenant, ClosedTenants, RoomChange, TenantBoards } from "../ports.ts";
import { parseWindow, type Window } from "../boards/windows.ts";
import { allKeysOf, fieldsOf, pairsOf, readInOneStep, scriptKeysOf, STAMP_LENGTH } from "./board-hashes.ts";

/** Maximum number of people's scores in one script, because Redis answers nobody else meanwhile, and of commands sent without waiting for answers. */
const AT_ONCE = 500;
/** Longer than a stopped process keeps points that it read before a deletion, so that it cannot add them afterwards. */
const DELETED_SECONDS = 24 * 3_600;

type Arguments = readonly (string | number)[];
type Scripts = { raise(keys: number, ...args: Arguments): Promise<void>; lower(keys: number, ...args: Arguments): Promise<void> };

/** Members and their values in a room's board: the stamp, then the score. */
type Values = readonly (readonly [member: string, value: string])[];
/** What to read of one of the room's boards. */
type RoomRead = { readonly role: MemberRole; readonly window: Window; readonly members: readonly string[] | "all" };
type Raised = {
  readonly keys: readonly string[];
  readonly parts: string;
  readonly members: readonly string[];
  readonly scores: readonly string[];
  readonly stamps: readonly string[];
};

export function redisTenants(
  redis: Redis | Cluster,
  keys: Keys,
  { roles, hotMembers }: { roles: readonly MemberRole[]; hotMembers: number },
): TenantBoards & ClosedTenants {
  const scripts = defineScripts<Scripts>(redis, import.meta.url, { raise: ["board.lua", "raise.lua"], lower: ["board.lua", "lower.lua"] });

  const raise = async (room: RoomKey, boards: readonly Raised[]): Promise<void> => {
    const whole = keys.whole(tenantBoard(tenantOf(room), "people"));
    for (const some of inScripts(boards)) {
      await scripts.raise(3, whole, some[0]!.parts, keys.deletedOfTenant(room), hotMembers, 1, JSON.stringify(some));
    }
  };

  const peopleOf = (room: RoomKey, role: MemberRole, window: Window, values: Values): Raised[] =>
    values.length === 0
      ? []
      : [
          {
            keys: scriptKeysOf(keys.board(tenantBoard(tenantOf(room), "people"), role, window)),
            parts: keys.part(room, role, window),
            members: values.map(([member]) => member),
            scores: values.map(([, value]) => scoreOf(value)),
            stamps: values.map(([, value]) => stampIn(value)),
          },
        ];

  /** `stamp`: of the member that earned points last. */
  const roomOfTenant = (room: RoomKey, role: MemberRole, window: Window, total: string, stamp: string): Raised => {
    const board = keys.board(tenantBoard(tenantOf(room), "rooms"), role, window);
    return { keys: scriptKeysOf(board), parts: board.full, members: [roomOf(room)], scores: [total], stamps: [stamp] };
  };

  /** One read for all boards, and one write unless the room has many members. */
  const send = async (room: RoomKey, reads: readonly RoomRead[]): Promise<void> => {
    if (reads.length === 0) return;
    const answers = await readInOneStep(
      redis,
      reads.flatMap(({ role, window, members }): [string, ...string[]][] => {
        const { counts, full } = keys.board(room, role, window);
        return [["hget", counts, "points"], members === "all" ? ["hgetall", full] : ["hmget", full, ...members]];
      }),
    );
    const raised = reads.flatMap(({ role, window, members }, index): Raised[] => {
      const [total, found] = [answers[2 * index] as string | null, answers[2 * index + 1]];
      const values = members === "all" ? [...fieldsOf(found)] : valuesOf(members, found as (string | null)[]);
      if (total === null || values.length === 0) return [];
      return [...peopleOf(room, role, window, values), roomOfTenant(room, role, window, total, latestStamp(values))];
    });
    await raise(room, raised);
  };

  const sendAll = async (room: RoomKey, windows: readonly Window[]): Promise<void> => {
    const reads = windows.flatMap((window) => roles.map((role): RoomRead => ({ role, window, members: "all" })));
    if (reads.length === 0) return;
    const sizes = await readInOneStep(
      redis,
      reads.map(({ role, window }) => ["hlen", keys.board(room, role, window).full]),
    );
    await send(
      room,
      reads.filter((_, index) => sizes[index] !== 0 && Number(sizes[index]) <= AT_ONCE),
    );
    for (const [index, { role, window }] of reads.entries()) if (Number(sizes[index]) > AT_ONCE) await sendLarge(room, role, window);
  };

  /** The total is read first, so that the stamp is never of an earlier point than the total's last one. */
  const sendLarge = async (room: RoomKey, role: MemberRole, window: Window): Promise<void> => {
    const { counts, full } = keys.board(room, role, window);
    const total = await redis.hget(counts, "points");
    let latest: Values = [];
    for await (const values of scan(full)) {
      await raise(room, peopleOf(room, role, window, values));
      latest = [["", latestStamp([...latest, ...values])]];
    }
    if (total !== null && latest.length > 0) await raise(room, [roomOfTenant(room, role, window, total, latestStamp(latest))]);
  };

  async function* scan(key: string): AsyncIterable<Values> {
    let cursor = "0";
    do {
      const [next, flat] = await redis.hscan(key, cursor, "COUNT", AT_ONCE);
      const values = [...pairsOf(flat)]; // A small hash is returned at once, whatever the count.
      for (let first = 0; first < values.length; first += AT_ONCE) yield values.slice(first, first + AT_ONCE);
      cursor = next;
    } while (cursor !== "0");
  }

  /** In groups: a tenant has thousands of rooms. */
  const expire = async (names: readonly string[], keepUntil: UnixMillis): Promise<void> => {
    for (let first = 0; first < names.length; first += AT_ONCE) {
      await Promise.all(names.slice(first, first + AT_ONCE).map((name) => redis.pexpireat(name, keepUntil)));
    }
  };

  const lower = (room: RoomKey, parts: string, board: BoardKeys, members: readonly string[]): Promise<void> =>
    scripts.lower(
      2,
      keys.whole(tenantBoard(tenantOf(room), "people")),
      parts,
      hotMembers,
      JSON.stringify(scriptKeysOf(board)),
      JSON.stringify(members),
    );

  /** The mark comes first: points that another leaderboard adds before it are removed, and it adds none afterwards. */
  const remove = async (room: RoomKey, windows: readonly Window[]): Promise<void> => {
    await redis.set(keys.deletedOfTenant(room), 1, "EX", DELETED_SECONDS);
    const people = tenantBoard(tenantOf(room), "people");
    const rooms = tenantBoard(tenantOf(room), "rooms");
    for (const role of ROLES) {
      for (const window of windows) {
        const parts = keys.part(room, role, window);
        const members: string[] = [];
        for await (const values of scan(parts)) members.push(...values.map(([member]) => member));
        for (let first = 0; first < members.length; first += AT_ONCE) {
          await lower(room, parts, keys.board(people, role, window), members.slice(first, first + AT_ONCE));
        }
        const board = keys.board(rooms, role, window);
        if ((await redis.hexists(board.full, roomOf(room))) === 1) await lower(room, board.full, board, [roomOf(room)]);
      }
    }
  };

  return {
    sendTotals: async (room, changes) => {
      await sendAll(
        room,
        changes.filter(({ members }) => members === "all").map(({ window }) => window),
      );
      const listed = changes.flatMap(({ window, members }) => (members === "all" ? [] : [{ window, members: [...members] }]));
      const longest = Math.max(0, ...listed.map(({ members }) => members.length));
      for (let first = 0; first < longest; first += AT_ONCE) {
        const reads = listed.flatMap(({ window, members }) => {
          const some = members.slice(first, first + AT_ONCE);
          return some.length === 0 ? [] : roles.map((role): RoomRead => ({ role, window, members: some }));
        });
        await send(room, reads);
      }
      await registerClosings(room, changes);
    },

    remove,

    due: async (endedBefore, countMax) =>
      (await redis.zrangebyscore(keys.tenantsClosing, "-inf", endedBefore, "LIMIT", 0, countMax)).flatMap(closedOf),

    finish: async ({ tenant, window }, keepUntil) => {
      for (const role of ROLES) {
        const rooms = await redis.hkeys(keys.board(tenantBoard(tenant, "rooms"), role, window).full);
        for (const ranking of TENANT_RANKINGS) {
          await expire(await allKeysOf(redis, keys.board(tenantBoard(tenant, ranking), role, window)), keepUntil);
        }
        await expire(
          rooms.map((room) => keys.part(roomKey(tenant, room as RoomId), role, window)),
          keepUntil,
        );
      }
      await redis.zrem(keys.tenantsClosing, `${tenant} ${window.id}`);
    },
  };

  /** After the write: a window that was released in between is released again. Before a checkpoint covers the points. */
  async function registerClosings(room: RoomKey, changes: readonly RoomChange[]): Promise<void> {
    const closing = changes.flatMap(({ window: { id, end } }) => (Number.isFinite(end) ? [end, `${tenantOf(room)} ${id}`] : []));
    if (closing.length > 0) await redis.zadd(keys.tenantsClosing, ...closing);
  }
}

/** Each script gets as many boards as have `AT_ONCE` members together, in their order. */
function inScripts(boards: readonly Raised[]): Raised[][] {
  const grouped: Raised[][] = [];
  let members = AT_ONCE;
  for (const board of boards) {
    members += board.members.length;
    if (members > AT_ONCE) {
      grouped.push([]);
      members = board.members.length;
    }
    grouped.at(-1)!.push(board);
  }
  return grouped;
}

function valuesOf(members: readonly string[], found: readonly (string | null)[]): Values {
  return members.flatMap((member, index): Values => (found[index] == null ? [] : [[member, found[index]]]));
}

function stampIn(value: string): string {
  return value.slice(0, STAMP_LENGTH);
}

function scoreOf(value: string): string {
  return value.slice(STAMP_LENGTH);
}

/** A later instant has a lower stamp. Stamps are ASCII, so their order is the order of their bytes. */
function latestStamp(values: Values): string {
  return values.map(([, value]) => stampIn(value)).reduce((latest, stamp) => (stamp < latest ? stamp : latest));
}

function closedOf(entry: string): ClosedTenant[] {
  const [tenantText = "", id = ""] = entry.split(" ");
  const [tenant, window] = [parseTenantId(tenantText), parseWindow(id)];
  return tenant === undefined || window === undefined ? [] : [{ tenant, window }];
}
