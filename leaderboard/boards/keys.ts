/**
 * Builds every Redis key. `{env}` is the environment's name. The keys of one script share a hash tag in braces, so that
 * they are in one slot of a Redis Cluster.
 *
 *   {env}:board:{<room>}:applied               hash: counted position of the room; fences writers, and remains after the room is deleted
 *   {env}:board:{<room>}:use:<cap>             hash: user -> points in the period that `applied` names
 *   {env}:board:{<room>}:whole                 never written: a script that names it gets TRYAGAIN while the room's slot moves to another server
 *   {env}:board:{<room>}:names                 hash: user -> announced display name
 *   {env}:board:{<room>}:<role>:<window>:hot     sorted set: the first `boardHotMembers` members, tie-break in the member
 *   {env}:board:{<room>}:<role>:<window>:full    hash: member -> stamp and score, of all members
 *   {env}:board:{<room>}:<role>:<window>:counts  hash: band of scores -> members in it; `points` -> sum of all scores; `ordered` -> 1 where there are
 *   {env}:board:{<room>}:<role>:<window>:in:<band>  sorted set: the band's members, as in the hot set; only of long boards with exact ranks
 *   {env}:tenant:{<tenant>}:<window>             sorted set: the tenant's rooms, by their points in the window
 *   {env}:tenant:{<tenant>}:<window>:people      HyperLogLog: users with points in any of the rooms
 *   {env}:tenants:closing                      sorted set: tenants' windows to archive, by the instant they end
 *   {env}:boards:<partition>:progress          string: progress report and sentinel of the counting leaderboard; missing or older after Redis lost data
 *   {env}:boards:<partition>:closing           sorted set: windows to archive, by the instant they end
 */

import type { RoomKey, TenantId } from "../../shared/ids.ts";
import type { Window } from "./windows.ts";

export type BoardKeys = { readonly hot: string; readonly full: string; readonly counts: string; readonly inBand: string };
export type Keys = ReturnType<typeof keysOf>;

/** Roles of boards: everyone, or only editors or commenters. The setting `boardRoles` names the boards of each room. */
export const ROLES = ["everyone", "editors", "commenters"] as const;
export type MemberRole = (typeof ROLES)[number];

/**
 * Each kind of activity has its own cap, so the two streams may be counted in any order. Edits and backends' activities
 * are capped by the minute, presence by its reporting period.
 */
export const CAPS = ["edits", "deeds", "present"] as const;
export type Cap = (typeof CAPS)[number];

export function keysOf(env: string) {
  const ofRoom = (room: RoomKey) => `${env}:board:{${room}}`;
  return {
    applied: (room: RoomKey) => `${ofRoom(room)}:applied`,
    use: (room: RoomKey, cap: Cap) => `${ofRoom(room)}:use:${cap}`,
    /**
     * Never written. A script that writes boards uses keys that it does not declare. While a slot moves, some of them
     * are on the other server, and the script would stop halfway with the mark already written. Redis answers TRYAGAIN
     * before the script starts if one of several declared keys is missing. This key is missing on both servers, so each
     * such call is rejected in time.
     */
    whole: (room: RoomKey) => `${ofRoom(room)}:whole`,
    names: (room: RoomKey) => `${ofRoom(room)}:names`,
    board: (room: RoomKey, role: MemberRole, window: Pick<Window, "id">): BoardKeys => {
      const board = `${ofRoom(room)}:${role}:${window.id}`;
      return { hot: `${board}:hot`, full: `${board}:full`, counts: `${board}:counts`, inBand: `${board}:in:` };
    },
    tenant: (tenant: TenantId, window: Pick<Window, "id">) => `${env}:tenant:{${tenant}}:${window.id}`,
    people: (tenant: TenantId, window: Pick<Window, "id">) => `${env}:tenant:{${tenant}}:${window.id}:people`,
    tenantsClosing: `${env}:tenants:closing`,
    progress: (partition: number) => `${env}:boards:${partition}:progress`,
    closing: (partition: number) => `${env}:boards:${partition}:closing`,
  } as const;
}

export function parseRole(text: string): MemberRole | undefined {
  return ROLES.find((role) => role === text);
}
