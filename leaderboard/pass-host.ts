/**
 * One pass over a partition of the log: from the floor (up to there everything is in checkpoints), with an empty
 * memory, to the first surprise. What Redis has counted already is passed over, so a pass costs time and never a
 * point. What it holds is bounded: past the limits it stops reading, and the log waits.
 */

import type { Millis, RoomKey, UnixMillis } from "../shared/ids.ts";
import { pause, unlessMistake } from "../shared/pause.ts";
import { archiveWindow, type ArchivingOptions, type ArchivingPorts } from "./archiving-host.ts";
import type { EditLog, Progress, Word } from "./ports.ts";
import { BoardRoom, type RoomDeps, type RoomOptions, type RoomPorts } from "./room-host.ts";
import { Trouble } from "./trouble.ts";
import { eachOf } from "./turns.ts";

export type PassPorts = RoomPorts & ArchivingPorts & { readonly log: EditLog; readonly progress: Progress };
export type PassOptions = RoomOptions &
  ArchivingOptions & {
    /** This run of the leaderboard: no other ever has its name. */
    readonly service: string;
    readonly boardsDrainMsMax: number;
    readonly boardBatchMs: number;
    readonly boardPendingEditsMax: number;
    readonly boardRoomsMax: number;
    readonly boardOpeningsMax: number;
    readonly boardWritesMax: number;
    readonly boardCheckpointWritesMax: number;
    readonly boardArchiveGraceMs: number;
    readonly boardTotalsMs: number;
  };
export type PassDeps = RoomDeps & { readonly watchedRooms: () => Iterable<RoomKey>; readonly onFloor: (floor: number) => void };

/** Rooms whose boards are watched are counted so many times as often. */
const WATCHED_TURNS = 4;
const BEAT_MS = 1_000;
const FULL_PAUSE_MS = 20;
const SAVE_MS = 500;
const CLOSINGS_AT_A_TIME = 100;
/** From so much of the rooms it may know on, quiet ones are checkpointed early and forgotten. */
const PRESSED = 0.5;

export class PassHost {
  readonly #partition: number;
  readonly #ports: PassPorts;
  readonly #options: PassOptions;
  readonly #deps: PassDeps;
  readonly #over = new AbortController();
  readonly #rooms = new Map<RoomKey, BoardRoom>();
  readonly #opening = new Set<BoardRoom>();
  #floor: number;
  /** The last stream sequence handed to a room. */
  #received: number;
  /** Summed up anew now and then only: it is asked for with each record. */
  #pendingAtMost = 0;
  #through: UnixMillis;
  /** Once all up to `end` is counted, all is that the log took before `asked`. */
  #target: { readonly end: number; readonly asked: UnixMillis } | undefined;
  #isRebuilding = true;
  #reason = "lease";

  /** `through`: how far the pass before had come, for those who ask meanwhile. */
  constructor(partition: number, from: { floor: number; through: UnixMillis }, ports: PassPorts, options: PassOptions, deps: PassDeps) {
    this.#partition = partition;
    this.#floor = from.floor;
    this.#received = from.floor;
    this.#through = from.through;
    this.#ports = ports;
    this.#options = options;
    this.#deps = deps;
  }

  get hasCaughtUp(): boolean {
    return !this.#isRebuilding;
  }

  get through(): UnixMillis {
    return this.#through;
  }

