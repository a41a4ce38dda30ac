/**
 * Periodic jobs for many rooms of a pass, a limited number of rooms at a time: apply batches (more often for rooms with
 * watched boards), save checkpoints, send totals, restore, and drain. A job becomes due again only after it has ended.
 */

import type { Millis, RoomKey, UnixMillis } from "../../shared/ids.ts";
import type { BoardRoom } from "./board-room.ts";
import type { PassRequest } from "./pass-messages.ts";
import type { PassRooms } from "./pass-rooms.ts";
import type { StreamEnds } from "./progress.ts";
import type { RoomFeed } from "./room-feed.ts";
import { WorkQueue } from "./work-queue.ts";

export type PassJobsOptions = {
  readonly boardReadMs: number;
  readonly boardBatchMs: number;
  readonly boardWritesMax: number;
  readonly boardTotalsMs: number;
  readonly boardCheckpointWritesMax: number;
};
export type PassJobsCallbacks = {
  readonly received: () => StreamEnds;
  readonly through: () => UnixMillis;
  readonly hasCaughtUp: () => boolean;
  /** All entries received up to this progress are counted. */
  readonly onCounted: (received: StreamEnds) => void;
  /** Answer with `endSaving`. */
  readonly onSaved: () => void;
  /** The totals of all entries counted up to this progress are sent. */
  readonly onTotalsSent: (through: UnixMillis) => void;
  readonly onRestored: (room: RoomKey) => void;
};

/** Factor by which rooms with watched boards are counted more often. */
const WATCHED_TURNS = 4;
const SAVE_MS = 500;
const NEVER = Number.POSITIVE_INFINITY;

/** `received`: progress of the streams at the start of the job. Undefined: rooms were being looked up then. */
type Counting = {
  readonly queue: WorkQueue<BoardRoom>;
  readonly begun: Millis;
  readonly isForAll: boolean;
  readonly received: StreamEnds | undefined;
};

export class PassJobs {
  readonly #rooms: PassRooms;
  readonly #options: PassJobsOptions;
  readonly #watchedRooms: () => Iterable<RoomKey>;
  readonly #feed: RoomFeed;
  readonly #pass: PassJobsCallbacks;
  /** `NEVER` while the job is in progress. */
  readonly #dueAt = { count: NEVER, save: NEVER, totals: NEVER };
  #allDueAt = NEVER;
  #counting: Counting | undefined;
  #saving: WorkQueue<BoardRoom> | undefined;
  /** `through`: progress of counting at the start of the job. Undefined: the pass was still catching up. */
  #totals: { readonly queue: WorkQueue<BoardRoom>; readonly through: UnixMillis | undefined } | undefined;
  /** Rooms that are looked up only to restore their boards. They do not count as rooms of the pass. */
  readonly #restoring = new Map<RoomKey, BoardRoom>();
  #restoringAll: { readonly queue: WorkQueue<RoomKey>; readonly onRestored: () => void } | undefined;
  #draining: { readonly queue: WorkQueue<BoardRoom>; readonly onDrained: () => void; readonly until: Millis } | undefined;

  constructor(rooms: PassRooms, feed: RoomFeed, options: PassJobsOptions, watchedRooms: () => Iterable<RoomKey>, pass: PassJobsCallbacks) {
    this.#rooms = rooms;
    this.#feed = feed;
    this.#options = options;
    this.#watchedRooms = watchedRooms;
    this.#pass = pass;
  }

