/**
 * Keeps one room: hands it its records, merges, saves and trims. Any step may fail or the process may die after
 * it, and the next try, here or elsewhere, begins with a whole document:
 *
 *   write snapshot, read it back, compare -> write checkpoint -> remove old snapshot -> put what goes into history -> trim the log
 *
 * The checkpoint's entry is the commit: a snapshot before it is nobody's, a record after it is in the log.
 */

import type { DeletedCheckpoint } from "../../shared/bus/checkpoint.ts";
import { isDeletedRecord } from "../../shared/bus/record.ts";
import type { StoredRecord } from "../../shared/bus/stored-record.ts";
import type { Clock } from "../../shared/clock.ts";
import type { Millis, RoomKey, Seq } from "../../shared/ids.ts";
import type { Log } from "../../shared/log.ts";
import { CheckpointHost } from "./checkpoint-host.ts";
import type { SnapshotPolicy, TrimOptions } from "./compaction.ts";
import type { HistoryPolicy } from "../past/history.ts";
import { HistoryHost } from "../past/history-host.ts";
import type { Document } from "./document.ts";
import { IntakeHost, type IntakeOptions } from "./intake-host.ts";
import { MergeHost } from "./merge-host.ts";
import type { DocumentServiceMetrics } from "../metrics.ts";
import { PastHost, type PastOptions, type PastPorts } from "../past/past-host.ts";
import type { Checkpoints, Deletions, Merging, News, ObjectStore } from "../ports.ts";
import { OrphansHost } from "./orphans-host.ts";
import type { RoomRange } from "./read-ahead-host.ts";
import { SaveHost } from "./save-host.ts";
import { type Freshness, type Served, ServeHost, type ServeOptions } from "./serve-host.ts";
import { TrimHost } from "./trim-host.ts";
import { WipeHost } from "./wipe-host.ts";
import { WorkHost } from "./work-host.ts";

export type RoomPorts = PastPorts & {
  readonly checkpoints: Checkpoints;
  readonly snapshots: ObjectStore;
  readonly merging: Merging;
  readonly deletions: Deletions;
};
export type RoomOptions = SnapshotPolicy &
  TrimOptions &
  IntakeOptions &
  HistoryPolicy &
  PastOptions &
  ServeOptions & {
    readonly mergeEditsMax: number;
    readonly mergeBytesMax: number;
    readonly mergeMsMax: number;
    readonly stalledBytesMax: number;
    readonly documentIdleMsMax: number;
  };
/** `newName`: unique among all snapshots ever written. `boardsFloor`: the boards need no record up to it. */
export type RoomDeps = {
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: DocumentServiceMetrics;
  readonly newName: () => string;
  readonly boardsFloor: () => number;
  readonly news: News;
};

/** A room in which nothing was ever written: whoever comes next costs a look for its checkpoint, and no snapshot is loaded again. */
const BLANK_IDLE_MS_MAX = 10_000;

export class RoomHost {
  readonly room: RoomKey;
  readonly #options: RoomOptions;
  readonly #deps: RoomDeps;
  readonly #intake: IntakeHost;
  readonly #merges: MergeHost;
  readonly #saves: SaveHost;
  readonly #trims: TrimHost;
  readonly #history: HistoryHost;
  readonly #wipe: WipeHost;
  readonly past: PastHost;
  readonly orphans: OrphansHost;
  readonly #work: WorkHost;
  readonly #serves: ServeHost;
  /** Webhooks have been told of its edits up to here. */
  #toldSeq: Seq | undefined;

