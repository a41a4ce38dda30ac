/**
 * One partition of the log while this service reads it: which rooms are in memory, how full memory is, and which room
 * is next saved, wiped, read again or forgotten. Takes inputs and returns the next actions of its host. The invariant:
 * snapshots cover every record up to `floor`, so the next reader may begin there.
 */

import { assertNever } from "../../shared/assert.ts";
import type { ReadPosition, RecordPlace } from "../../shared/bus/record.ts";
import type { LeaseFacts } from "../../shared/cluster/lease-holder.ts";
import { MapTurns } from "../../shared/collections/map-turns.ts";
import type { Millis, RoomKey } from "../../shared/ids.ts";
import type { RoomLogEnd } from "../ports.ts";
import { PartitionJobs, type StartJob } from "./partition-jobs.ts";
import type { RoomReading } from "./record-intake.ts";
import type { Served } from "./room-messages.ts";
import type { DocumentRoom } from "./room.ts";

/** A room from the partition's view. */
export type DocumentPartitionRoom = Pick<
  DocumentRoom,
  | "key"
  | "heldBytes"
  | "uncoveredFrom"
  | "uncoveredSince"
  | "readAgainFrom"
  | "lostSnapshot"
  | "isUndecodable"
  | "isStalled"
  | "isUnwiped"
  | "canBeCovered"
  | "isSaveDue"
  | "isWipeDue"
  | "isTrimDue"
  | "canRetire"
>;

export type DocumentPartitionLimits = {
  readonly documentsBytesMax: number;
  readonly documentsMax: number;
  readonly documentOpeningsMax: number;
  readonly documentSavesMax: number;
  readonly documentsDrainMsMax: number;
};

export type DocumentPartitionInput =
  /** `from`: the place in the log that the previous holder of the lease had reached. */
  | { readonly kind: "held"; readonly from: LeaseFacts }
  | { readonly kind: "room-created"; readonly room: DocumentPartitionRoom }
  | { readonly kind: "room-looked-up"; readonly room: DocumentPartitionRoom }
  | { readonly kind: "record-read"; readonly room: RoomKey; readonly place: RecordPlace; readonly bytes: number }
  /**
   * The log lacks a record that was read before. So rooms start again from their checkpoints, and reading from the
   * log's first record.
   */
  | { readonly kind: "log-end-lost" }
  /** Every 100 ms. */
  | { readonly kind: "tick" }
  /** These rooms have had their tick. */
  | { readonly kind: "rooms-ticked"; readonly rooms: readonly DocumentPartitionRoom[] }
  | { readonly kind: "job-ended"; readonly room: RoomKey }
  /** The boards' lease was read. `floor` undefined: no leaderboard ever ran. */
  | { readonly kind: "boards-lease-read"; readonly floor: number | undefined }
  /** The service stops, or another service has the lease. */
  | { readonly kind: "reading-stopped"; readonly isLeaseHeld: boolean }
  | { readonly kind: "drain-ticked" }
  | { readonly kind: "lease-given-back" }
  | { readonly kind: "released" };

export type DocumentPartitionEffect =
  /** Give these rooms a tick. `isPressed`: the partition needs memory. The outcome is "rooms-ticked". */
  | { readonly kind: "tick-rooms"; readonly rooms: readonly DocumentPartitionRoom[]; readonly isPressed: boolean }
  /** Measure the bytes that these rooms store. Each room is measured once in ten ticks. */
  | { readonly kind: "measure-rooms"; readonly rooms: readonly DocumentPartitionRoom[] }
  | StartJob
  /** Forget the room and read the log again from `from`, because a new room needs the records that this one dropped. */
  | { readonly kind: "read-again"; readonly room: RoomKey; readonly from: number }
  | { readonly kind: "forget-room"; readonly room: RoomKey };

type DocumentPartitionState =
  | { readonly kind: "idle" }
  | { readonly kind: "reading" }
  /** Saves as many rooms as possible in a limited time, so that the next reader begins at the end of the log. */
  | { readonly kind: "draining"; readonly until: Millis }
  /** Another reader may begin at the floor. No new job starts after the lease is given back. */
  | { readonly kind: "releasing" };

/**
 * Share of memory above which rooms release everything that a snapshot or the log also has. Above the second share they
 * are saved first, so that they can release the rest.
 */
const RELEASE_ABOVE = 0.5;
const SAVE_ABOVE = 0.8;
/** So many rooms all have each tick. Of more rooms each has one tick in ten, or thousands of rooms would occupy the process. */
const ROOMS_IN_EACH_TICK = 200;
const TICKS_OF_A_TURN = 10;

