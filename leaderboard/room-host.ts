/**
 * One room in the making: its stored boards are looked up (and put back from the checkpoint where Redis has
 * less), its records counted, its batches applied one at a time, its checkpoint written. Any surprise is
 * thrown: the partition then begins again from its floor.
 */

import { decodeRecord, headOf, type LogRecord } from "../shared/bus/record.ts";
import type { StoredRecord } from "../shared/bus/stored-record.ts";
import type { Clock } from "../shared/clock.ts";
import type { Millis, RoomKey, Seq, UnixMillis } from "../shared/ids.ts";
import type { Log } from "../shared/log.ts";
import { type MinuteUse, NOTHING_APPLIED } from "./board.ts";
import type { LeaderboardMetrics } from "./metrics.ts";
import type { Boards, Checkpoints, Closings, TenantBoards } from "./ports.ts";
import { RoomProjection } from "./room-projection.ts";
import type { ScoringOptions } from "./scoring.ts";
import { Trouble } from "./trouble.ts";
import { type Window, windowsAt } from "./windows.ts";

export type RoomPorts = { readonly boards: Boards; readonly closings: Closings; readonly checkpoints: Checkpoints; readonly tenants: Pick<TenantBoards, "tell"> };
export type RoomOptions = ScoringOptions & { readonly boardCheckpointMsMax: number };
export type RoomDeps = { readonly clock: Clock; readonly log: Log; readonly metrics: LeaderboardMetrics; readonly onCounted: (room: RoomKey) => void };

type Waiting = { readonly record: LogRecord; readonly streamSeq: number; readonly time: UnixMillis };
type Uncovered = { readonly streamSeq: number; readonly since: Millis };

const NO_USE: MinuteUse = { minute: 0, points: new Map() };

export class BoardRoom {
  readonly room: RoomKey;
  readonly #partition: number;
  readonly #ports: RoomPorts;
  readonly #options: RoomOptions;
  readonly #deps: RoomDeps;
  #projection: RoomProjection | undefined;
  /** Records that came before the boards were looked up. */
  #waiting: Waiting[] = [];
  #waitingEdits = 0;
  /** What the checkpoint covers, and which revision it has. */
  #covered = { seq: 0 as Seq, revision: 0 };
  /** The first record that no checkpoint covers. */
  #uncovered: Uncovered | undefined;
  /** The first one that a checkpoint being written will not cover. */
  #later: Uncovered | undefined;
  /** Windows that may have points and are not in the archive, by id. */
  readonly #windows = new Map<string, Window>();
  /** Those of which the tenant's board may not have the newest total. */
  readonly #untold = new Map<string, Window>();
  /** Until then every edit lies in windows that are known. */
  #hourEnd = 0;
  readonly #registered = new Set<string>();
  #applying: Promise<void> | undefined;
  #isSaving = false;

  constructor(room: RoomKey, partition: number, ports: RoomPorts, options: RoomOptions, deps: RoomDeps) {
    this.room = room;
    this.#partition = partition;
    this.#ports = ports;
    this.#options = options;
    this.#deps = deps;
  }

  get pendingEdits(): number {
    return this.#waitingEdits + (this.#projection?.edits ?? 0);
  }

  get uncoveredFrom(): number | undefined {
    return this.#uncovered?.streamSeq;
  }

  get isIdle(): boolean {
    return this.#projection !== undefined && this.pendingEdits === 0 && this.#applying === undefined && !this.#isSaving && !this.isUntold;
  }

  get isUntold(): boolean {
    return this.#untold.size > 0;
  }

  /** Nothing would be lost if it were forgotten. */
  get canRetire(): boolean {
    return this.isIdle && this.#uncovered === undefined;
  }

