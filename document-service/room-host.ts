/**
 * Keeps one room: looks up its checkpoint, hands it its records, merges, saves and trims. Any step may fail
 * or the process may die after it, and the next try, here or elsewhere, begins with a whole document:
 *
 *   write snapshot, read it back, compare -> write checkpoint -> remove old snapshot -> trim the log
 *
 * The checkpoint's entry is the commit: a snapshot before it is nobody's, a record after it is in the log.
 */

import type { StoredRecord } from "../shared/bus/stored-record.ts";
import type { Checkpoint } from "../shared/bus/checkpoint.ts";
import type { Clock } from "../shared/clock.ts";
import type { Millis, Position, RoomKey } from "../shared/ids.ts";
import type { Log } from "../shared/log.ts";
import { CheckpointHost } from "./checkpoint-host.ts";
import { isSnapshotDue, type SnapshotPolicy, TrimPlan } from "./compaction.ts";
import { Document, type Received } from "./document.ts";
import { EMPTY_STATE } from "./merge.ts";
import { MergeHost } from "./merge-host.ts";
import type { DocumentServiceMetrics } from "./metrics.ts";
import { pause, unlessMistake } from "../shared/pause.ts";
import type { Checkpoints, Digest, EditLog, Merging, Snapshots } from "./ports.ts";

export type RoomPorts = { readonly log: EditLog; readonly checkpoints: Checkpoints; readonly snapshots: Snapshots; readonly merging: Merging; readonly digest: Digest };
export type RoomOptions = SnapshotPolicy & {
  readonly replayWindowMs: number;
  readonly boardsHoldMsMax: number;
  readonly checkpointClientsMax: number;
  readonly checkpointClientMsMax: number;
  readonly checkpointClientsBytesMax: number;
  readonly mergeEditsMax: number;
  readonly mergeBytesMax: number;
  readonly mergeMsMax: number;
  readonly stalledBytesMax: number;
  readonly documentIdleMsMax: number;
};
/** `newName`: unique among all snapshots ever written. `boardsFloor`: the boards need no record up to it. */
export type RoomDeps = { readonly clock: Clock; readonly log: Log; readonly metrics: DocumentServiceMetrics; readonly newName: () => string; readonly boardsFloor: () => number };

export type Served =
  | { kind: "snapshot"; state: Uint8Array; position: Position }
  /** The room never had an edit, as far as is known here. */
  | { kind: "no-document" }
  /** None of its edits is a Yjs update. */
  | { kind: "not-a-document" }
  /** Not now: ask again. */
  | { kind: "loading" };

const RETRY_MS = 500;

export class RoomHost {
  readonly room: RoomKey;
  readonly #ports: RoomPorts;
  readonly #options: RoomOptions;
  readonly #deps: RoomDeps;
  readonly #closed = new AbortController();
  readonly #trimPlan: TrimPlan;
  readonly #checkpoints: CheckpointHost;
  readonly #merges: MergeHost;
  /** Resolves once its checkpoint is known. */
  readonly opened: Promise<Document>;
  /** Undefined until its checkpoint is known. */
  #document: Document | undefined;
  /** Records that wait while a checkpoint is looked up; undefined: none is. */
  #waiting: StoredRecord[] | undefined = [];
  #busy = false;
  #uncoveredSince: Millis | undefined;
  /** The newest checkpoint, and since when there is one: its date is looked at once. */
  #covered: { readonly checkpoint: Checkpoint; readonly since: Millis } | undefined;
  #lastUsed: Millis;
  #lastSaved: Millis | undefined;
  #notBefore = 0 as Millis;
  /** It stalls, and what came of it is too much to be kept: nothing more is taken of it in this run. */
  #isSetAside = false;

  constructor(room: RoomKey, ports: RoomPorts, options: RoomOptions, deps: RoomDeps) {
    this.room = room;
    this.#ports = ports;
    this.#options = options;
    this.#deps = deps;
    this.#lastUsed = deps.clock.now();
    this.#trimPlan = new TrimPlan(options);
    this.#checkpoints = new CheckpointHost(room, ports, deps.log);
    this.#merges = new MergeHost(room, ports, this.#checkpoints, options, deps);
    this.opened = this.#open();
  }