export class DocumentPartition {
  readonly #limits: DocumentPartitionLimits;
  readonly #rooms = new Map<RoomKey, DocumentPartitionRoom>();
  readonly #opening = new Set<DocumentPartitionRoom>();
  /** Rooms that are read again and not created yet. */
  readonly #readAgain = new Map<RoomKey, RoomReading>();
  #state: DocumentPartitionState = { kind: "idle" };
  /** The last stream sequence given to a room. */
  #received = 0;
  #boardsFloor = 0;
  /** The last record that was read, by this service or by the previous holder. */
  #last: RecordPlace | undefined;
  #heldBytes = 0;
  /** By the room's last tick, and the records since then. */
  readonly #heldBytesOf = new Map<RoomKey, number>();
  /** Rooms whose checkpoint did not decode at their last tick. `documentsMax` omits them, or many would stop the reading of all others. */
  readonly #undecodable = new Set<RoomKey>();
  readonly #jobs: PartitionJobs;
  readonly #ticks = new MapTurns(this.#rooms, TICKS_OF_A_TURN);
  readonly #measurements = new MapTurns(this.#rooms, TICKS_OF_A_TURN);

  constructor(limits: DocumentPartitionLimits) {
    this.#limits = limits;
    this.#jobs = new PartitionJobs(limits.documentSavesMax);
  }

  get rooms(): ReadonlyMap<RoomKey, DocumentPartitionRoom> {
    return this.#rooms;
  }

  get received(): number {
    return this.#received;
  }

  get heldBytes(): number {
    return this.#heldBytes;
  }

