/**
 * One partition of the log while this service reads it: which rooms are in memory, how full memory is, and which room
 * is next saved, wiped, read again or forgotten. Takes inputs and returns the next actions of its host. The invariant:
 * snapshots cover every record up to `floor`, so the next reader may begin there.
 */

import { assertNever } from "../../shared/assert.ts";
import type { ReadPosition, RecordPlace } from "../../shared/bus/record.ts";
import type { LeaseFacts } from "../../shared/cluster/lease-holder.ts";
import { type Millis, type RoomKey, type TenantId, tenantOf } from "../../shared/ids.ts";
import type { RoomLogEnd } from "../ports.ts";
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
  | { readonly kind: "record-read"; readonly place: RecordPlace; readonly bytes: number }
  /**
   * The log lacks a record that was read before. So rooms start again from their checkpoints, and reading from the
   * log's first record.
   */
  | { readonly kind: "log-end-lost" }
  /** All rooms have had their tick. */
  | { readonly kind: "rooms-ticked" }
  | { readonly kind: "job-ended"; readonly room: RoomKey }
  /** The boards' lease was read. `floor` undefined: no leaderboard ever ran. */
  | { readonly kind: "boards-lease-read"; readonly floor: number | undefined }
  /** The service stops, or another service has the lease. */
  | { readonly kind: "reading-stopped"; readonly isLeaseHeld: boolean }
  | { readonly kind: "drain-ticked" }
  | { readonly kind: "lease-given-back" }
  | { readonly kind: "released" };

export type DocumentPartitionEffect =
  | { readonly kind: "start-job"; readonly room: RoomKey; readonly job: "save" | "wipe" }
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

/** `isPressed`: the partition needs the room's memory. */
type DueJob = { readonly room: DocumentPartitionRoom; readonly isPressed: boolean };

/**
 * Share of memory above which rooms release everything that a snapshot or the log also has. Above the second share they
 * are saved first, so that they can release the rest.
 */
