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
 *   {env}:tenant:{<tenant>}:<people|rooms>:<role>:<window>:...  a tenant's ranking of its people or rooms: the same keys as of a room's board
 *   {env}:tenant:{<tenant>}:people:<role>:<window>:of:<room>     hash: user -> stamp and score in that room, as last added to the tenant's board
 *   {env}:tenant:{<tenant>}:people:deleted:<room>                string, for a day: the room's points are removed and not added again
 *   {env}:tenants:closing                      sorted set: tenants' windows to archive, by the instant they end
 *   {env}:boards:<partition>:progress          string: progress report and sentinel of the counting leaderboard; missing or older after Redis lost data
 *   {env}:boards:<partition>:closing           sorted set: windows to archive, by the instant they end
 */

import { type RoomKey, type TenantId, tenantOf } from "../../shared/ids.ts";
import type { Window } from "./windows.ts";

export type BoardKeys = { readonly hot: string; readonly full: string; readonly counts: string; readonly inBand: string };
export type Keys = ReturnType<typeof keysOf>;

/** A tenant's two rankings: its people by their points in all rooms, and its rooms by the points of all people. */
export const TENANT_RANKINGS = ["people", "rooms"] as const;
export type TenantRanking = (typeof TENANT_RANKINGS)[number];
/** The boards of one ranking of a tenant. No room key contains a slash. */
export type TenantBoard = `${TenantId}/${TenantRanking}`;
/** Whose boards: a room's members, or a tenant's people or rooms. */
export type BoardOwner = RoomKey | TenantBoard;

export function tenantBoard(tenant: TenantId, ranking: TenantRanking): TenantBoard {
  return `${tenant}/${ranking}`;
}

export function isTenantBoard(owner: BoardOwner): owner is TenantBoard {
  return owner.includes("/");
}

export function tenantOfBoard(owner: BoardOwner): TenantId {
  return isTenantBoard(owner) ? (owner.slice(0, owner.indexOf("/")) as TenantId) : tenantOf(owner);
}

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
  const ofOwner = (owner: BoardOwner) =>
    isTenantBoard(owner) ? `${env}:tenant:{${tenantOfBoard(owner)}}:${owner.slice(owner.indexOf("/") + 1)}` : `${env}:board:{${owner}}`;
  const boardOf = (owner: BoardOwner, role: MemberRole, window: Pick<Window, "id">) => `${ofOwner(owner)}:${role}:${window.id}`;
  return {
    applied: (owner: BoardOwner) => `${ofOwner(owner)}:applied`,
    use: (room: RoomKey, cap: Cap) => `${ofOwner(room)}:use:${cap}`,
    /**
     * Never written. A script that writes boards uses keys that it does not declare. While a slot moves, some of them
     * are on the other server, and the script would stop halfway with the mark already written. Redis answers TRYAGAIN
     * before the script starts if one of several declared keys is missing. This key is missing on both servers, so each
     * such call is rejected in time.
     */
    whole: (owner: BoardOwner) => `${ofOwner(owner)}:whole`,
    names: (owner: BoardOwner) => `${ofOwner(owner)}:names`,
    board: (owner: BoardOwner, role: MemberRole, window: Pick<Window, "id">): BoardKeys => {
      const board = boardOf(owner, role, window);
      return { hot: `${board}:hot`, full: `${board}:full`, counts: `${board}:counts`, inBand: `${board}:in:` };
    },
    part: (room: RoomKey, role: MemberRole, window: Pick<Window, "id">) =>
      `${boardOf(tenantBoard(tenantOf(room), "people"), role, window)}:of:${room}`,
    deletedOfTenant: (room: RoomKey) => `${ofOwner(tenantBoard(tenantOf(room), "people"))}:deleted:${room}`,
    tenantsClosing: `${env}:tenants:closing`,
    /** The name changes when a version has to send all boards to the tenants again: a missing key restores all rooms. */
    progress: (partition: number) => `${env}:boards:${partition}:progress2`,
    closing: (partition: number) => `${env}:boards:${partition}:closing`,
  } as const;
}

export function parseRole(text: string): MemberRole | undefined {
  return ROLES.find((role) => role === text);
}
