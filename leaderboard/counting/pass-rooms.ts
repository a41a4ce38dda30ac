/**
 * The rooms that a pass has met: opened when they are first heard of, forgotten when they are quiet and there are
 * many. Bounded by when it is full.
 */

import type { Millis, RoomKey } from "../../shared/ids.ts";
import type { Source } from "./instants.ts";
import type { Received } from "./received.ts";
import type { BoardRoom } from "./room-host.ts";

/** `boardPendingEditsMax`, `boardRoomsMax`: of all partitions that the process counts. */
export type PassRoomsOptions = { readonly boardPendingEditsMax: number; readonly boardRoomsMax: number; readonly boardOpeningsMax: number };
export type PassRoomsDeps = {
  readonly newRoom: (key: RoomKey) => BoardRoom;
  readonly onFailure: (cause: unknown) => void;
  /** How many partitions the process counts: each has its share of the memory, so that a busy one does not stop the others. */
  readonly countedPartitions: () => number;
};

/** From so much of the rooms it may know on, quiet ones are checkpointed early and forgotten. */
const PRESSED = 0.5;

export class PassRooms {
  readonly #options: PassRoomsOptions;
  readonly #deps: PassRoomsDeps;
  readonly #rooms = new Map<RoomKey, BoardRoom>();
  readonly #opening = new Set<BoardRoom>();
  /**
   * Known rooms whose checkpoint does not decode. They cannot be forgotten, and take next to no memory, so they do not
   * count against how many rooms there may be.
   */
  readonly #aside = new Set<BoardRoom>();
  /** At least what is pending. `isFull` is asked with each record, so the exact sum is made only once this is too high. */
  #pendingAtMost = 0;

  constructor(options: PassRoomsOptions, deps: PassRoomsDeps) {
    this.#options = options;
    this.#deps = deps;
  }

  get size(): number {
    return this.#rooms.size;
  }

  get all(): BoardRoom[] {
    return [...this.#rooms.values()];
  }

  get(key: RoomKey): BoardRoom | undefined {
    return this.#rooms.get(key);
  }

  receive(key: RoomKey, received: Received): void {
    this.#pendingAtMost += received.entries;
    this.#room(key).receive(received);
  }

  delete(key: RoomKey, streamSeq: number): void {
    this.#room(key).receiveDeleted(streamSeq);
  }

  /** Every room's boards were looked up: what was received is waiting to be applied. */
  get areOpen(): boolean {
    return this.#opening.size === 0;
  }

  get isPressed(): boolean {
    return this.#counted > this.#share(this.#options.boardRoomsMax) * PRESSED;
  }

  get isFull(): boolean {
    const [roomsMax, pendingMax] = [this.#share(this.#options.boardRoomsMax), this.#share(this.#options.boardPendingEditsMax)];
    if (this.#opening.size >= this.#options.boardOpeningsMax || this.#counted >= roomsMax) return true;
    return this.#pendingAtMost >= pendingMax && this.pending >= pendingMax;
  }

  get pending(): number {
    let pending = 0;
    for (const room of this.#rooms.values()) pending += room.pending;
    this.#pendingAtMost = pending;
    return pending;
  }

  checkpointsDue(now: Millis): BoardRoom[] {
    return this.all.filter((room) => room.isCheckpointDue(now, { isPressed: this.isPressed }));
  }

  retire(): void {
    if (!this.isPressed) return;
    for (const room of this.#rooms.values()) {
      if (!room.canRetire) continue;
      this.#rooms.delete(room.room);
      this.#aside.delete(room); // Deleted since.
    }
  }

  /** Everything of the stream up to there is in checkpoints, of what was received up to `received`. */
  coveredThrough(source: Source, received: number): number {
    let lowest = received;
    for (const room of this.#rooms.values()) lowest = Math.min(lowest, (room.uncoveredFrom(source) ?? Number.POSITIVE_INFINITY) - 1);
    return lowest;
  }

  get #counted(): number {
    return this.#rooms.size - this.#aside.size;
  }

  #share(limit: number): number {
    return limit / Math.max(1, this.#deps.countedPartitions());
  }

  #room(key: RoomKey): BoardRoom {
    const known = this.#rooms.get(key);
    if (known !== undefined) return known;
    const room = this.#deps.newRoom(key);
    this.#rooms.set(key, room);
    this.#opening.add(room);
    room.open().then(() => this.#receiveOpen(room), this.#deps.onFailure);
    return room;
  }

  #receiveOpen(room: BoardRoom): void {
    this.#opening.delete(room);
    if (room.isAside) this.#aside.add(room);
  }
}