const RELEASE_ABOVE = 0.5;
const SAVE_ABOVE = 0.8;

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
  /** Rooms whose checkpoint did not decode at the last tick. `documentsMax` omits them, or many would stop the reading of all others. */
  #undecodableCount = 0;
  /** The most urgent room is first. */
  #dueJobs: DueJob[] = [];
  /** The tenant of each running job. */
  readonly #running: TenantId[] = [];

  constructor(limits: DocumentPartitionLimits) {
    this.#limits = limits;
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
        this.#heldBytes += input.bytes;
        return [];
      case "log-end-lost":
        this.#received = 0;
        this.#last = undefined;
        this.#boardsFloor = 0;
        this.#release();
        return [];
      case "rooms-ticked":
        return this.#review(now);
      case "job-ended": // The next job starts at once, not at the next tick.
        this.#running.splice(this.#running.indexOf(tenantOf(input.room)), 1);
        return this.#startJobs(now);
      case "boards-lease-read":
        this.#boardsFloor = input.floor ?? Number.POSITIVE_INFINITY;
        return [];
      case "reading-stopped":
        return input.isLeaseHeld ? this.#drain((now + this.#limits.documentsDrainMsMax) as Millis, now) : this.#endDrain();
      case "drain-ticked":
        // A log that lost its end has ended the drain: the rooms are gone.
        return this.#state.kind === "draining" ? this.#drain(this.#state.until, now) : [];
      case "lease-given-back":
        this.#dueJobs = [];
        return [];
      case "released":
        this.#release();
        return [];
      default:
        return assertNever(input);
    }
  }

  #review(now: Millis): readonly DocumentPartitionEffect[] {
    const [isReleasing, isSaving] = [this.isReleasing, this.#usedShare > SAVE_ABOVE];
    this.#heldBytes = 0;
    this.#undecodableCount = 0;
    const [unwiped, unsaved]: [DocumentPartitionRoom[], DocumentPartitionRoom[]] = [[], []];
    const effects: DocumentPartitionEffect[] = [];
    for (const room of this.#rooms.values()) {
      this.#heldBytes += room.heldBytes;
      if (room.isUndecodable) this.#undecodableCount += 1;
      if (room.readAgainFrom !== undefined) effects.push(this.#beginReadingAgain(room, room.readAgainFrom));
      else if (room.isWipeDue(now)) unwiped.push(room);
      else if (room.isSaveDue(now, isSaving)) unsaved.push(room);
      else if (room.canRetire(now, isReleasing)) {
        this.#rooms.delete(room.key);
        effects.push({ kind: "forget-room", room: room.key });
      }
    }
    return [...effects, ...this.#planJobs(unsaved, unwiped, isSaving, now)];
  }

  /** All other rooms ignore the records that they have read before. */
  #beginReadingAgain({ key, lostSnapshot }: DocumentPartitionRoom, from: number): DocumentPartitionEffect {
    this.#rooms.delete(key);
    this.#readAgain.set(key, { readAfter: from - 1, lostSnapshot });
    this.#received = Math.min(this.#received, from - 1);
    return { kind: "read-again", room: key, from };
  }

  /**
   * The room that waits longest is saved first, but tenants take turns, so that slow saves of many rooms of one tenant never
   * have all places. Deleted rooms can wait.
   */
  #planJobs(
    unsaved: readonly DocumentPartitionRoom[],
    unwiped: readonly DocumentPartitionRoom[],
    isPressed: boolean,
    now: Millis,
  ): readonly DocumentPartitionEffect[] {
    const byAge = unsaved.toSorted((a, b) => (a.uncoveredSince ?? 0) - (b.uncoveredSince ?? 0));
    const turns = new Map<TenantId, number>();
    const nextTurn = (tenant: TenantId): number => {
      const turn = turns.get(tenant) ?? 0;
      turns.set(tenant, turn + 1);
      return turn;
    };
    for (const tenant of this.#running) nextTurn(tenant);
    const saves = byAge.map((room) => ({ room, isPressed, turn: nextTurn(tenantOf(room.key)) })).toSorted((a, b) => a.turn - b.turn);
    this.#dueJobs = [...saves, ...unwiped.map((room) => ({ room, isPressed: false }))];
    return this.#startJobs(now);
  }

  #startJobs(now: Millis): readonly DocumentPartitionEffect[] {
    const effects: DocumentPartitionEffect[] = [];
    while (this.#running.length < this.#limits.documentSavesMax) {
      const next = this.#dueJobs.shift();
      if (next === undefined) break;
      const { room, isPressed } = next;
      const job = room.isWipeDue(now) ? "wipe" : room.isSaveDue(now, isPressed) ? "save" : undefined;
      if (job === undefined) continue; // No longer due.
      this.#running.push(tenantOf(room.key));
      effects.push({ kind: "start-job", room: room.key, job });
    }
    return effects;
  }

  #drain(until: Millis, now: Millis): readonly DocumentPartitionEffect[] {
    if (this.#isDrained || now >= until) return this.#endDrain();
    this.#state = { kind: "draining", until };
    const due = [...this.#rooms.values()].filter((room) => room.isSaveDue(now, true) || room.isWipeDue(now));
    return this.#planJobs(due, [], true, now);
  }

  #endDrain(): readonly DocumentPartitionEffect[] {
    this.#state = { kind: "releasing" };
    return [];
  }

  /** Running jobs continue. */
  #release(): void {
    this.#state = { kind: "idle" };
    this.#dueJobs = [];
    this.#rooms.clear();
    this.#opening.clear();
    this.#readAgain.clear();
    this.#heldBytes = 0;
    this.#undecodableCount = 0;
  }

  /** Everything that can be saved is saved. */
  get #isDrained(): boolean {
    return (
      this.#running.length === 0 && this.#countRooms(({ uncoveredFrom, canBeCovered }) => uncoveredFrom !== undefined && canBeCovered) === 0
    );
  }

  get #countedRooms(): number {
    return this.#rooms.size - this.#undecodableCount;
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
