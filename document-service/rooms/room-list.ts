/**
 * One page of a tenant's stored rooms: which rooms to look at next, and which of them the page has. The invariant: a
 * request looks at a limited number of names, so a page after many deleted rooms may have fewer rooms than requested; the
 * next page continues behind the last name that was looked at.
 */

import { type CheckpointEntry, isDeleted } from "../../shared/bus/checkpoint.ts";
import type { RoomId, Seq, UnixMillis } from "../../shared/ids.ts";
import type { RoomLogEnd } from "../ports.ts";

/** `after`: the last room of the page before; empty for the first page. Rooms are ordered by their UTF-16 code units. */
export type RoomListQuery = { readonly after: string; readonly prefix: string; readonly limit: number };
/**
 * `seq`: the room's last edit; missing if the room's last record does not decode. `snapshot`: the newest one, which includes
 * all edits up to its seq.
 */
export type TenantRoom = {
  readonly room: RoomId;
  readonly seq?: Seq;
  readonly snapshot?: { readonly seq: Seq; readonly time: UnixMillis; readonly bytes: number };
};
/** `next`: the value of `after` for the next page. Undefined: there are no more rooms. */
export type RoomListPage = { readonly rooms: readonly TenantRoom[]; readonly next: RoomId | undefined };

/** Maximum number of rooms in a page. */
export const LISTED_ROOMS_MAX = 1_000;
/** Maximum number of names that one request looks at, deleted and empty rooms included. */
const NAMES_MAX = 2_000;
/** Number of rooms that are read at the same time. */
const READS_MAX = 50;

export class RoomList {
  /** The names of this page and of all pages after it, in order. */
  readonly #names: readonly RoomId[];
  readonly #limit: number;
  readonly #rooms: TenantRoom[] = [];
  #looked = 0;

  /** `names`: all rooms of the tenant, in any order. */
  constructor(names: readonly RoomId[], { after, prefix, limit }: RoomListQuery) {
    this.#names = names.filter((room) => room > after && room.startsWith(prefix)).sort((a, b) => (a < b ? -1 : 1));
    this.#limit = limit;
  }

  /** The rooms to look at next. Empty: the page is complete. */
  get wanted(): readonly RoomId[] {
    const count = Math.min(READS_MAX, this.#limit - this.#rooms.length, NAMES_MAX - this.#looked);
    return this.#names.slice(this.#looked, this.#looked + count);
  }

  /** `found`: for each wanted room in its order. Undefined: the room is not listed. */
  receiveFound(found: readonly (TenantRoom | undefined)[]): void {
    this.#looked += found.length;
    this.#rooms.push(...found.filter((room) => room !== undefined));
  }

  get page(): RoomListPage {
    return { rooms: this.#rooms, next: this.#looked < this.#names.length ? this.#names[this.#looked - 1] : undefined };
  }
}

/** `end` undefined: the last record does not decode. Returns undefined if the room has no edit, or is deleted. */
export function tenantRoom(room: RoomId, end: RoomLogEnd | undefined, checkpoint: CheckpointEntry | undefined): TenantRoom | undefined {
  if (end !== undefined && (end.kind !== "at" || end.seq === 0)) return undefined;
  const last = end === undefined ? {} : { seq: end.seq };
  if (checkpoint === undefined) return { room, ...last };
  if (isDeleted(checkpoint)) return undefined;
  return { room, ...last, snapshot: { seq: checkpoint.seq, time: checkpoint.time, bytes: checkpoint.snapshot.bytes } };
}
