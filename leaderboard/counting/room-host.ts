/**
 * Counts one room: looks up its stored boards (and puts them back from the checkpoint where Redis has less), counts its
 * records and activities, applies its batches one at a time, and writes its checkpoint. Anything unexpected is thrown,
 * and the partition then begins again from its floor.
 */

import { assertNever } from "../../shared/assert.ts";
import { headOf } from "../../shared/bus/record.ts";
import type { Clock } from "../../shared/clock.ts";
import type { Millis, RoomKey, Seq } from "../../shared/ids.ts";
import type { Log } from "../../shared/log.ts";
import { isAhead, type Mark, NO_USES, NOTHING_APPLIED } from "../boards/board.ts";
import { Coverage } from "./coverage.ts";
import type { Source } from "./instants.ts";
import type { LeaderboardMetrics } from "../metrics.ts";
import type { Boards, Checkpoints, Closings, TenantBoards } from "../ports.ts";
import type { Received } from "./received.ts";
import { removeBoards, type RemovalPorts } from "../archiving/removal-host.ts";
import { type ProjectionOptions, RoomProjection } from "./room-projection.ts";
import { RoomWindows } from "./room-windows-host.ts";
import { Trouble } from "./trouble.ts";
import { Undecodable } from "../../shared/undecodable.ts";

export type RoomPorts = RemovalPorts & {
  readonly boards: Boards;
  readonly closings: Closings;
  readonly checkpoints: Checkpoints;
  readonly tenants: Pick<TenantBoards, "meet" | "tell" | "remove">;
};
export type RoomOptions = ProjectionOptions & { readonly boardCheckpointMsMax: number };
export type RoomDeps = {
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: LeaderboardMetrics;
  readonly onCounted: (room: RoomKey) => void;
  /** Resolves once the partition's stream of activities is sure to go on behind a number that was counted. */
  readonly expectBehind: (activity: number) => Promise<void>;
  /** The room's checkpoint cannot be understood: nothing of the room is counted. */
  readonly onAside: (room: RoomKey, cause: Undecodable) => void;
};

const NOTHING_COVERED: Mark & { readonly revision: number } = { seq: 0 as Seq, activity: 0, revision: 0 };

type State =
  /** Its boards are being looked up. `waiting`: what has come meanwhile, of so many entries. */
  | { readonly kind: "opening"; readonly waiting: Received[]; entries: number }
  | { readonly kind: "counting"; readonly projection: RoomProjection }
  /** Its checkpoint does not decode: records are not kept, it is only noted that no checkpoint covers them. */
  | { readonly kind: "aside" }
  /**
   * `endsAt`: the stream sequence of the record that says so; undefined once the boards are removed. `isLookedUp`: nothing
   * of what opened the room is under way, so they may be.
   */
  | { readonly kind: "deleted"; endsAt: number | undefined; isLookedUp: boolean };

export class BoardRoom {
  readonly room: RoomKey;
  readonly #partition: number;
  readonly #ports: RoomPorts;
  readonly #options: RoomOptions;
  readonly #deps: RoomDeps;
  #state: State = { kind: "opening", waiting: [], entries: 0 };
  /** What the checkpoint covers, and which revision it has. */
  #covered = NOTHING_COVERED;
  readonly #uncovered: Readonly<Record<Source, Coverage>> = { edits: new Coverage(), activities: new Coverage() };
  readonly #windows: RoomWindows;
  #applying: Promise<void> | undefined;
  #isSaving = false;

  constructor(room: RoomKey, partition: number, ports: RoomPorts, options: RoomOptions, deps: RoomDeps) {
    this.room = room;
    this.#partition = partition;
    this.#ports = ports;
    this.#options = options;
    this.#deps = deps;
    this.#windows = new RoomWindows(room, partition, ports);
  }

  get pending(): number {
    switch (this.#state.kind) {
      case "opening":
        return this.#state.entries;
      case "counting":
        return this.#state.projection.entries;
      case "aside":
      case "deleted":
        return 0;
      default:
        return assertNever(this.#state);
    }
  }

  /** The first of a stream that no checkpoint covers. */
  uncoveredFrom(source: Source): number | undefined {
    if (this.#state.kind !== "deleted") return this.#uncovered[source].from;
    return source === "edits" ? this.#state.endsAt : undefined;
  }

  get isCovered(): boolean {
    return this.uncoveredFrom("edits") === undefined && this.uncoveredFrom("activities") === undefined;
  }

  get isIdle(): boolean {
    const mayBe = this.#state.kind === "counting" || this.#state.kind === "deleted";
    return mayBe && this.pending === 0 && this.#applying === undefined && !this.#isSaving;
  }

  get #isDeleted(): boolean {
    return this.#state.kind === "deleted";
  }

  get #projection(): RoomProjection | undefined {
    return this.#state.kind === "counting" ? this.#state.projection : undefined;
  }