  /** Returns why it ended. */
  async run(signal: AbortSignal): Promise<string> {
    const end = (): void => this.#over.abort();
    signal.addEventListener("abort", end);
    await this.#part(async () => {
      if ((await this.#ports.progress.beat(this.#partition, this.#word())) === "lost") await this.#restoreAll();
      await Promise.all([() => this.#follow(), () => this.#count(), () => this.#save(), () => this.#beat(), () => this.#archive(), () => this.#tellTotals()].map((work) => this.#part(work)));
    });
    signal.removeEventListener("abort", end);
    return this.#reason;
  }

  /** Checkpoints what is left, so that whoever comes next begins at the end of the log. */
  async drain(): Promise<void> {
    const { clock } = this.#deps;
    const deadline = clock.now() + this.#options.boardsDrainMsMax;
    await this.#part(() =>
      eachOf([...this.#rooms.values()], this.#options.boardCheckpointWritesMax, async (room) => {
        if (clock.now() < deadline && room.uncoveredFrom !== undefined) await room.saveCheckpoint();
      }),
    );
    this.#raiseFloor();
  }

  /** The first part that fails ends them all. */
  async #part(work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (cause) {
      unlessMistake(cause);
      if (this.#over.signal.aborted) return;
      this.#reason = cause instanceof Trouble ? cause.reason : "failed";
      this.#deps.log.warn({ partition: this.#partition, after: this.#floor, cause }, "counting begins again from the last checkpoints");
    } finally {
      this.#over.abort();
    }
  }

