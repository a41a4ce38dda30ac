/**
 * The rooms of a pass. A room is looked up with its first record, and removed from memory when it is quiet and there
 * are many rooms. `isFull` limits their number.
 */

import type { Millis, RoomKey } from "../../shared/ids.ts";
import { SOURCES } from "./received.ts";
import type { BoardRoom } from "./board-room.ts";
import type { StreamEnds } from "./progress.ts";

/** `boardPendingEditsMax`, `boardRoomsMax`: for all partitions together that the process counts. */
export type PassRoomsOptions = { readonly boardPendingEditsMax: number; readonly boardRoomsMax: number; readonly boardOpeningsMax: number };
/** Share of the maximum number of rooms above which quiet rooms are saved early and removed from memory. */
const PRESSED = 0.5;

export class PassRooms {
  readonly #options: PassRoomsOptions;
  readonly #countedPartitions: () => number;
  readonly #rooms = new Map<RoomKey, BoardRoom>();
  readonly #opening = new Set<BoardRoom>();
  /** Rooms with anything left to do. All regular work looks only at these: there may be thousands of quiet rooms. */
  readonly #active = new Set<BoardRoom>();
  /**
   * Rooms whose checkpoint does not decode. They cannot be forgotten and take almost no memory, so they do not count
   * against the maximum of rooms.
   */
  readonly #aside = new Set<BoardRoom>();
  /**
   * An upper bound of the pending entries. `isFull` is read with each record, so the exact sum is computed only when
   * this bound is too high.
   */
  #pendingAtMost = 0;

  /**
   * `countedPartitions`: number of partitions that the process counts. Each has its share of the memory, so a busy one
   * does not stop the others.
   */
  constructor(options: PassRoomsOptions, countedPartitions: () => number) {
    this.#options = options;
    this.#countedPartitions = countedPartitions;
  }

  get size(): number {
    return this.#rooms.size;
  }

  /** All rooms except those that could be forgotten without losing anything. */
  get active(): ReadonlySet<BoardRoom> {
    return this.#active;
  }

  get(key: RoomKey): BoardRoom | undefined {
    return this.#rooms.get(key);
  }

  /** The room's boards are about to be looked up. */
  add(room: BoardRoom): void {
    this.#rooms.set(room.key, room);
    this.#opening.add(room);
    this.#active.add(room);
  }

  /** Adds the number of entries that one of the rooms received. */
  receiveEntries(count: number): void {
    this.#pendingAtMost += count;
  }

  /** Call after each input of the room. The input may begin or end its work, and end its look-up. */
  settle(room: BoardRoom): void {
    if (this.#rooms.get(room.key) !== room) return; // It is only restored.
    if (room.canRetire) this.#active.delete(room);
    else this.#active.add(room);
    if (!this.#opening.has(room) || room.isOpening) return;
    this.#opening.delete(room);
    if (room.isAside) this.#aside.add(room);
  }

  /** Whether the boards of every room have been looked up, so that all received entries can be applied. */
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
    for (const room of this.#active) pending += room.pending;
    this.#pendingAtMost = pending;
    return pending;
  }

  checkpointsDue(now: Millis): BoardRoom[] {
    const { isPressed } = this;
    return [...this.#active].filter((room) => room.isCheckpointDue(now, { isPressed }));
  }

  retire(): void {
    if (!this.isPressed) return;
    for (const room of this.#rooms.values()) {
      if (!room.canRetire) continue;
      this.#rooms.delete(room.key);
      this.#aside.delete(room); // Deleted after it was set aside.
    }
  }

  /** Position in each stream up to which the received entries are in checkpoints. */
  coveredThrough(received: StreamEnds): StreamEnds {
    const covered = { ...received };
    for (const room of this.#active) {
      for (const source of SOURCES)
        covered[source] = Math.min(covered[source], (room.uncoveredFrom(source) ?? Number.POSITIVE_INFINITY) - 1);
    }
    return covered;
  }

  get #counted(): number {
    return this.#rooms.size - this.#aside.size;
  }

  #share(limit: number): number {
    return limit / Math.max(1, this.#countedPartitions());
  }
}