  get isOpening(): boolean {
    return this.#waiting !== undefined;
  }

  get heldBytes(): number {
    const waiting = this.#waiting?.reduce((bytes, stored) => bytes + stored.bytes.byteLength, 0) ?? 0;
    return waiting + (this.#document?.heldBytes ?? 0);
  }

  /** The first stream sequence of the room that may not be in a snapshot yet. */
  get uncoveredFrom(): number | undefined {
    return this.#document?.uncovered?.fromStreamSeq ?? this.#waiting?.[0]?.streamSeq;
  }

  /** When the first edit that is not in a snapshot was read. */
  get uncoveredSince(): Millis | undefined {
    return this.#uncoveredSince;
  }

  /** Its edits cannot be merged in time. */
  get isStalled(): boolean {
    return this.#merges.isStalled;
  }

  receiveRecord(stored: StoredRecord): void {
    if (this.#isSetAside) return;
    if (this.#waiting !== undefined || this.#document === undefined) this.#waiting?.push(stored);
    else if (this.#take(this.#document, stored, this.#document.receiveRecord(stored)) === "gap") void this.#lookBehindGap(this.#document, stored);
  }

  /** The document with all records received by now. Asked for many times at once it is merged once, or twice where a merge had begun before. */
  async serve(): Promise<Served> {
    const document = await this.opened;
    this.#lastUsed = this.#deps.clock.now();
    if (document.applied.seq === 0) return { kind: "no-document" };
    const asked = document.applied.seq;
    let merged = await this.#merges.merge(document);
    if (merged !== undefined && merged.applied.seq < asked) merged = await this.#merges.merge(document);
    if (merged === undefined || merged.applied.seq === 0) return { kind: "loading" };
    const { state, applied, leftOut } = merged;
    if (leftOut > 0 && state.byteLength <= EMPTY_STATE.byteLength) return { kind: "not-a-document" };
    return { kind: "snapshot", state, position: { epoch: applied.epoch, seq: applied.seq } };
  }

  isSaveDue(now: Millis, { pressed }: { pressed: boolean }): boolean {
    const uncovered = this.#document?.uncovered;
    if (uncovered === undefined || this.isOpening || this.#busy || this.#isSetAside || now < this.#notBefore || this.#merges.isPausing(now)) return false;
    return pressed || isSnapshotDue({ ...uncovered, since: this.#uncoveredSince ?? now }, this.#lastSaved, this.#options, now);
  }

  isTrimDue(now: Millis): boolean {
    return !this.isOpening && !this.#busy && now >= this.#notBefore && this.#trimBefore(now) !== undefined;
  }

  /** Keeps what waits small between two saves. */
  mergeIfDue(): void {
    const document = this.#document;
    if (document === undefined || this.#merges.isRunning || this.#deps.clock.now() < this.#notBefore) return;
    const { edits, bytes } = document.pending;
    if (this.isStalled && bytes >= this.#options.stalledBytesMax) return this.#setAside(document);
    if (edits >= this.#options.mergeEditsMax || bytes >= this.#options.mergeBytesMax) {
      this.#merges.merge(document).catch((cause: unknown) => this.#receiveFailure("its edits were not merged", cause));
    }
  }

  /** Lets go of the memory that a snapshot can give back. */
  releaseIfIdle(now: Millis, { pressed }: { pressed: boolean }): void {
    if (!this.#merges.isRunning && (pressed || now - this.#lastUsed > this.#options.documentIdleMsMax)) this.#document?.releaseState();
  }

  /** Whether nothing would be forgotten with it but what the checkpoint says, and nothing is left to do for it. */
  canRetire(now: Millis, { pressed }: { pressed: boolean }): boolean {
    const document = this.#document;
    if (document === undefined || this.isOpening || this.#busy || this.#merges.isRunning || document.uncovered !== undefined) return false;
    if (pressed) return true;
    const isTrimmed = document.checkpoint === undefined || document.leftOut > 0 || this.#trimPlan.trimmedBefore >= document.checkpoint.streamSeq;
    return isTrimmed && now - this.#lastUsed > this.#options.documentIdleMsMax;
  }

  /** What happens from now on is forgotten. */
  close(): void {
    this.#closed.abort();
  }

  async save(): Promise<void> {
    const started = this.#deps.clock.now();
    const took = (outcome: string) => this.#deps.metrics.saves.observe({ outcome }, (this.#deps.clock.now() - started) / 1000);
    this.#busy = true;
    try {
      const document = await this.opened;
      const outcome = await this.#save(document);
      took(outcome);
      this.#lastSaved = started;
      this.#noteUncovered(document, outcome === "saved" ? started : this.#uncoveredSince);
      if (outcome === "failed") this.#notBefore = (started + RETRY_MS) as Millis;
    } catch (cause) {
      took("failed");
      this.#receiveFailure("its snapshot was not saved", cause);
    } finally {
      this.#busy = false;
    }
  }

  async trim(): Promise<void> {
    const before = this.#trimBefore(this.#deps.clock.now());
    if (before === undefined) return;
    this.#busy = true;
    try {
      await this.#ports.log.trim(this.room, before);
      this.#trimPlan.receiveTrimmed(before);
      this.#deps.metrics.trims.inc({ outcome: "trimmed" });
    } catch (cause) {
      this.#deps.metrics.trims.inc({ outcome: "failed" });
      this.#receiveFailure("its log was not trimmed", cause);
    } finally {
      this.#busy = false;
    }
  }

  /**
   * Removes snapshots that a crash left behind. Whoever wrote them may only be slow and about to name one:
   * the checkpoint is written again first, so that it finds another revision than it knows and gives up.
   */
  async removeOrphans(names: readonly string[]): Promise<void> {
    const document = await this.opened;
    const checkpoint = document.checkpoint;
    if (checkpoint === undefined || this.isOpening || this.#busy) return;
    const orphans = names.filter((name) => name !== checkpoint.snapshot.object);
    if (orphans.length === 0) return;
    this.#busy = true;
    try {
      if (!(await this.#checkpoints.replace(document, { ...checkpoint, time: this.#deps.clock.wallNow() }))) return;
      for (const name of orphans) await this.#checkpoints.removeSnapshot(name);
    } catch (cause) {
      this.#receiveFailure("what a crash left behind was not removed", cause);
    } finally {
      this.#busy = false;
    }
  }

  async #open(): Promise<Document> {
    const checkpoint = await this.#untilDone("its checkpoint could not be read", () => this.#checkpoints.read());
    const document = new Document(checkpoint, { silenceMsMax: this.#options.checkpointClientMsMax, clientsMax: this.#options.checkpointClientsMax, bytesMax: this.#options.checkpointClientsBytesMax });
    this.#document = document;
    this.#takeWaiting();
    return document;
  }

  /** Another service may have trimmed what is missing, behind a checkpoint newer than the one we began from. */
  async #lookBehindGap(document: Document, stored: StoredRecord): Promise<void> {
    this.#waiting = [stored];
    await this.#untilDone("its checkpoint could not be read", () => this.#checkpoints.catchUp(document));
    this.#noteUncovered(document, this.#uncoveredSince);
    const [first, ...rest] = this.#waiting;
    if (first !== undefined && this.#take(document, first, document.receiveRecord(first)) === "gap") this.#takeAcrossGap(document, first);
    this.#waiting = rest;
    this.#takeWaiting();
  }

  #takeAcrossGap(document: Document, stored: StoredRecord): void {
    this.#deps.metrics.gaps.inc();
    this.#deps.log.error({ room: this.room, streamSeq: stored.streamSeq, after: document.applied }, "the log of a room has a hole that no checkpoint explains; its log is kept whole from here on");
    this.#take(document, stored, document.receiveAcrossGap(stored));
  }

  #takeWaiting(): void {
    const waiting = this.#waiting ?? [];
    this.#waiting = undefined;
    for (const stored of waiting) this.receiveRecord(stored);
  }

  #take(document: Document, stored: StoredRecord, received: Received): Received["kind"] {
    if (received.kind === "repeat" || received.kind === "gap") return received.kind;
    if (received.kind === "unreadable") {
      this.#deps.metrics.unreadable.inc();
      this.#deps.log.error({ room: this.room, streamSeq: stored.streamSeq }, "a record of the log does not decode: was it written by a newer version? The room's log is kept whole from here on");
    }
    if (received.kind === "applied" && received.forgotten > 0) this.#deps.metrics.forgottenWriters.inc(received.forgotten);
    this.#lastUsed = this.#deps.clock.now();
    this.#noteUncovered(document, this.#uncoveredSince ?? this.#lastUsed);
    this.#trimPlan.receiveRecord({ streamSeq: stored.streamSeq, since: this.#lastUsed }, stored.time);
    if (document.pending.edits >= this.#options.mergeEditsMax) this.mergeIfDue();
    return received.kind;
  }

  /** What is not in a snapshot holds the floor down, so the next run reads all of it again. */
  #setAside(document: Document): void {
    this.#isSetAside = true;
    this.#deps.log.error({ room: this.room, after: document.merged?.applied, bytes: document.pending.bytes }, "a stalled room's edits are too many to be kept; they are in the log, which is not trimmed, and are read again when the service starts anew");
    document.dropPending();
  }

  #noteUncovered(document: Document, since: Millis | undefined): void {
    this.#uncoveredSince = document.uncovered === undefined ? undefined : since;
  }

  async #save(document: Document): Promise<"saved" | "superseded" | "failed"> {
    const { snapshots, digest } = this.#ports;
    const merged = await this.#merges.merge(document);
    if (merged === undefined || this.isStalled) return "failed";
    const { state, applied, clients, leftOut } = merged;
    const sha256 = digest(state);
    const object = `${this.room}/${applied.epoch}-${applied.seq}-${this.#deps.newName()}`;
    await snapshots.write(object, state);
    const written = await snapshots.read(object);
    if (written === undefined || digest(written) !== sha256) {
      this.#deps.log.error({ room: this.room, object }, "a snapshot reads back other than it was written; it is not used");
      return "failed";
    }
    const time = this.#deps.clock.wallNow();
    const checkpoint: Checkpoint = { ...applied, time, clients: [...clients], ...(leftOut > 0 ? { leftOut } : {}), snapshot: { object, bytes: state.byteLength, sha256 } };
    if (await this.#checkpoints.replace(document, checkpoint)) return "saved";
    await this.#checkpoints.removeSnapshot(object);
    return "superseded";
  }

  /** For what nothing can go on without. */
  async #untilDone<Value>(otherwise: string, ask: () => Promise<Value>): Promise<Value> {
    for (;;) {
      try {
        return await ask();
      } catch (cause) {
        this.#receiveFailure(otherwise, cause);
        await pause(this.#deps.clock, RETRY_MS, this.#closed.signal);
        if (this.#closed.signal.aborted) return new Promise(() => {}); // Nobody waits any more.
      }
    }
  }

  #trimBefore(now: Millis): number | undefined {
    const checkpoint = this.#document?.checkpoint;
    if (checkpoint === undefined || (this.#document?.leftOut ?? 0) > 0) return undefined;
    if (this.#covered?.checkpoint !== checkpoint) this.#covered = { checkpoint, since: (now - Math.max(0, this.#deps.clock.wallNow() - checkpoint.time)) as Millis };
    return this.#trimPlan.before({ streamSeq: checkpoint.streamSeq, since: this.#covered.since }, this.#deps.boardsFloor(), now);
  }

  /** The world failed; what was to be done is due again after a moment. */
  #receiveFailure(what: string, cause: unknown): void {
    unlessMistake(cause);
    this.#notBefore = (this.#deps.clock.now() + RETRY_MS) as Millis;
    if (!this.#closed.signal.aborted) this.#deps.log.warn({ room: this.room, cause }, `a room waits for its storage: ${what}`);
  }
}