  constructor(room: RoomKey, ports: RoomPorts, options: RoomOptions, deps: RoomDeps) {
    this.room = room;
    this.#options = options;
    this.#deps = deps;
    this.#work = new WorkHost(room, () => this.#intake, deps);
    const checkpoints = new CheckpointHost(room, ports, deps.log, (entry) => this.#receiveDeletedEntry(entry));
    this.#merges = new MergeHost(room, ports, checkpoints, options, deps);
    this.#saves = new SaveHost(room, ports, { checkpoints, merges: this.#merges }, options, deps);
    this.#history = new HistoryHost(room, ports, options, deps);
    this.#trims = new TrimHost(room, { log: ports.log, history: this.#history }, options, deps);
    this.#wipe = new WipeHost(room, ports, { checkpoints, history: this.#history }, deps);
    this.past = new PastHost(room, ports, options, { history: this.#history, present: () => this.#serves.present() });
    this.#intake = new IntakeHost(room, checkpoints, options, {
      ...deps,
      onTaken: (document, stored) => {
        const now = deps.clock.now();
        this.#serves.noteUsed(now);
        this.#saves.noteUncovered(document, now);
        this.#trims.receiveRecord(stored, now);
        this.#tellNews(document);
        if (document.pending.edits >= options.mergeEditsMax) this.mergeIfDue();
      },
      onCaughtUp: (document) => this.#saves.noteUncovered(document, deps.clock.now()),
      onFailure: (what, cause) => this.#work.receiveFailure(what, cause),
    });
    this.#serves = new ServeHost({ intake: this.#intake, merges: this.#merges, wipe: this.#wipe }, options, deps.clock);
    this.orphans = new OrphansHost({ intake: this.#intake, work: this.#work, wipe: this.#wipe, checkpoints, history: this.#history }, deps);
  }

  /** Resolves once its checkpoint is known: true; or once it is closed, if that is before: false. */
  get opened(): Promise<boolean> {
    return this.#intake.opened.then((document) => document !== undefined);
  }

  /** Resolves once its checkpoint is known, or known not to decode. */
  get lookedUp(): Promise<unknown> {
    return this.#intake.lookedUp;
  }

  get heldBytes(): number {
    return this.#intake.heldBytes;
  }

  /** The first stream sequence of the room that may not be in a snapshot yet. */
  get uncoveredFrom(): number | undefined {
    return this.isDeleted ? this.#wipe.uncoveredFrom : this.#intake.uncoveredFrom;
  }

  /** When the first edit that is not in a snapshot was read. */
  get uncoveredSince(): Millis | undefined {
    return this.#saves.uncoveredSince;
  }

  /** Its checkpoint does not decode. Until somebody repairs that, the room cannot be forgotten. */
  get isUndecodable(): boolean {
    return this.#intake.isUndecodable;
  }

  /** Its edits cannot be merged: not in time, or not into a snapshot that is lost. */
  get isStalled(): boolean {
    return this.#merges.isStalled;
  }

  /** False: what is in no snapshot stays so, until somebody repairs its checkpoint or removes what cannot be merged. */
  get canBeCovered(): boolean {
    return !this.isUndecodable && (this.isDeleted || !(this.isStalled || this.#intake.isSetAside));
  }

  receiveRecord(stored: StoredRecord): void {
    if (isDeletedRecord(stored.bytes)) this.receiveDeleted(stored.streamSeq);
    else this.#intake.receiveRecord(stored);
  }

  /** It has a checkpoint, or edits were read of it. */
  get isKnown(): boolean {
    const { document } = this.#intake;
    return document !== undefined && (document.checkpoint !== undefined || document.applied.streamSeq > 0);
  }

  get isDeleted(): boolean {
    return this.#wipe.isDeleted;
  }

  /** Something of it may be left, though it is deleted. */
  get isUnwiped(): boolean {
    return this.#wipe.isDue;
  }

  /** `streamSeq`: of the record that says so. */
  receiveDeleted(streamSeq: number): void {
    this.#wipe.receiveRecord(streamSeq);
    this.#intake.drop();
  }

  #receiveDeletedEntry(entry: DeletedCheckpoint): void {
    this.#wipe.receiveEntry(entry);
    this.#intake.drop();
  }

  /** Resolves once nothing of it is left in the log and the stores. */
  untilWiped(): Promise<void> {
    return this.#wipe.untilWiped();
  }

  isWipeDue(now: Millis): boolean {
    return this.#wipe.isDue && this.#intake.document !== undefined && !this.#work.isBusy && !this.#work.isPausing(now);
  }

  wipe(): Promise<void> {
    return this.#work.run("what is left of it was not removed", async (document) => {
      document.clear();
      await this.#saves.removeUnnamed(document);
      if (!(await this.#wipe.wipe())) this.#work.pause();
    });
  }

  serve(freshness: Freshness, minSeq = 0): Promise<Served> {
    return this.#serves.serve(freshness, minSeq);
  }

  #tellNews({ applied, checkpoint }: Document): void {
    this.#deps.news.receiveEdits(this.room, applied, applied.seq - (this.#toldSeq ?? checkpoint?.seq ?? 0));
    this.#toldSeq = applied.seq;
  }

  isSaveDue(now: Millis, pressure: { pressed: boolean }): boolean {
    const { document, isOpening, isSetAside } = this.#intake;
    if (document === undefined || isOpening || isSetAside || this.isDeleted || this.#work.isBusy || this.#work.isPausing(now)) return false;
    return this.#saves.isDue(document, now, pressure);
  }

  isTrimDue(now: Millis): boolean {
    const { document, isOpening } = this.#intake;
    return (
      document !== undefined &&
      !isOpening &&
      !this.isDeleted &&
      !this.#work.isBusy &&
      !this.#work.isPausing(now) &&
      this.#trims.isDue(document, now)
    );
  }

  /** Keeps what waits small between two saves. */
  mergeIfDue(): void {
    const { document } = this.#intake;
    if (document === undefined || this.#merges.isRunning || this.#work.isPausing(this.#deps.clock.now())) return;
    const { edits, bytes } = document.pending;
    if (this.isStalled && bytes >= this.#options.stalledBytesMax) return this.#intake.setAside(document);
    if (edits >= this.#options.mergeEditsMax || bytes >= this.#options.mergeBytesMax) {
      this.#merges.merge(document).catch((cause: unknown) => this.#work.receiveFailure("its edits were not merged", cause));
    }
  }

  /** Lets go of the memory that a snapshot, or the log, can give back. */
  releaseIfIdle(now: Millis, { pressed }: { pressed: boolean }): void {
    if (pressed) this.#intake.letGo();
    if (!this.#merges.isRunning && (pressed || now - this.#serves.lastUsed > this.#options.documentIdleMsMax)) {
      this.#intake.document?.releaseState();
    }
  }

  /** Whether nothing would be forgotten with it but what the checkpoint says, and nothing is left to do for it. */
  canRetire(now: Millis, { pressed }: { pressed: boolean }): boolean {
    const { document, isOpening } = this.#intake;
    if (document === undefined || isOpening || this.#work.isBusy || this.#merges.isRunning) return false;
    if (this.isDeleted) return !this.#wipe.isDue;
    if (document.uncovered !== undefined) return false;
    const idleMsMax = document.isBlank ? Math.min(BLANK_IDLE_MS_MAX, this.#options.documentIdleMsMax) : this.#options.documentIdleMsMax;
    return pressed || (this.#trims.isDone(document) && now - this.#serves.lastUsed > idleMsMax);
  }

  /** It let go of records, and can take them by now: whoever takes its place is to have the log from here on. */
  get readAgainFrom(): number | undefined {
    return this.isDeleted || this.isStalled || this.#work.isBusy || this.#merges.isRunning ? undefined : this.#intake.readAgainFrom;
  }

  /** What happens from now on is forgotten. */
  close(): void {
    this.#intake.close();
  }

  save(): Promise<void> {
    return this.#work.run("its snapshot was not saved", async (document) => {
      const outcome = await this.#saves.save(document);
      if (outcome === "failed") this.#work.pause();
      if (outcome === "saved" && !this.isDeleted) await this.#addVersionIfDue(document);
    });
  }

  /** What a trim would read of the log; undefined: nothing, or that cannot be said now. */
  async trimRange(): Promise<RoomRange | undefined> {
    const { document } = this.#intake;
    try {
      return document && (await this.#trims.range(document));
    } catch (cause) {
      this.#work.receiveFailure("it is not known how much of its log to read", cause);
      return undefined;
    }
  }

  /** `before`: one of its records, as far as which it is to be trimmed at the most. Whether anything was. */
  async trim(before?: number): Promise<boolean> {
    let isTrimmed = false;
    await this.#work.run("its log was not trimmed", async (document) => {
      isTrimmed = await this.#trims.trim(document, before);
    });
    return isTrimmed;
  }

  async #addVersionIfDue({ applied }: Document): Promise<void> {
    const present = (await this.#history.isVersionDue(applied.seq)) ? await this.#serves.present() : undefined;
    if (present !== undefined) await this.#history.addVersion(present);
  }
}
