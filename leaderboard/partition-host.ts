/**
 * Counts one partition of the log while it holds the partition's lease. It works in passes: each reads the
 * log from the floor (up to there everything is in checkpoints) with an empty memory, and ends at the first
 * surprise. What Redis has counted already is passed over, so a pass costs time and never a point.
 */

import type { Millis, RoomKey } from "../shared/ids.ts";
import { LeaseWatch, type Leases, NOBODY } from "../shared/lease.ts";
import { pause, unlessMistake } from "../shared/pause.ts";
import { archiveWindow, type ArchivingOptions, type ArchivingPorts } from "./archiving-host.ts";
import type { EditLog, Progress, Word } from "./ports.ts";
import { BoardRoom, type RoomDeps, type RoomOptions, type RoomPorts } from "./room-host.ts";
import { Trouble } from "./trouble.ts";
import { eachOf } from "./turns.ts";

export type PartitionPorts = RoomPorts & ArchivingPorts & { readonly log: EditLog; readonly leases: Leases; readonly progress: Progress };
export type PartitionOptions = RoomOptions &
  ArchivingOptions & {
    /** This run of the leaderboard: no other ever has its name. */
    readonly service: string;
    readonly boardsLeaseMs: number;
    readonly boardsDrainMsMax: number;
    readonly boardBatchMs: number;
    readonly boardPendingEditsMax: number;
    readonly boardRoomsMax: number;
    readonly boardOpeningsMax: number;
    readonly boardWritesMax: number;
    readonly boardCheckpointWritesMax: number;
    readonly boardArchiveGraceMs: number;
  };
export type PartitionDeps = RoomDeps;

const BEAT_MS = 1_000;
const RETRY_MS = 250;
const RETRY_MS_MAX = 4_000;
const FULL_PAUSE_MS = 20;
const SAVE_MS = 500;
/** From so much of the rooms it may know on, quiet ones are checkpointed early and forgotten. */
const PRESSED = 0.5;
const CLOSINGS_AT_A_TIME = 100;

export class PartitionHost {
  readonly #partition: number;
  readonly #ports: PartitionPorts;
  readonly #options: PartitionOptions;
  readonly #deps: PartitionDeps;
  readonly #stopping = new AbortController();
  /** The revision of our lease; undefined: we hold none. */
  #lease: number | undefined;
  #floor = 0;
  readonly #rooms = new Map<RoomKey, BoardRoom>();
  #opening = new Set<BoardRoom>();
  /** The last stream sequence handed to a room in this pass. */
  #received = 0;
  /** Summed up anew now and then only: it is asked for with each record. */
  #pendingAtMost = 0;
  #through = 0 as Millis;
  /** Once all up to `end` is counted, all is that the log took before `asked`. */
  #target: { readonly end: number; readonly asked: Millis } | undefined;
  #isRebuilding = false;
  #failures = 0;

  constructor(partition: number, ports: PartitionPorts, options: PartitionOptions, deps: PartitionDeps) {
    this.#partition = partition;
    this.#ports = ports;
    this.#options = options;
    this.#deps = deps;
  }

  get isHeld(): boolean {
    return this.#lease !== undefined && !this.#stopping.signal.aborted;
  }

