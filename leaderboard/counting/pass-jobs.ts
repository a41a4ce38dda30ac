/**
 * Periodic jobs for many rooms of a pass, a limited number of rooms at a time: apply batches (more often for rooms with
 * watched boards), save checkpoints, send totals, restore, and drain. A job becomes due again only after it has ended.
 */

import type { Millis, RoomKey, UnixMillis } from "../../shared/ids.ts";
import type { BoardRoom } from "./board-room.ts";
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
type PassJobsCallbacks = {
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
/**
 * Number of turns over which a round of all rooms is spread. A script takes 0.3 ms of Redis: those of 50 rooms at once
 * took 15 ms of a core, for which edits on that core waited.
 */
const ROUND_TURNS = 5;
const SAVE_MS = 500;
const NEVER = Number.POSITIVE_INFINITY;

/**
 * Counts every room that had edits at its start, in parts. `received`: progress of the streams at the start. Undefined:
 * rooms were being looked up then.
 */
type Round = {
  readonly begun: Millis;
  readonly rest: BoardRoom[];
  readonly roomsPerTurn: number;
  readonly received: StreamEnds | undefined;
};

/** A turn counts all watched rooms and a part of the round's. */
type Turn = { readonly queue: WorkQueue<BoardRoom>; readonly ends: Round | undefined };

export class PassJobs {
  readonly #rooms: PassRooms;
  readonly #options: PassJobsOptions;
  readonly #watchedRooms: () => Iterable<RoomKey>;
  readonly #feed: RoomFeed;
  readonly #pass: PassJobsCallbacks;
  /** `NEVER` while the job is in progress. */
  readonly #dueAt = { count: NEVER, save: NEVER, totals: NEVER };
  #roundDueAt = NEVER;
  #round: Round | undefined;
  #turn: Turn | undefined;
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
    this.#roundDueAt = now + this.#roundMs;
    this.#scheduleCount(now);
    this.#dueAt.save = now + SAVE_MS;
    this.#dueAt.totals = now + this.#options.boardTotalsMs;
  }

  tick(now: Millis): void {
    if (now >= this.#dueAt.count) this.#beginTurn(now);
    if (now >= this.#dueAt.save) this.#beginSaving(now);
    if (now >= this.#dueAt.totals) this.#beginTotals(now);
  }

  /** The pass is over: no room begins new work. */
  cancel(): void {
    this.#round = this.#turn = this.#saving = this.#totals = this.#restoringAll = undefined;
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
    this.#draining = { queue: new WorkQueue([...this.#rooms.active], this.#options.boardCheckpointWritesMax), onDrained, until };
    this.#advanceDrain(now);
  }

  endSaving(now: Millis): void {
    this.#dueAt.save = now + SAVE_MS;
  }

  /** The room received an outcome, which may complete its part of a job. */
  settle(room: BoardRoom, now: Millis): void {
    if (this.#turn?.queue.has(room) === true && !room.isApplying) {
      this.#turn.queue.finish(room);
      this.#advanceTurn(now);
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
  get #roundMs(): number {
    const { boardBatchMs, boardReadMs } = this.#options;
    for (const _ of this.#watchedRooms()) return Math.max(boardBatchMs, boardReadMs);
    return boardBatchMs;
  }

  /** The next turn begins immediately if counting took longer than the interval. */
  #scheduleCount(now: Millis): void {
    const { boardBatchMs } = this.#options;
    const turnMs = this.#watched().length > 0 ? boardBatchMs / WATCHED_TURNS : boardBatchMs;
    const dueMs = this.#round === undefined ? this.#roundDueAt - now : turnMs;
    this.#dueAt.count = now + Math.max(0, Math.min(turnMs, dueMs));
  }

  #watched(): BoardRoom[] {
    return [...this.#watchedRooms()].flatMap((key) => this.#rooms.get(key) ?? []);
  }

  #beginTurn(now: Millis): void {
    this.#dueAt.count = NEVER;
    if (this.#round === undefined && now >= this.#roundDueAt) this.#beginRound(now);
    const round = this.#round;
    const part = round?.rest.splice(0, round.roomsPerTurn) ?? [];
    const rooms = [...new Set([...this.#watched(), ...part])].filter(({ pending }) => pending > 0);
    this.#turn = { queue: new WorkQueue(rooms, this.#options.boardWritesMax), ends: round?.rest.length === 0 ? round : undefined };
    this.#advanceTurn(now);
  }

  /** A pass that still catches up counts all rooms in one turn. */
  #beginRound(now: Millis): void {
    const rest = [...this.#rooms.active].filter(({ pending }) => pending > 0);
    const roomsPerTurn = this.#pass.hasCaughtUp() ? Math.ceil(rest.length / ROUND_TURNS) : rest.length;
    this.#round = { begun: now, rest, roomsPerTurn, received: this.#rooms.areOpen ? this.#pass.received() : undefined };
  }

  #advanceTurn(now: Millis): void {
    const turn = this.#turn;
    if (turn === undefined) return;
    turn.queue.advance((room) => {
      this.#feed.feed(room, { kind: "apply" });
      return room.isApplying;
    });
    if (!turn.queue.isOver) return;
    this.#turn = undefined;
    if (turn.ends !== undefined) this.#endRound(turn.ends);
    this.#scheduleCount(now);
  }

  #endRound({ begun, received }: Round): void {
    this.#round = undefined;
    this.#roundDueAt = begun + this.#roundMs;
    if (received !== undefined) this.#pass.onCounted(received);
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
    const unsent = hasCaughtUp || this.#rooms.isPressed ? [...this.#rooms.active].filter((room) => room.hasUnsentTotals) : [];
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