  get #isOver(): boolean {
    return this.#over.signal.aborted;
  }

  /** Redis has nothing of what it had: every room that has a checkpoint gets its boards back. */
  async #restoreAll(): Promise<void> {
    const rooms = await this.#ports.checkpoints.rooms(this.#partition);
    if (rooms.length > 0) this.#deps.log.warn({ partition: this.#partition, rooms: rooms.length }, "Redis has no boards: they are put back from checkpoints, and the log is counted from there");
    await eachOf(rooms, this.#options.boardCheckpointWritesMax, async (room) => {
      if (this.#isOver) return;
      const restored = this.#newRoom(room);
      await restored.open();
      await restored.tellTotals();
    });
    if (!this.#isOver) await this.#ports.progress.begin(this.#partition, this.#word());
  }

  async #follow(): Promise<void> {
    for await (const stored of this.#ports.log.follow(this.#partition, this.#received, this.#over.signal)) {
      this.#pendingAtMost += this.#room(stored.room).receiveRecord(stored);
      this.#received = stored.streamSeq;
      this.#deps.metrics.records.inc();
      while (this.#isFull() && !this.#isOver) await pause(this.#deps.clock, FULL_PAUSE_MS, this.#over.signal);
    }
    if (!this.#isOver) throw new Error("the log ended: is NATS reachable?");
  }

  #room(key: RoomKey): BoardRoom {
    const known = this.#rooms.get(key);
    if (known !== undefined) return known;
    const room = this.#newRoom(key);
    this.#rooms.set(key, room);
    this.#opening.add(room);
    void this.#open(room);
    return room;
  }

  async #open(room: BoardRoom): Promise<void> {
    try {
      await room.open();
      this.#opening.delete(room);
    } catch (cause) {
      await this.#part(() => Promise.reject(cause));
    }
  }

  #newRoom(key: RoomKey): BoardRoom {
    return new BoardRoom(key, this.#partition, this.#ports, this.#options, this.#deps);
  }

  #isFull(): boolean {
    if (this.#opening.size >= this.#options.boardOpeningsMax || this.#rooms.size >= this.#options.boardRoomsMax) return true;
    if (this.#pendingAtMost < this.#options.boardPendingEditsMax) return false;
    return this.#pendingEdits() >= this.#options.boardPendingEditsMax;
  }

  #pendingEdits(): number {
    let edits = 0;
    for (const room of this.#rooms.values()) edits += room.pendingEdits;
    this.#pendingAtMost = edits;
    return edits;
  }

  /** Applies what came, and knows how far everything is then. */
  async #count(): Promise<void> {
    const { clock } = this.#deps;
    for (let [due, turn] = [clock.now(), 1]; ; turn = (turn + 1) % WATCHED_TURNS) {
      due = Math.max(clock.now(), due + this.#options.boardBatchMs / WATCHED_TURNS) as Millis;
      await pause(clock, due - clock.now(), this.#over.signal);
      if (this.#isOver) return;
      const received = this.#opening.size === 0 ? this.#received : 0;
      const rooms = turn === 0 ? [...this.#rooms.values()] : this.#watched();
      await eachOf(rooms.filter(({ pendingEdits }) => pendingEdits > 0), this.#options.boardWritesMax, (room) => room.apply());
      if (this.#isOver) return;
      if (turn !== 0) continue;
      if (this.#target !== undefined && received >= this.#target.end) this.#reach(this.#target.asked);
      this.#observe();
    }
  }

  #watched(): BoardRoom[] {
    return [...this.#deps.watchedRooms()].flatMap((key) => this.#rooms.get(key) ?? []);
  }

  /** All that the log took before `time` is counted. */
  #reach(time: UnixMillis): void {
    if (this.#isRebuilding) this.#deps.log.info({ partition: this.#partition, through: this.#received }, "the boards are up to date");
    this.#through = time;
    this.#target = undefined;
    this.#isRebuilding = false;
  }

  /** Checkpoints what is due, and forgets who is quiet. */
  async #save(): Promise<void> {
    const { clock } = this.#deps;
    for (;;) {
      await pause(clock, SAVE_MS, this.#over.signal);
      const isPressed = this.#rooms.size > this.#options.boardRoomsMax * PRESSED;
      const due = [...this.#rooms.values()].filter((room) => room.isCheckpointDue(clock.now(), { isPressed }));
      await eachOf(due, this.#options.boardCheckpointWritesMax, async (room) => {
        if (!this.#isOver) await room.saveCheckpoint();
      });
      if (this.#isOver) return;
      this.#raiseFloor();
      if (isPressed) for (const room of this.#rooms.values()) if (room.canRetire) this.#rooms.delete(room.room);
    }
  }

  #raiseFloor(): void {
    let lowest = this.#received;
    for (const { uncoveredFrom } of this.#rooms.values()) if (uncoveredFrom !== undefined) lowest = Math.min(lowest, uncoveredFrom - 1);
    this.#floor = Math.max(this.#floor, lowest);
    this.#deps.onFloor(this.#floor);
  }

  #word(): Word {
    return { service: this.#options.service, through: this.#through, isRebuilding: this.#isRebuilding };
  }

  async #beat(): Promise<void> {
    while (!this.#isOver) {
      await this.#expectKept();
      const asked = this.#deps.clock.wallNow();
      this.#target ??= { end: await this.#ports.log.end(this.#partition), asked };
      await pause(this.#deps.clock, BEAT_MS, this.#over.signal);
    }
  }

  async #expectKept(): Promise<void> {
    const beat = await this.#ports.progress.beat(this.#partition, this.#word());
    if (beat !== "kept") throw new Trouble("doubtful", "Redis was away or lost data: what it still has is looked at anew");
  }

  async #archive(): Promise<void> {
    while (!this.#isOver) {
      await pause(this.#deps.clock, BEAT_MS, this.#over.signal);
      if (this.#isOver || this.#isRebuilding) continue;
      const due = await this.#ports.closings.due(this.#partition, (this.#through - this.#options.boardArchiveGraceMs) as UnixMillis, CLOSINGS_AT_A_TIME);
      await eachOf(due, this.#options.boardCheckpointWritesMax, async (closing) => {
        if (this.#isOver) return;
        const outcome = await archiveWindow(closing, this.#partition, this.#ports, this.#options, { wallNow: this.#deps.clock.wallNow(), confirm: () => this.#expectKept() });
        this.#rooms.get(closing.room)?.forgetWindow(closing.window.id);
        this.#deps.metrics.archived.inc({ outcome });
      });
    }
  }

  async #tellTotals(): Promise<void> {
    while (!this.#isOver) {
      await pause(this.#deps.clock, this.#options.boardTotalsMs, this.#over.signal);
      const untold = [...this.#rooms.values()].filter(({ isUntold }) => isUntold);
      await eachOf(untold, this.#options.boardWritesMax, async (room) => {
        if (!this.#isOver) await room.tellTotals();
      });
    }
  }

  #observe(): void {
    const { metrics, clock } = this.#deps;
    const partition = String(this.#partition);
    metrics.rooms.set({ partition }, this.#rooms.size);
    metrics.pending.set({ partition }, this.#pendingEdits());
    metrics.behind.set({ partition }, (clock.wallNow() - this.#through) / 1_000);
  }
}