  get nextAt(): number {
    return Math.min(this.#dueAt.count, this.#dueAt.save, this.#dueAt.totals);
  }

  begin(now: Millis): void {
    this.#allDueAt = now + this.#allMs;
    this.#scheduleCount(now);
    this.#dueAt.save = now + SAVE_MS;
    this.#dueAt.totals = now + this.#options.boardTotalsMs;
  }

  tick(now: Millis): void {
    if (now >= this.#dueAt.count) this.#beginCounting(now);
    if (now >= this.#dueAt.save) this.#beginSaving(now);
    if (now >= this.#dueAt.totals) this.#beginTotals(now);
  }

  /** The pass is over: no room begins new work. */
  cancel(): void {
    this.#counting = this.#saving = this.#totals = this.#restoringAll = undefined;
    this.#restoring.clear();
  }

  countRoom(key: RoomKey): void {
    const room = this.#rooms.get(key);
    if (room !== undefined) this.#feed.feed(room, { kind: "apply" });
  }

  restoreAll(rooms: readonly RoomKey[], onRestored: () => void): void {
    this.#restoringAll = { queue: new WorkQueue(rooms, this.#options.boardCheckpointWritesMax), onRestored };
    this.#advanceRestoring();
  }

  restore(key: RoomKey): void {
    if (this.#restoring.has(key)) return;
    const room = this.#feed.newRoom(key);
    this.#restoring.set(key, room);
    this.#feed.feed(room, { kind: "open" });
  }

  /** Saves the checkpoints of all rooms that need one. No checkpoint begins after `until`. */
  drain(until: Millis, now: Millis, onDrained: () => void): void {
    this.#draining = { queue: new WorkQueue(this.#rooms.all, this.#options.boardCheckpointWritesMax), onDrained, until };
    this.#advanceDrain(now);
  }

  endSaving(now: Millis): void {
    this.#dueAt.save = now + SAVE_MS;
  }

  /** The room received an outcome, which may complete its part of a job. */
  settle(room: BoardRoom, now: Millis): void {
    if (this.#counting?.queue.has(room) === true && !room.isApplying) {
      this.#counting.queue.finish(room);
      this.#advanceCounting(now);
    }
    if (this.#saving?.has(room) === true && !room.isSaving) {
      this.#saving.finish(room);
      this.#advanceSaving();
    }
    if (this.#totals?.queue.has(room) === true && !room.isSendingTotals) {
      this.#totals.queue.finish(room);
      this.#advanceTotals(now);
    }
    if (this.#draining?.queue.has(room) === true && !room.isSaving) {
      this.#draining.queue.finish(room);
      this.#advanceDrain(now);
    }
    if (this.#restoring.get(room.key) === room) this.#settleRestored(room);
  }

  /**
   * While any board is watched, the log is read many times a second. All other rooms are still counted as often as without
   * watchers: a script of Redis costs more than the edits in it.
   */
  get #allMs(): number {
    const { boardBatchMs, boardReadMs } = this.#options;
    for (const _ of this.#watchedRooms()) return Math.max(boardBatchMs, boardReadMs);
    return boardBatchMs;
  }

  /** The next turn begins immediately if counting took longer than the interval. */
  #scheduleCount(now: Millis): void {
    const { boardBatchMs } = this.#options;
    const turnMs = this.#watched().length > 0 ? boardBatchMs / WATCHED_TURNS : boardBatchMs;
    this.#dueAt.count = now + Math.max(0, Math.min(turnMs, this.#allDueAt - now));
  }

  #watched(): BoardRoom[] {
    return [...this.#watchedRooms()].flatMap((key) => this.#rooms.get(key) ?? []);
  }

  #beginCounting(now: Millis): void {
    this.#dueAt.count = NEVER;
    const isForAll = now >= this.#allDueAt;
    const rooms = (isForAll ? this.#rooms.all : this.#watched()).filter(({ pending }) => pending > 0);
    const queue = new WorkQueue(rooms, this.#options.boardWritesMax);
    this.#counting = { queue, begun: now, isForAll, received: this.#rooms.areOpen ? this.#pass.received() : undefined };
    this.#advanceCounting(now);
  }

  #advanceCounting(now: Millis): void {
    const counting = this.#counting;
    if (counting === undefined) return;
    counting.queue.advance((room) => {
      this.#feed.feed(room, { kind: "apply" });
      return room.isApplying;
    });
    if (!counting.queue.isOver) return;
    this.#counting = undefined;
    if (counting.isForAll) {
      this.#allDueAt = counting.begun + this.#allMs;
      if (counting.received !== undefined) this.#pass.onCounted(counting.received);
    }
    this.#scheduleCount(now);
  }

  #beginSaving(now: Millis): void {
    this.#dueAt.save = NEVER;
    this.#saving = new WorkQueue(this.#rooms.checkpointsDue(now), this.#options.boardCheckpointWritesMax);
    this.#advanceSaving();
  }

  #advanceSaving(): void {
    this.#saving?.advance((room) => this.#save(room));
    if (this.#saving?.isOver !== true) return;
    this.#saving = undefined;
    this.#pass.onSaved();
  }

  #save(room: BoardRoom): boolean {
    this.#feed.feed(room, { kind: "save" });
    return room.isSaving;
  }

  /**
   * A pass that still catches up does not send totals, because checkpoints send their own. A pass with many rooms sends
   * them, because it has to remove rooms from memory, which is possible only after their totals are sent.
   */
  #beginTotals(now: Millis): void {
    this.#dueAt.totals = NEVER;
    const hasCaughtUp = this.#pass.hasCaughtUp();
    const unsent = hasCaughtUp || this.#rooms.isPressed ? this.#rooms.all.filter((room) => room.hasUnsentTotals) : [];
    const queue = new WorkQueue(unsent, this.#options.boardWritesMax);
    this.#totals = { queue, through: hasCaughtUp ? this.#pass.through() : undefined };
    this.#advanceTotals(now);
  }

  #advanceTotals(now: Millis): void {
    const totals = this.#totals;
    if (totals === undefined) return;
    totals.queue.advance((room) => this.#sendTotals(room));
    if (!totals.queue.isOver) return;
    this.#totals = undefined;
    if (totals.through !== undefined) this.#pass.onTotalsSent(totals.through);
    this.#dueAt.totals = now + this.#options.boardTotalsMs;
  }

  #sendTotals(room: BoardRoom): boolean {
    this.#feed.feed(room, { kind: "send-totals" });
    return room.isSendingTotals;
  }

  #advanceRestoring(): void {
    const restoring = this.#restoringAll;
    if (restoring === undefined) return;
    restoring.queue.advance((key) => {
      this.restore(key);
      return this.#restoring.has(key);
    });
    if (!restoring.queue.isOver) return;
    this.#restoringAll = undefined;
    restoring.onRestored();
  }

  #settleRestored(room: BoardRoom): void {
    if (room.isOpening || room.isSendingTotals) return;
    if (room.hasUnsentTotals && this.#sendTotals(room)) return;
    this.#restoring.delete(room.key);
    this.#pass.onRestored(room.key);
    this.#restoringAll?.queue.finish(room.key);
    this.#advanceRestoring();
  }

  #advanceDrain(now: Millis): void {
    const draining = this.#draining;
    if (draining === undefined) return;
    draining.queue.advance((room) => now < draining.until && !room.isCovered && this.#save(room));
    if (!draining.queue.isOver) return;
    this.#draining = undefined;
    draining.onDrained();
  }
}

const TRY_MS = 10_000;
const CATCH_UP_MS = 1_000;
/**
 * Interval of sweeps. Also the age at which an object without an entry counts as abandoned. A live writer adds the
 * entry much earlier.
 */
const SWEEP_MS = 3_600_000;
const SWEEPING_PARTITION = 0;

/**
 * Work at long intervals: retry rooms whose checkpoint does not decode, and remove checkpoint objects that a crash left
 * without an entry. One partition sweeps for all of them.
 */
export class PassUpkeep {
  readonly #sweeps: boolean;
  readonly #aside = new Set<RoomKey>();
  /** Rooms that are set aside and not yet tried in this round. */
  #untried: RoomKey[] = [];
  /** `NEVER` while the work is in progress. */
  #tryAt = NEVER;
  #sweepAt = NEVER;

