/**
 * The watched boards by room, and the rooms that are due to be published. A room's boards are published together, once
 * in the push interval, even if many of its boards are watched.
 */

import { type Millis, type RoomKey, type TenantId, tenantOf } from "../../shared/ids.ts";
import type { MemberRole } from "../boards/keys.ts";
import type { WindowKind } from "../boards/windows.ts";

/**
 * How current a room is in this process. Several leaderboards may receive a watch; the one that counts the room
 * publishes.
 */
export type Counted = "elsewhere" | "behind" | "current";

/**
 * `sought`: users whose own entries are sent, and until when a gateway wants them. At most `SOUGHT_MAX`, of all gateways;
 * the others get no own entry.
 *
 * `published`: checksum of the last push, or "behind". Undefined: nothing was pushed, or the board must be pushed again. */
export type WatchedBoard = {
  readonly role: MemberRole;
  readonly kind: WindowKind;
  until: Millis;
  windowId: string;
  published: number | "behind" | undefined;
  readonly sought: Map<string, Millis>;
};
const SOUGHT_MAX = 5_000;
const TENANT_SHARE = 0.75;

/** Whether a user was added, so that the board has to be read for the user. */
export function seekUsers({ sought }: WatchedBoard, users: readonly string[], until: Millis): boolean {
  let added = false;
  for (const user of users) {
    if (!sought.has(user) && sought.size >= SOUGHT_MAX) continue;
    added ||= !sought.has(user);
    sought.set(user, until);
  }
  return added;
}

export type WatchedRoom = {
  readonly room: RoomKey;
  readonly boards: Map<string, WatchedBoard>;
  counted: Counted;
  pushedAt: Millis | undefined;
  isPushing: boolean;
};

export class WatchedBoards {
  readonly #pushMs: number;
  readonly #rooms = new Map<RoomKey, WatchedRoom>();
  /** Rooms that may have changed since they were published. */
  readonly #due = new Set<WatchedRoom>();
  /** Rooms with a new watcher, which must receive the last pushed state. */
  readonly #again = new Set<WatchedRoom>();
  /** Number of watched boards of each tenant. */
  readonly #tenants = new Map<TenantId, number>();
  readonly #watchesMax: number;
  #size = 0;

  constructor({ boardPushMs, boardWatchesMax }: { boardPushMs: number; boardWatchesMax: number }) {
    this.#pushMs = boardPushMs;
    this.#watchesMax = boardWatchesMax;
  }

  /** Whether another board of the room may be watched. A tenant leaves a quarter of all boards to the others. */
  hasSpaceFor(key: RoomKey): boolean {
    return this.#size < this.#watchesMax && (this.#tenants.get(tenantOf(key)) ?? 0) < Math.ceil(TENANT_SHARE * this.#watchesMax);
  }

  /** The number of watched boards. */
  get size(): number {
    return this.#size;
  }

  get rooms(): MapIterator<RoomKey> {
    return this.#rooms.keys();
  }

  find(room: RoomKey, role: MemberRole, kind: WindowKind): WatchedBoard | undefined {
    return this.#rooms.get(room)?.boards.get(`${role} ${kind}`);
  }

  add(key: RoomKey, role: MemberRole, kind: WindowKind, until: Millis): WatchedBoard {
    const room = this.#rooms.get(key) ?? {
      room: key,
      boards: new Map<string, WatchedBoard>(),
      counted: "elsewhere",
      pushedAt: undefined,
      isPushing: false,
    };
    this.#rooms.set(key, room);
    const board: WatchedBoard = { role, kind, until, windowId: "", published: undefined, sought: new Map() };
    room.boards.set(`${role} ${kind}`, board);
    this.#count(key, 1);
    this.#again.add(room);
    return board;
  }

  publishAgain(key: RoomKey, board: WatchedBoard): void {
    const room = this.#rooms.get(key);
    board.published = undefined;
    if (room !== undefined) this.#again.add(room);
  }

  receiveChange(key: RoomKey): void {
    const room = this.#rooms.get(key);
    if (room !== undefined) this.#due.add(room);
  }

  /** Call when all changes so far are about to be published. */
  settle(room: WatchedRoom): void {
    this.#due.delete(room);
  }

  /**
   * Returns at most `countMax` rooms. `due`: their interval is over. `again`: they have a new watcher within the
   * interval, which receives the last pushed state.
   */
  take(now: Millis, countMax: number): { readonly due: WatchedRoom[]; readonly again: WatchedRoom[] } {
    const [due, again]: [WatchedRoom[], WatchedRoom[]] = [[], []];
    for (const room of new Set([...this.#due, ...this.#again])) {
      if (due.length + again.length >= countMax) break;
      if (room.isPushing) continue;
      const mayPush = room.pushedAt === undefined || now - room.pushedAt >= this.#pushMs;
      if (!mayPush && !this.#again.has(room)) continue;
      this.#again.delete(room);
      if (mayPush) this.#due.delete(room);
      (mayPush ? due : again).push(room);
    }
    return { due, again };
  }

  /** Removes boards without watchers. Boards are published again when the room's currency has changed or a new window has begun. */
  sweep(now: Millis, { counted, windowIdOf }: { counted: (room: RoomKey) => Counted; windowIdOf: (kind: WindowKind) => string }): void {
    for (const room of this.#rooms.values()) {
      for (const [key, board] of room.boards) {
        if (board.until < now) this.#remove(room, key);
        for (const [user, until] of board.sought) if (until < now) board.sought.delete(user);
      }
      const isOther = counted(room.room) !== room.counted;
      if (isOther) for (const board of room.boards.values()) board.published = undefined;
      if (isOther || [...room.boards.values()].some((board) => windowIdOf(board.kind) !== board.windowId)) {
        if (room.boards.size > 0) this.#due.add(room);
      }
    }
  }

  #remove(room: WatchedRoom, key: string): void {
    room.boards.delete(key);
    this.#count(room.room, -1);
    if (room.boards.size > 0) return;
    this.#rooms.delete(room.room);
    this.#due.delete(room);
    this.#again.delete(room);
  }

  #count(key: RoomKey, by: number): void {
    const tenant = tenantOf(key);
    const count = (this.#tenants.get(tenant) ?? 0) + by;
    this.#size += by;
    if (count > 0) this.#tenants.set(tenant, count);
    else this.#tenants.delete(tenant);
  }
}
