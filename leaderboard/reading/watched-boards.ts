/**
 * The boards that somebody looks at, by their rooms, and which rooms are to be told of when. A room's boards are told
 * together, so that however many of them are looked at a room is told of once in the push interval.
 */

import type { Millis, RoomKey } from "../../shared/ids.ts";
import type { Role } from "../boards/keys.ts";
import type { WindowKind } from "../boards/windows.ts";

/** Of a room, as this process sees it. Of several leaderboards that hear of a watch, the one that counts the room publishes. */
export type Counted = "elsewhere" | "behind" | "current";

/** `said`: what was told last; undefined: nothing, or to be told anew. */
export type WatchedBoard = {
  readonly role: Role;
  readonly kind: WindowKind;
  until: Millis;
  windowId: string;
  said: number | "behind" | undefined;
};
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
  /** May have changed since they were told of. */
  readonly #due = new Set<WatchedRoom>();
  /** Have somebody new, who is to be told what the others were. */
  readonly #anew = new Set<WatchedRoom>();
  #size = 0;

  constructor({ boardPushMs }: { boardPushMs: number }) {
    this.#pushMs = boardPushMs;
  }

  /** Boards. */
  get size(): number {
    return this.#size;
  }

  get rooms(): MapIterator<RoomKey> {
    return this.#rooms.keys();
  }

  find(room: RoomKey, role: Role, kind: WindowKind): WatchedBoard | undefined {
    return this.#rooms.get(room)?.boards.get(`${role} ${kind}`);
  }

  add(key: RoomKey, role: Role, kind: WindowKind, until: Millis): WatchedBoard {
    const room = this.#rooms.get(key) ?? {
      room: key,
      boards: new Map<string, WatchedBoard>(),
      counted: "elsewhere",
      pushedAt: undefined,
      isPushing: false,
    };
    this.#rooms.set(key, room);
    const board: WatchedBoard = { role, kind, until, windowId: "", said: undefined };
    room.boards.set(`${role} ${kind}`, board);
    this.#size += 1;
    this.#anew.add(room);
    return board;
  }

  sayAnew(key: RoomKey, board: WatchedBoard): void {
    const room = this.#rooms.get(key);
    board.said = undefined;
    if (room !== undefined) this.#anew.add(room);
  }

  receiveChange(key: RoomKey): void {
    const room = this.#rooms.get(key);
    if (room !== undefined) this.#due.add(room);
  }

  /** What has changed so far is about to be told. */
  settle(room: WatchedRoom): void {
    this.#due.delete(room);
  }

  /** Those whose time has come; with somebody new only where it has not: they are told what was told last. */
  take(now: Millis, countMax: number): { readonly due: WatchedRoom[]; readonly anew: WatchedRoom[] } {
    const [due, anew]: [WatchedRoom[], WatchedRoom[]] = [[], []];
    for (const room of new Set([...this.#due, ...this.#anew])) {
      if (due.length + anew.length >= countMax) break;
      if (room.isPushing) continue;
      const mayPush = room.pushedAt === undefined || now - room.pushedAt >= this.#pushMs;
      if (!mayPush && !this.#anew.has(room)) continue;
      this.#anew.delete(room);
      if (mayPush) this.#due.delete(room);
      (mayPush ? due : anew).push(room);
    }
    return { due, anew };
  }

  /** Boards that nobody looks at any more go; of a room counted otherwise than it was all are told anew; a new window is a change. */
  sweep(now: Millis, { counted, windowIdOf }: { counted: (room: RoomKey) => Counted; windowIdOf: (kind: WindowKind) => string }): void {
    for (const room of this.#rooms.values()) {
      for (const [key, board] of room.boards) if (board.until < now) this.#remove(room, key);
      const isOther = counted(room.room) !== room.counted;
      if (isOther) for (const board of room.boards.values()) board.said = undefined;
      if (isOther || [...room.boards.values()].some((board) => windowIdOf(board.kind) !== board.windowId)) {
        if (room.boards.size > 0) this.#due.add(room);
      }
    }
  }

  #remove(room: WatchedRoom, key: string): void {
    room.boards.delete(key);
    this.#size -= 1;
    if (room.boards.size > 0) return;
    this.#rooms.delete(room.room);
    this.#due.delete(room);
    this.#anew.delete(room);
  }
}