  /** `isPressed`: there is no room for more rooms. */
  isCheckpointDue(now: Millis, { isPressed }: { isPressed: boolean }): boolean {
    if (this.#projection === undefined || this.#isSaving || this.#uncovered === undefined) return false;
    return (isPressed && this.isIdle) || now - this.#uncovered.since >= this.#options.boardCheckpointMsMax;
  }

  forgetWindow(id: string): void {
    this.#windows.delete(id);
  }

  async open(): Promise<void> {
    const { boards, checkpoints } = this.#ports;
    const [stored, mark] = await Promise.all([boards.load(this.room), checkpoints.mark(this.room)]);
    this.#covered = mark;
    for (const window of mark.windows) this.#know(window);
    const current = mark.seq > (stored?.applied.seq ?? 0) ? await this.#restore() : stored;
    const projection = new RoomProjection(current?.applied ?? NOTHING_APPLIED, current?.minute ?? NO_USE, this.#options);
    this.#projection = projection;
    const waiting = this.#waiting;
    this.#waiting = [];
    this.#waitingEdits = 0;
    this.#uncovered = undefined; // The checkpoint may cover the first of them.
    for (const { record, streamSeq, time } of waiting) this.#count(projection, record, streamSeq, time);
  }

  async #restore(): ReturnType<Boards["load"]> {
    const { boards, checkpoints, closings } = this.#ports;
    const dump = await checkpoints.read(this.room);
    if (dump !== undefined) {
      await closings.open(this.#partition, this.room, dump.boards.map(({ window }) => window));
      if ((await boards.restore(this.room, dump)).kind === "written") this.#deps.metrics.restores.inc();
    }
    return boards.load(this.room);
  }

  /** Returns how many edits more there are to count, at most. */
  receiveRecord(stored: StoredRecord): number {
    const { metrics, log } = this.#deps;
    const record = decodeRecord(stored.bytes);
    if (record === undefined) {
      metrics.unreadable.inc();
      log.warn({ room: this.room, streamSeq: stored.streamSeq }, "a record of the log does not decode and counts for nothing: was it written by a newer version?");
      return 0;
    }
    if (record.kind === "epoch") return 0;
    if (this.#projection !== undefined) {
      this.#count(this.#projection, record, stored.streamSeq, stored.time);
      return record.edits.edits.length;
    }
    this.#waiting.push({ record, streamSeq: stored.streamSeq, time: stored.time });
    this.#waitingEdits += record.edits.edits.length;
    this.#uncovered ??= { streamSeq: stored.streamSeq, since: this.#deps.clock.now() };
    return record.edits.edits.length;
  }

  #count(projection: RoomProjection, record: LogRecord, streamSeq: number, time: UnixMillis): void {
    if (headOf(record) > this.#covered.seq) {
      const now = this.#deps.clock.now();
      this.#uncovered ??= { streamSeq, since: now };
      this.#later ??= { streamSeq, since: now };
    }
    const received = projection.receiveRecord(record, streamSeq, time);
    // Also where it was counted before: this memory may not know yet that its windows have points.
    if (time >= this.#hourEnd) this.#enterHour(Math.max(time, projection.applied.time) as UnixMillis);
    if (received.kind === "known" || received.missing === 0) return;
    this.#deps.metrics.missing.inc(received.missing);
    this.#deps.log.warn({ room: this.room, streamSeq, missing: received.missing }, "the log had lost edits before they were counted: the room's boards lack them");
  }

  #enterHour(time: UnixMillis): void {
    const windows = windowsAt(time);
    this.#hourEnd = windows[0]!.end;
    for (const window of windows) this.#know(window);
  }

  #know(window: Window): void {
    this.#windows.set(window.id, window);
    this.#untold.set(window.id, window); // A leaderboard may have died before it was told.
  }

  /** Resolves once all that was received before is in the boards. */
  apply(): Promise<void> {
    return (this.#applying ??= this.#applyAll().finally(() => (this.#applying = undefined)));
  }

  async #applyAll(): Promise<void> {
    for (let batch = this.#projection?.takeBatch(); batch !== undefined; batch = this.#projection?.takeBatch()) {
      await this.#register(batch.windows);
      const endTimer = this.#deps.metrics.batches.startTimer();
      const write = await this.#ports.boards.apply(this.room, batch);
      endTimer();
      if (write.kind === "stale") throw new Trouble("stale", `room ${this.room} is counted up to ${write.seq}, not ${batch.after}`);
      for (const window of batch.windows) this.#untold.set(window.id, window);
      this.#deps.metrics.edits.inc(batch.applied.seq - batch.after);
      this.#deps.onCounted(this.room);
    }
  }

  async #register(windows: readonly Window[]): Promise<void> {
    const fresh = windows.filter(({ id, kind }) => kind !== "all" && !this.#registered.has(id));
    if (fresh.length === 0) return;
    await this.#ports.closings.open(this.#partition, this.room, fresh);
    this.#registered.clear();
    for (const { id } of windows) this.#registered.add(id);
  }

  /** Brings the tenant's board of rooms up to date. */
  async tellTotals(): Promise<void> {
    const windows = [...this.#untold.values()];
    this.#untold.clear();
    try {
      await this.#ports.tenants.tell(this.room, windows);
    } catch (error) {
      for (const window of windows) this.#untold.set(window.id, window); // Whatever it was: it is still to be told.
      throw error;
    }
  }

  /** Writes what is counted where Redis cannot lose it. */
  async saveCheckpoint(): Promise<void> {
    if (this.#isSaving || this.#projection === undefined) return;
    this.#isSaving = true;
    try {
      this.#later = undefined;
      const through = this.#projection.applied.seq;
      await this.apply();
      await this.tellTotals(); // What a checkpoint covers is not read again.
      const dump = await this.#ports.boards.dump(this.room, [...this.#windows.values()]);
      if (dump === undefined || dump.applied.seq < through) throw new Trouble("stale", `the boards of room ${this.room} are counted less far than they were: did Redis lose data?`);
      const endTimer = this.#deps.metrics.checkpoints.startTimer();
      const write = await this.#ports.checkpoints.write(this.room, dump, this.#covered.revision);
      endTimer({ outcome: write.kind });
      if (write.kind === "superseded") throw new Trouble("stale", `another leaderboard wrote the checkpoint of room ${this.room}`);
      this.#covered = { seq: dump.applied.seq, revision: write.revision };
      this.#uncovered = this.#later;
    } finally {
      this.#isSaving = false;
    }
  }
}
