/**
 * The watched boards, and the times at which they are published. All watched boards of a room are published together,
 * after a change and at most once per push interval. They are counted up to the time of the read. A watcher that joins
 * within the interval receives the state that the others received: after a push of [1,2], a new watcher receives [1,2]
 * even if 3 is counted already. A gateway repeats its watches. Publishing stops when the watches expire.
 */

import { assertNever } from "../../shared/assert.ts";
import type { BoardUpdate, BoardWatch } from "../../shared/bus/board-messages.ts";
import type { Millis, RoomKey, UnixMillis } from "../../shared/ids.ts";
import { type BoardContents, checksumOf, type Names, NOTHING_APPLIED, rankAll } from "../boards/board.ts";
import { parseRole, type MemberRole } from "../boards/keys.ts";
import { type Window, windowAt, type WindowKind } from "../boards/windows.ts";
import type { OwnPlace } from "./board-answers.ts";
import { type Counted, seekUsers, type WatchedBoard, WatchedBoards, type WatchedRoom } from "./watched-boards.ts";

export type LiveOptions = {
  readonly boardRoles: readonly MemberRole[];
  readonly boardWindows: readonly WindowKind[];
  readonly boardShownMax: number;
  readonly boardPushMs: number;
  readonly boardWatchMs: number;
  readonly boardWatchesMax: number;
  readonly boardWritesMax: number;
};

export type LiveInput =
  | { readonly kind: "watch"; readonly watch: BoardWatch }
  /** Entries were counted in the room, or a name in it changed. */
  | { readonly kind: "changed"; readonly room: RoomKey }
  | { readonly kind: "tick" }
  | { readonly kind: "room-counted"; readonly push: BoardPush }
  | {
      readonly kind: "board-read";
      readonly push: BoardPush;
      readonly board: WatchedBoard;
      readonly window: Window;
      readonly state: BoardContents;
      readonly names: Names;
      readonly own: readonly OwnPlace[];
    }
  /** A request of the push failed. */
  | { readonly kind: "failed"; readonly push: BoardPush };

export type LiveEffect =
  /** Count everything that the streams now contain for the room. Answer with "room-counted". */
  | { readonly kind: "count-room"; readonly push: BoardPush; readonly room: RoomKey }
  /** Answer with "board-read". `from`: Redis, or the read of this push interval. */
  | {
      readonly kind: "read-board";
      readonly push: BoardPush;
      readonly room: RoomKey;
      readonly board: WatchedBoard;
      readonly window: Window;
      readonly from: "redis" | "recent";
      readonly sought: readonly string[];
    }
  | { readonly kind: "publish"; readonly update: BoardUpdate }
  | { readonly kind: "watch-refused" };

/** One push of a room's boards. `isFresh`: the streams are counted up to now before the boards are read. */
export type BoardPush = { readonly room: WatchedRoom; readonly isFresh: boolean; reading: number; hasFailed: boolean };

/** Two clocks: intervals use the steady clock, windows use the date. */
export type LiveTime = { readonly now: Millis; readonly wallNow: UnixMillis };

const TICK_MS = 5;

export class LiveBoards {
  readonly #options: LiveOptions;
  readonly #counted: (room: RoomKey) => Counted;
  readonly #watched: WatchedBoards;
  #pushing = 0;
  #sweptAt: Millis;
  /** Undefined while no board is watched. */
  #tickAt: Millis | undefined;
  #time: LiveTime;
  #effects: LiveEffect[] = [];

  /** `counted` returns how current the room is in this process. */
  constructor(options: LiveOptions, counted: (room: RoomKey) => Counted, time: LiveTime) {
    this.#options = options;
    this.#counted = counted;
    this.#watched = new WatchedBoards(options);
    this.#sweptAt = time.now;
    this.#time = time;
  }

  /** Rooms with a watched board. */
  get rooms(): MapIterator<RoomKey> {
    return this.#watched.rooms;
  }

  /** Watched boards. */
  get size(): number {
    return this.#watched.size;
  }

  /** Time of the next "tick", on the steady clock. */
  get nextTickAt(): Millis | undefined {
    return this.#tickAt;
  }

  receiveInput(input: LiveInput, time: LiveTime): LiveEffect[] {
    this.#time = time;
    this.#take(input);
    const effects = this.#effects;
    this.#effects = [];
    return effects;
  }