  constructor(partition: number) {
    this.#sweeps = partition === SWEEPING_PARTITION;
  }

  get nextAt(): number {
    return Math.min(this.#tryAt, this.#sweepAt);
  }

  get asideCount(): number {
    return this.#aside.size;
  }

  isAside(room: RoomKey): boolean {
    return this.#aside.has(room);
  }

  /** Returns whether the room was not set aside before. */
  setAside(room: RoomKey): boolean {
    const isNew = !this.#aside.has(room);
    this.#aside.add(room);
    return isNew;
  }

  begin(now: Millis): void {
    this.#tryAt = now + TRY_MS;
    if (this.#sweeps) this.#sweepAt = now;
  }

  tick(now: Millis, hasCaughtUp: boolean): PassRequest[] {
    const requests: PassRequest[] = [];
    if (now >= this.#tryAt) {
      this.#tryAt = NEVER;
      this.#untried = [...this.#aside];
      requests.push(...this.tryNext(now));
    }
    if (now >= this.#sweepAt) {
      this.#sweepAt = hasCaughtUp ? NEVER : now + CATCH_UP_MS;
      if (hasCaughtUp) requests.push({ kind: "sweep", ageMsMin: SWEEP_MS });
    }
    return requests;
  }

  tryNext(now: Millis): PassRequest[] {
    const room = this.#untried.shift();
    if (room !== undefined) return [{ kind: "try-checkpoint", room }];
    this.#tryAt = now + TRY_MS;
    return [];
  }

  receiveSwept(now: Millis): void {
    this.#sweepAt = now + SWEEP_MS;
  }
}