  /** The place in the log at which reading continues. */
  get position(): ReadPosition {
    return { after: this.#received, last: this.#last };
  }

  /** The place at which the next holder of the lease begins. */
  get facts(): LeaseFacts {
    return { floor: this.floor, last: this.#last };
  }

  get stalledCount(): number {
    return this.#countRooms(({ isStalled }) => isStalled);
  }

  get unwipedCount(): number {
    return this.#countRooms(({ isUnwiped }) => isUnwiped);
  }

  /** Snapshots cover every record up to this one. */
  get floor(): number {
    let floor = this.#received;
    for (const { uncoveredFrom } of this.#rooms.values()) if (uncoveredFrom !== undefined) floor = Math.min(floor, uncoveredFrom - 1);
    return floor;
  }

  /** How a room that is created now is read. */
  reading(room: RoomKey): RoomReading {
    return this.#readAgain.get(room) ?? { readAfter: this.#received };
  }

  /** The log is not read further until rooms have released memory. */
  get isFull(): boolean {
    const { documentsBytesMax, documentsMax, documentOpeningsMax } = this.#limits;
    return this.#heldBytes > documentsBytesMax || this.#countedRooms > documentsMax || this.#opening.size > documentOpeningsMax;
  }

  /** Rooms release everything that a snapshot or the log also has. */
  get isReleasing(): boolean {
    return this.#usedShare > RELEASE_ABOVE;
  }

  /** While true, "drain-ticked" follows. After that the lease is released. */
  get isDraining(): boolean {
    return this.#state.kind === "draining";
  }

  /** The boards have counted every record up to this one. 0 until it is known, infinity if no leaderboard ever ran. */
  get boardsFloor(): number {
    return this.#boardsFloor;
  }

  get uncoveredCount(): number {
    return this.#received - this.floor;
  }

  /** Number of records that stay in the log until the boards have counted them. */
  get heldForBoardsCount(): number {
    return Math.max(0, this.#received - this.#boardsFloor);
  }

  receive(input: DocumentPartitionInput, now: Millis): readonly DocumentPartitionEffect[] {
    switch (input.kind) {
      case "held":
        this.#state = { kind: "reading" };
        this.#received = input.from.floor;
        this.#last = input.from.last;
        return [];
      case "room-created":
        this.#rooms.set(input.room.key, input.room);
        this.#opening.add(input.room);
        this.#readAgain.delete(input.room.key);
        return [];
      case "room-looked-up":
        this.#opening.delete(input.room);
        return [];
      case "record-read":
        this.#received = input.place.streamSeq;
        this.#last = input.place;
        this.#noteHeldBytes(input.room, (this.#heldBytesOf.get(input.room) ?? 0) + input.bytes);
        return [];
      case "log-end-lost":
        this.#received = 0;
        this.#last = undefined;
        this.#boardsFloor = 0;
        this.#release();
        return [];
      case "tick":
        return [
          { kind: "tick-rooms", rooms: this.#takeTurn(), isPressed: this.isReleasing },
          { kind: "measure-rooms", rooms: this.#measurements.take() },
        ];
      case "rooms-ticked":
        return this.#review(input.rooms, now);
      case "job-ended":
        return this.#jobs.receiveEnd(input.room, now);
      case "boards-lease-read":
        this.#boardsFloor = input.floor ?? Number.POSITIVE_INFINITY;
        return [];
      case "reading-stopped":
        return input.isLeaseHeld ? this.#drain((now + this.#limits.documentsDrainMsMax) as Millis, now) : this.#endDrain();
      case "drain-ticked":
        // A log that lost its end has ended the drain: the rooms are gone.
        return this.#state.kind === "draining" ? this.#drain(this.#state.until, now) : [];
      case "lease-given-back":
        this.#jobs.clear();
        return [];
      case "released":
        this.#release();
        return [];
      default:
        return assertNever(input);
    }
  }

  /** While memory is short, every room has each tick. */
  #takeTurn(): readonly DocumentPartitionRoom[] {
    return this.isReleasing || this.#rooms.size <= ROOMS_IN_EACH_TICK ? [...this.#rooms.values()] : this.#ticks.take();
  }

  #review(rooms: readonly DocumentPartitionRoom[], now: Millis): readonly DocumentPartitionEffect[] {
    const [isReleasing, isSaving] = [this.isReleasing, this.#usedShare > SAVE_ABOVE];
    const effects: DocumentPartitionEffect[] = [];
    for (const room of rooms) {
      this.#noteHeldBytes(room.key, room.heldBytes);
      if (room.isUndecodable) this.#undecodable.add(room.key);
      else this.#undecodable.delete(room.key);
      if (room.readAgainFrom !== undefined) effects.push(this.#beginReadingAgain(room, room.readAgainFrom));
      else if (room.isWipeDue(now)) this.#jobs.receiveUnwiped(room);
      else if (room.isSaveDue(now, isSaving)) this.#jobs.receiveUnsaved(room);
      else if (room.canRetire(now, isReleasing)) {
        this.#forget(room);
        effects.push({ kind: "forget-room", room: room.key });
      }
    }
    return [...effects, ...this.#jobs.receiveTick(isSaving, now)];
  }

  #noteHeldBytes(room: RoomKey, bytes: number): void {
    this.#heldBytes += bytes - (this.#heldBytesOf.get(room) ?? 0);
    this.#heldBytesOf.set(room, bytes);
  }

  #forget(room: DocumentPartitionRoom): void {
    this.#noteHeldBytes(room.key, 0);
    this.#heldBytesOf.delete(room.key);
    this.#undecodable.delete(room.key);
    this.#jobs.forget(room);
    this.#rooms.delete(room.key);
  }

  /** All other rooms ignore the records that they have read before. */
  #beginReadingAgain(room: DocumentPartitionRoom, from: number): DocumentPartitionEffect {
    const { key, lostSnapshot } = room;
    this.#forget(room);
    this.#readAgain.set(key, { readAfter: from - 1, lostSnapshot });
    this.#received = Math.min(this.#received, from - 1);
    return { kind: "read-again", room: key, from };
  }

  #drain(until: Millis, now: Millis): readonly DocumentPartitionEffect[] {
    if (this.#isDrained || now >= until) return this.#endDrain();
    this.#state = { kind: "draining", until };
    const due = [...this.#rooms.values()].filter((room) => room.isSaveDue(now, true) || room.isWipeDue(now));
    return this.#jobs.plan(due, [], true, now);
  }

  #endDrain(): readonly DocumentPartitionEffect[] {
    this.#state = { kind: "releasing" };
    return [];
  }

  /** Running jobs continue. */
  #release(): void {
    this.#state = { kind: "idle" };
    this.#jobs.clear();
    for (const room of this.#rooms.values()) this.#forget(room);
    this.#opening.clear();
    this.#readAgain.clear();
  }

  /** Everything that can be saved is saved. */
  get #isDrained(): boolean {
    return (
      !this.#jobs.isRunning && this.#countRooms(({ uncoveredFrom, canBeCovered }) => uncoveredFrom !== undefined && canBeCovered) === 0
    );
  }

  get #countedRooms(): number {
    return this.#rooms.size - this.#undecodable.size;
  }

  get #usedShare(): number {
    return Math.max(this.#heldBytes / this.#limits.documentsBytesMax, this.#countedRooms / this.#limits.documentsMax);
  }

  #countRooms(isCounted: (room: DocumentPartitionRoom) => boolean): number {
    let count = 0;
    for (const room of this.#rooms.values()) if (isCounted(room)) count += 1;
    return count;
  }
}

/** The answer for a room of which this service has read no edit. The log may have edits that were not read yet. */
export function servedWithoutEdits(end: RoomLogEnd): Served {
  if (end.kind === "deleted") return { kind: "deleted" };
  return end.kind === "at" && end.seq > 0 ? { kind: "behind" } : { kind: "no-document" };
}