  #take(input: LiveInput): void {
    switch (input.kind) {
      case "watch":
        return this.#receiveWatch(input.watch);
      case "changed":
        return this.#watched.receiveChange(input.room);
      case "tick":
        return this.#tick();
      case "room-counted":
        return this.#readAll(input.push);
      case "board-read":
        this.#publish(input.push.room.room, input.board, input);
        return this.#finishRead(input.push);
      case "failed":
        input.push.hasFailed = true;
        return this.#finishRead(input.push);
      default:
        return assertNever(input);
    }
  }

  #receiveWatch({ room, role: roleName, window, isNew, sought = [], checksum: received }: BoardWatch): void {
    const [role, kind] = [parseRole(roleName), this.#options.boardWindows.find((known) => known === window)];
    const isKept = role !== undefined && kind !== undefined && this.#options.boardRoles.includes(role);
    const known = isKept ? this.#watched.find(room, role, kind) : undefined;
    if (!isKept || (known === undefined && !this.#watched.hasSpaceFor(room))) {
      this.#effects.push({ kind: "watch-refused" });
      // "unavailable" is permanent. A full leaderboard gets space again, or another one takes over the room.
      const answer = isKept ? "behind" : "unavailable";
      if (this.#counted(room) !== "elsewhere") this.#send({ kind: answer, room, role: roleName, window });
      return;
    }
    const until = (this.#time.now + this.#options.boardWatchMs) as Millis;
    const board = known ?? this.#watched.add(room, role, kind, until);
    board.until = until;
    const hasAdded = seekUsers(board, sought, until);
    const hasMissed = received !== undefined && known?.published !== undefined && known.published !== received;
    if (known !== undefined && (isNew || hasAdded || hasMissed)) this.#watched.publishAgain(room, known);
    this.#tickAt ??= (this.#time.now + TICK_MS) as Millis;
  }

  #tick(): void {
    const { now, wallNow } = this.#time;
    if (this.#tickAt === undefined || now < this.#tickAt) return;
    if (now - this.#sweptAt >= this.#options.boardPushMs) {
      this.#sweptAt = now;
      this.#watched.sweep(now, { counted: this.#counted, windowIdOf: (kind) => windowAt(kind, wallNow).id });
    }
    const { due, again } = this.#watched.take(now, this.#options.boardWritesMax - this.#pushing);
    for (const room of due) this.#beginPush(room, true);
    for (const room of again) this.#beginPush(room, false);
    this.#tickAt = this.#watched.size > 0 ? ((now + TICK_MS) as Millis) : undefined;
  }

  #beginPush(room: WatchedRoom, isFresh: boolean): void {
    const push: BoardPush = { room, isFresh, reading: 0, hasFailed: false };
    room.counted = this.#counted(room.room);
    if (room.counted === "behind") this.#publishBehind(room);
    if (room.counted !== "current") return;
    room.isPushing = true;
    this.#pushing += 1;
    if (!isFresh) return this.#readAll(push);
    push.reading = 1;
    this.#effects.push({ kind: "count-room", push, room: room.room });
  }

  /** A new watcher receives the last published state. The other watchers receive nothing before the interval is over. */
  #readAll(push: BoardPush): void {
    const { room, isFresh } = push;
    if (isFresh) this.#watched.settle(room);
    const boards = [...room.boards.values()].filter(({ published }) => isFresh || published === undefined);
    push.reading = boards.length;
    for (const board of boards) {
      const window = windowAt(board.kind, this.#time.wallNow);
      board.windowId = window.id;
      this.#effects.push({
        kind: "read-board",
        push,
        room: room.room,
        board,
        window,
        from: isFresh ? "redis" : "recent",
        sought: [...board.sought.keys()],
      });
    }
    if (boards.length === 0) this.#endPush(push);
  }

  #finishRead(push: BoardPush): void {
    push.reading -= 1;
    if (push.reading === 0) this.#endPush(push);
  }

  /** A push that failed is repeated after the interval. */
  #endPush({ room, isFresh, hasFailed }: BoardPush): void {
    if (isFresh || hasFailed) room.pushedAt = this.#time.now;
    if (hasFailed) {
      this.#watched.receiveChange(room.room);
      this.#publishBehind(room);
    }
    this.#pushing -= 1;
    room.isPushing = false;
  }

  #publish(
    room: RoomKey,
    board: WatchedBoard,
    { window, state, names, own }: Omit<LiveInput & { kind: "board-read" }, "kind" | "push" | "board">,
  ): void {
    const { applied = NOTHING_APPLIED, hot, members } = state;
    const ranked = rankAll(hot, "unique");
    const checksum = checksumOf([
      ...ranked,
      { user: window.id, score: members },
      ...[...names].map(([user, name]) => ({ user: `${user} ${name}`, score: 0 })),
      ...own.map(({ user, rank, score }) => ({ user: `${user} at ${rank}`, score })),
    ]);
    if (checksum === board.published) return;
    board.published = checksum;
    this.#send({
      kind: "shown",
      room,
      role: board.role,
      window: board.kind,
      windowId: window.id,
      epoch: applied.epoch,
      seq: applied.seq,
      shown: this.#options.boardShownMax,
      checksum,
      members,
      ranking: ranked.map(({ user, score }) => [user, score, names.get(user) ?? ""]),
      ...(own.length === 0 ? {} : { own: own.map(({ user, rank, score }): [string, number, number] => [user, rank, score]) }),
    });
  }

  #publishBehind({ room, boards }: WatchedRoom): void {
    for (const board of boards.values()) {
      if (board.published === "behind") continue;
      board.published = "behind";
      this.#send({ kind: "behind", room, role: board.role, window: board.kind });
    }
  }

  #send(update: BoardUpdate): void {
    this.#effects.push({ kind: "publish", update });
  }
}