  /** Its checkpoint cannot be understood: it is not counted in this pass. */
  get isAside(): boolean {
    return this.#state.kind === "aside";
  }

  get isUntold(): boolean {
    return !this.#isDeleted && !this.#windows.areTold;
  }

  /** Nothing would be lost if it were forgotten. */
  get canRetire(): boolean {
    return this.isIdle && this.isCovered && !this.isUntold;
  }

  /** `isPressed`: there is no room for more rooms. */
  isCheckpointDue(now: Millis, { isPressed }: { isPressed: boolean }): boolean {
    if (this.#isSaving) return false;
    if (this.#state.kind === "deleted") return this.#state.endsAt !== undefined && this.#state.isLookedUp;
    if (this.#state.kind !== "counting" || this.isCovered) return false;
    const { edits, activities } = this.#uncovered;
    const since = Math.min(edits.since ?? now, activities.since ?? now);
    return (isPressed && this.isIdle) || now - since >= this.#options.boardCheckpointMsMax;
  }

  forgetWindow(id: string): void {
    this.#windows.forget(id);
  }

  async open(): Promise<void> {
    try {
      await this.#open();
    } catch (cause) {
      if (!(cause instanceof Undecodable)) throw cause;
      if (!this.#isDeleted) this.#state = { kind: "aside" };
      this.#deps.onAside(this.room, cause);
    }
    if (this.#state.kind === "deleted") this.#state.isLookedUp = true;
  }

  async #open(): Promise<void> {
    const { boards, checkpoints } = this.#ports;
    const [stored, mark] = await Promise.all([boards.load(this.room), checkpoints.mark(this.room)]);
    if (mark.isDeleted || stored === "deleted") {
      if (!this.#isDeleted) this.#state = { kind: "deleted", endsAt: undefined, isLookedUp: false };
      // Redis has lost that, and is to know it for whoever is late. Where it was put back from before, all is there again.
      if (stored === undefined) await boards.remove(this.room, []);
      else if (stored !== "deleted") await removeBoards(this.room, this.#partition, this.#ports, this.#deps.clock.wallNow());
    }
    if (this.#isDeleted) return; // Or so it was heard meanwhile.
    this.#covered = mark;
    this.#windows.know(mark.windows);
    const current = isAhead(mark, appliedOf(stored)) ? await this.#restore() : stored;
    if (current === "deleted") throw new Trouble("stale", `room ${this.room} was deleted while its boards were looked up`);
    await this.#deps.expectBehind(current?.applied.activity ?? 0);
    if (this.#state.kind !== "opening") return;
    const { waiting } = this.#state;
    const projection = new RoomProjection(current?.applied ?? NOTHING_APPLIED, current?.uses ?? NO_USES, this.#options);
    this.#state = { kind: "counting", projection };
    for (const coverage of Object.values(this.#uncovered)) coverage.forget(); // The checkpoint may cover the first of them.
    for (const received of waiting) this.#count(projection, received);
  }

  async #restore(): ReturnType<Boards["load"]> {
    const { boards, checkpoints } = this.#ports;
    const dump = await checkpoints.read(this.room);
    if (dump !== undefined) {
      await this.#windows.prepareRestore(dump.boards);
      if ((await boards.restore(this.room, dump)).kind === "written") this.#deps.metrics.restores.inc();
    }
    return boards.load(this.room);
  }

  /** The log says so: nothing more is counted, and what there is goes with the next checkpoint. */
  receiveDeleted(streamSeq: number): void {
    // Also where it stood aside: its boards are removed as others are.
    const isLookedUp = this.#state.kind === "deleted" ? this.#state.isLookedUp : this.#state.kind !== "opening";
    this.#state = { kind: "deleted", endsAt: streamSeq, isLookedUp };
  }

  receive(received: Received): void {
    switch (this.#state.kind) {
      case "counting":
        return this.#count(this.#state.projection, received);
      case "opening":
        this.#state.waiting.push(received);
        this.#state.entries += received.entries;
        return this.#noteUncovered(received);
      case "aside":
        return this.#noteUncovered(received);
      case "deleted":
        return;
      default:
        return assertNever(this.#state);
    }
  }

  #count(projection: RoomProjection, received: Received): void {
    const { source, streamSeq, time } = received;
    if (!this.#isCoveredAlready(received)) this.#noteUncovered(received);
    const outcome =
      source === "edits"
        ? projection.receiveRecord(received.record, streamSeq, time)
        : projection.receiveActivity(received.activity, streamSeq, time);
    // Also where it was counted before: whoever counted it may have died before its windows were told of.
    this.#windows.enter(source, time);
    if (outcome.kind === "known" || outcome.missing === 0) return;
    this.#deps.metrics.missing.inc(outcome.missing);
    this.#deps.log.warn(
      { room: this.room, streamSeq, missing: outcome.missing },
      "the log had lost edits before they were counted: the room's boards lack them",
    );
  }

  #noteUncovered({ source, streamSeq }: Received): void {
    this.#uncovered[source].receive(streamSeq, this.#deps.clock.now());
  }

  #isCoveredAlready(received: Received): boolean {
    return received.source === "edits" ? headOf(received.record) <= this.#covered.seq : received.streamSeq <= this.#covered.activity;
  }

  /** Resolves once all that was received before is in the boards. */
  apply(): Promise<void> {
    return (this.#applying ??= this.#applyAll().finally(() => (this.#applying = undefined)));
  }

  async #applyAll(): Promise<void> {
    for (let batch = this.#projection?.takeBatch(); batch !== undefined; batch = this.#projection?.takeBatch()) {
      await this.#windows.prepare(batch);
      const endTimer = this.#deps.metrics.batches.startTimer();
      const write = await this.#ports.boards.apply(this.room, batch);
      endTimer();
      if (write.kind === "stale") {
        throw new Trouble(
          "stale",
          `room ${this.room} is counted up to ${JSON.stringify(write.counted)}, not ${JSON.stringify(batch.after)}`,
        );
      }
      this.#windows.know(batch.windows);
      this.#deps.metrics.edits.inc(batch.applied.seq - batch.after.seq);
      this.#deps.onCounted(this.room);
    }
  }

  /** Brings the tenant's board of rooms up to date. */
  tellTotals(): Promise<void> {
    return this.#windows.tellTotals();
  }

  /** Writes what is counted where Redis cannot lose it. */
  async saveCheckpoint(): Promise<void> {
    if (this.#isDeleted) return this.#remove();
    if (this.#isSaving || this.#state.kind !== "counting") return;
    const { projection } = this.#state;
    this.#isSaving = true;
    try {
      for (const coverage of Object.values(this.#uncovered)) coverage.beginCheckpoint();
      const through = projection.applied;
      await this.apply();
      await this.tellTotals(); // What a checkpoint covers is not read again.
      const dump = await this.#ports.boards.dump(this.room, this.#windows.all);
      if (dump === undefined || isAhead(through, dump.applied)) {
        throw new Trouble("stale", `the boards of room ${this.room} are counted less far than they were: did Redis lose data?`);
      }
      const endTimer = this.#deps.metrics.checkpoints.startTimer();
      const write = await this.#ports.checkpoints.write(this.room, dump, this.#covered.revision);
      endTimer({ outcome: write.kind });
      if (write.kind === "superseded") throw new Trouble("stale", `another leaderboard wrote the checkpoint of room ${this.room}`);
      this.#covered = { seq: dump.applied.seq, activity: dump.applied.activity, revision: write.revision };
      for (const coverage of Object.values(this.#uncovered)) coverage.endCheckpoint();
    } finally {
      this.#isSaving = false;
    }
  }

  /** Once nothing of it is on its way. */
  async #remove(): Promise<void> {
    if (this.#state.kind !== "deleted" || this.#isSaving || !this.#state.isLookedUp) return;
    const { endsAt } = this.#state;
    if (endsAt === undefined) return;
    this.#isSaving = true;
    try {
      await this.#applying;
      await removeBoards(this.room, this.#partition, this.#ports, this.#deps.clock.wallNow());
      if (this.#state.endsAt === endsAt) this.#state.endsAt = undefined;
      this.#deps.metrics.removals.inc();
    } finally {
      this.#isSaving = false;
    }
  }
}

function appliedOf(stored: Awaited<ReturnType<Boards["load"]>>): Mark {
  return stored === undefined || stored === "deleted" ? NOTHING_APPLIED : stored.applied;
}
