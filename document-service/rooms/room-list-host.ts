/**
 * Lists the stored rooms of a tenant, a page at a time. The log keeps at least one record of every room, so its subjects
 * name all rooms; the last record of a room tells whether it has edits and whether it is deleted.
 *
 * Any document service can answer, because a list needs no room in memory. The work of one request is limited: a page
 * looks at a limited number of names, so a page after many deleted rooms may have fewer rooms than requested.
 */

import { isDeleted } from "../../shared/bus/checkpoint.ts";
import { type RoomId, roomKey, type Seq, type TenantId, type UnixMillis } from "../../shared/ids.ts";
import type { Checkpoints, EditLog, RoomNames } from "../ports.ts";

/** `after`: the last room of the page before; empty for the first page. Rooms are ordered by their UTF-16 code units. */
export type RoomListQuery = { readonly after: string; readonly prefix: string; readonly limit: number };
/** `seq`: the room's last edit. `snapshot`: the newest one, which includes all edits up to its seq. */
export type TenantRoom = {
  readonly room: RoomId;
  readonly seq: Seq;
  readonly snapshot?: { readonly seq: Seq; readonly time: UnixMillis; readonly bytes: number };
};
/** `next`: the value of `after` for the next page. Undefined: there are no more rooms. */
export type RoomListPage = { readonly rooms: readonly TenantRoom[]; readonly next: RoomId | undefined };

export type RoomListPorts = {
  readonly names: RoomNames;
  readonly log: Pick<EditLog, "end">;
  readonly checkpoints: Pick<Checkpoints, "read">;
};

/** Maximum number of rooms in a page. */
export const LISTED_ROOMS_MAX = 1_000;
/** Maximum number of names that one request looks at, deleted and empty rooms included. */
const NAMES_MAX = 2_000;
/** Number of rooms that are read at the same time. */
const READS_MAX = 50;

export async function listRooms(tenant: TenantId, query: RoomListQuery, ports: RoomListPorts): Promise<RoomListPage> {
  const names = namesIn(await ports.names.roomsOf(tenant), query);
  const rooms: TenantRoom[] = [];
  let looked = 0;
  while (rooms.length < query.limit && looked < Math.min(names.length, NAMES_MAX)) {
    const some = names.slice(looked, looked + Math.min(READS_MAX, query.limit - rooms.length, NAMES_MAX - looked));
    const found = await Promise.all(some.map((room) => lookAt(tenant, room, ports)));
    rooms.push(...found.filter((room) => room !== undefined));
    looked += some.length;
  }
  return { rooms, next: looked < names.length ? names[looked - 1] : undefined };
}

/** The names of a page and of all pages after it, in order. */
function namesIn(rooms: readonly RoomId[], { after, prefix }: RoomListQuery): RoomId[] {
  return rooms.filter((room) => room > after && room.startsWith(prefix)).sort((a, b) => (a < b ? -1 : 1));
}

/** Undefined: the room has no edit, or it is deleted. */
async function lookAt(tenant: TenantId, room: RoomId, { log, checkpoints }: RoomListPorts): Promise<TenantRoom | undefined> {
  const key = roomKey(tenant, room);
  const [end, { checkpoint }] = await Promise.all([log.end(key), checkpoints.read(key)]);
  if (end.kind !== "at" || end.seq === 0) return undefined;
  if (checkpoint === undefined) return { room, seq: end.seq };
  if (isDeleted(checkpoint)) return undefined;
  return { room, seq: end.seq, snapshot: { seq: checkpoint.seq, time: checkpoint.time, bytes: checkpoint.snapshot.bytes } };
}