  /** Resolves after `stop`, once all is in checkpoints and the lease given back. */
  async run(): Promise<void> {
    while (!this.#stopping.signal.aborted) {
      await this.#waitForLease();
      if (this.#lease !== undefined) await this.#hold();
    }
  }

  stop(): void {
    this.#stopping.abort();
  }

  async #waitForLease(): Promise<void> {
    const { clock, log } = this.#deps;
    const watch = new LeaseWatch({ holder: this.#options.service, leaseMs: this.#options.boardsLeaseMs });
    while (!this.#stopping.signal.aborted) {
      try {
        const { lease, revision } = await this.#ports.leases.read(this.#partition);
        if (watch.mayTake(lease, revision, clock.now())) {
          this.#floor = lease?.floor ?? 0;
          await this.#writeLease(this.#options.service, revision);
          if (this.#lease !== undefined) return log.info({ partition: this.#partition, after: this.#floor }, "counting this part of the log from here on");
        }
      } catch (cause) {
        unlessMistake(cause);
        watch.receiveSilence();
        log.warn({ partition: this.#partition, cause }, "a lease could not be read");
      }
      await pause(clock, this.#options.boardsLeaseMs / 4, this.#stopping.signal);
    }
  }

  async #writeLease(holder: string, revision: number): Promise<void> {
    const write = await this.#ports.leases.write(this.#partition, { holder, floor: this.#floor }, revision);
    this.#lease = write.kind === "written" ? write.revision : undefined;
  }

  async #hold(): Promise<void> {
    const held = new AbortController();
    const passes = this.#passUntil(held.signal);
    await this.#renewUntilLost(this.#stopping.signal);
    held.abort();
    await passes;
    if (this.#lease !== undefined) await this.#giveBack(this.#lease);
    this.#lease = undefined;
    this.#forget();
  }

  /** While NATS is away nobody can take the lease either: it is lost only to another holder. */
  async #renewUntilLost(signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#deps;
    while (this.#lease !== undefined) {
      await pause(clock, this.#options.boardsLeaseMs / 4, signal);
      if (signal.aborted) return;
      try {
        await this.#writeLease(this.#options.service, this.#lease);
      } catch (cause) {
        unlessMistake(cause);
        log.warn({ partition: this.#partition, cause }, "a lease could not be renewed");
      }
    }
    log.warn({ partition: this.#partition }, "another leaderboard counts this part of the log now");
  }

  async #giveBack(lease: number): Promise<void> {
    try {
      await this.#writeLease(NOBODY, lease);
    } catch (cause) {
      unlessMistake(cause);
      this.#deps.log.warn({ partition: this.#partition, cause }, "a lease was not given back; it runs out by itself");
    }
  }

  async #passUntil(signal: AbortSignal): Promise<void> {
    let reason = "lease";
    while (!signal.aborted) {
      this.#deps.metrics.passes.inc({ reason });
      reason = await this.#pass(signal);
      if (!signal.aborted) await pause(this.#deps.clock, Math.min(RETRY_MS * 2 ** this.#failures++, RETRY_MS_MAX), signal);
    }
  }

  /** Returns why it ended. */
  async #pass(signal: AbortSignal): Promise<string> {
    const pass = new AbortController();
    const end = (): void => pass.abort();
    signal.addEventListener("abort", end);
    let reason = "lease";
    const part = async (work: () => Promise<void>): Promise<void> => {
      try {
        await work();
      } catch (cause) {
        unlessMistake(cause);
        reason = cause instanceof Trouble ? cause.reason : "failed";
        if (!pass.signal.aborted) this.#deps.log.warn({ partition: this.#partition, after: this.#floor, cause }, "counting begins again from the last checkpoints");
      } finally {
        pass.abort();
      }
    };
    this.#forget();
    this.#isRebuilding = true;
    if (!signal.aborted) {
      await part(async () => {
        const works = [() => this.#follow(pass.signal), () => this.#count(pass.signal), () => this.#save(pass.signal), () => this.#beat(pass.signal), () => this.#archive(pass.signal)];
        if ((await this.#ports.progress.beat(this.#partition, this.#word())) === "lost") await this.#restoreAll(pass.signal);
        await Promise.all(works.map(part));
      });
    }
    if (signal.aborted && this.#stopping.signal.aborted) await part(() => this.#drain());
    signal.removeEventListener("abort", end);
    return reason;
  }

  #forget(): void {
    this.#rooms.clear();
    this.#opening = new Set();
    this.#received = this.#floor;
    this.#target = undefined;
    this.#observe();
  }

  /** Redis has nothing of what it had: every room that has a checkpoint gets its boards back. */
  async #restoreAll(signal: AbortSignal): Promise<void> {
    const rooms = await this.#ports.checkpoints.rooms(this.#partition);
    if (rooms.length > 0) this.#deps.log.warn({ partition: this.#partition, rooms: rooms.length }, "Redis has no boards: they are put back from checkpoints, and the log is counted from there");
    await eachOf(rooms, this.#options.boardCheckpointWritesMax, async (room) => {
      if (!signal.aborted) await new BoardRoom(room, this.#partition, this.#ports, this.#options, this.#deps).open();
    });
    if (!signal.aborted) await this.#ports.progress.begin(this.#partition, this.#word());
  }

  async #follow(signal: AbortSignal): Promise<void> {
    for await (const stored of this.#ports.log.follow(this.#partition, this.#received, signal)) {
      this.#pendingAtMost += this.#room(stored.room, signal).receiveRecord(stored);
      this.#received = stored.streamSeq;
      this.#deps.metrics.records.inc();
      while (this.#isFull() && !signal.aborted) await pause(this.#deps.clock, FULL_PAUSE_MS, signal);
    }
    if (!signal.aborted) throw new Error("the log ended: is NATS reachable?");
  }

  #room(key: RoomKey, signal: AbortSignal): BoardRoom {
    const known = this.#rooms.get(key);
    if (known !== undefined) return known;
    const room = new BoardRoom(key, this.#partition, this.#ports, this.#options, this.#deps);
    this.#rooms.set(key, room);
    this.#opening.add(room);
    room.open().then(
      () => this.#opening.delete(room),
      (cause: unknown) => this.#failedToOpen.add({ signal, cause }),
    );
    return room;
  }

  /** Looked at by the counting part of the pass they belong to. */
  readonly #failedToOpen = new Set<{ signal: AbortSignal; cause: unknown }>();

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
  async #count(signal: AbortSignal): Promise<void> {
    const { clock } = this.#deps;
    for (let due = clock.now(); !signal.aborted; ) {
      due = Math.max(clock.now(), due + this.#options.boardBatchMs) as Millis;
      await pause(clock, due - clock.now(), signal);
      for (const failed of this.#failedToOpen) {
        this.#failedToOpen.delete(failed);
        if (failed.signal === signal) throw failed.cause;
      }
      const received = this.#opening.size === 0 ? this.#received : 0;
      await eachOf([...this.#rooms.values()].filter(({ pendingEdits }) => pendingEdits > 0), this.#options.boardWritesMax, (room) => room.apply());
      if (signal.aborted) return;
      if (this.#target !== undefined && received >= this.#target.end) this.#reach(this.#target.asked);
      this.#observe();
    }
  }

  /** Checkpoints what is due, and forgets who is quiet. */
  async #save(signal: AbortSignal): Promise<void> {
    const { clock } = this.#deps;
    while (!signal.aborted) {
      await pause(clock, SAVE_MS, signal);
      const isPressed = this.#rooms.size > this.#options.boardRoomsMax * PRESSED;
      const due = [...this.#rooms.values()].filter((room) => room.isCheckpointDue(clock.now(), { isPressed }));
      await eachOf(due, this.#options.boardCheckpointWritesMax, async (room) => {
        if (!signal.aborted) await room.saveCheckpoint();
      });
      if (signal.aborted) return;
      this.#floor = this.#lowestUncovered();
      if (isPressed) for (const room of this.#rooms.values()) if (room.canRetire) this.#rooms.delete(room.room);
    }
  }

  /** All that the log took before `time` is counted. */
  #reach(time: Millis): void {
    if (this.#isRebuilding) this.#deps.log.info({ partition: this.#partition, through: this.#received }, "the boards are up to date");
    this.#through = time;
    this.#target = undefined;
    this.#isRebuilding = false;
    this.#failures = 0;
  }

  /** Everything up to it is in checkpoints. */
  #lowestUncovered(): number {
    let lowest = this.#received;
    for (const { uncoveredFrom } of this.#rooms.values()) if (uncoveredFrom !== undefined) lowest = Math.min(lowest, uncoveredFrom - 1);
    return Math.max(this.#floor, lowest);
  }

  #word(): Word {
    return { service: this.#options.service, through: this.#through, isRebuilding: this.#isRebuilding };
  }

  async #beat(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.#expectKept();
      const asked = this.#deps.clock.now();
      this.#target ??= { end: await this.#ports.log.end(this.#partition), asked };
      await pause(this.#deps.clock, BEAT_MS, signal);
    }
  }

  async #expectKept(): Promise<void> {
    const beat = await this.#ports.progress.beat(this.#partition, this.#word());
    if (beat !== "kept") throw new Trouble("doubtful", "Redis was away or lost data: what it still has is looked at anew");
  }

  async #archive(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await pause(this.#deps.clock, BEAT_MS, signal);
      if (signal.aborted || this.#isRebuilding) continue;
      const due = await this.#ports.closings.due(this.#partition, (this.#through - this.#options.boardArchiveGraceMs) as Millis, CLOSINGS_AT_A_TIME);
      await eachOf(due, this.#options.boardCheckpointWritesMax, async (closing) => {
        if (signal.aborted) return;
        const outcome = await archiveWindow(closing, this.#partition, this.#ports, this.#options, { now: this.#deps.clock.now(), confirm: () => this.#expectKept() });
        this.#rooms.get(closing.room)?.forgetWindow(closing.window.id);
        this.#deps.metrics.archived.inc({ outcome });
      });
    }
  }

  /** Checkpoints what is left, so that whoever comes next begins at the end of the log. */
  async #drain(): Promise<void> {
    const { clock } = this.#deps;
    const deadline = clock.now() + this.#options.boardsDrainMsMax;
    await eachOf([...this.#rooms.values()], this.#options.boardCheckpointWritesMax, async (room) => {
      if (clock.now() < deadline && room.uncoveredFrom !== undefined) await room.saveCheckpoint();
    });
    this.#floor = this.#lowestUncovered();
  }

  #observe(): void {
    const { metrics, clock } = this.#deps;
    const partition = String(this.#partition);
    metrics.rooms.set({ partition }, this.#rooms.size);
    metrics.pending.set({ partition }, this.#pendingEdits());
    metrics.isCounting.set({ partition }, this.isHeld ? 1 : 0);
    metrics.behind.set({ partition }, this.isHeld ? (clock.now() - this.#through) / 1_000 : 0);
  }
}
