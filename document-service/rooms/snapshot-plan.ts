/**
 * Decides when one room is merged, saved, trimmed and removed from memory. It holds only positions, counts and times.
 * Other files hold the document and the stores.
 */

import { type Checkpoint, hasContent } from "../../shared/bus/checkpoint.ts";
import type { StoredRecord } from "../../shared/bus/record.ts";
import { hash32 } from "../../shared/collections/hash.ts";
import type { Millis, RoomKey, UnixMillis } from "../../shared/ids.ts";
import type { RoomBytes } from "../storage/stored-bytes.ts";
import type { Document, Uncovered } from "./document.ts";
import type { RoomRange } from "./read-ahead.ts";
import { type TrimOptions, TrimPlan } from "./trim-plan.ts";

type SnapshotPolicy = {
  readonly snapshotEditsMax: number;
  readonly snapshotBytesMax: number;
  readonly snapshotAgeMsMax: number;
  /** Minimum time between two snapshots of a busy room, even if other limits are reached. */
  readonly snapshotIntervalMsMin: number;
};
export type SnapshotPlanOptions = SnapshotPolicy &
  TrimOptions & {
    readonly mergeEditsMax: number;
    readonly mergeBytesMax: number;
    readonly stalledBytesMax: number;
    readonly documentIdleMsMax: number;
    readonly historyMsMax: number;
    /** 0: the log of an opaque room is not trimmed. */
    readonly opaqueLogMsMax: number;
  };

/** A room without any edit leaves memory early: to open it again costs one checkpoint read and no snapshot. */
const BLANK_IDLE_MS_MAX = 10_000;

/**
 * `since`: the time at which the first uncovered edit was read. `lastSaved` undefined: the first save of the room in this
 * process is due after half to all of the maximum age, by the room's name. So rooms that begin together are not all
 * saved in the same second, then or later.
 */
export function isSnapshotDue(
  room: RoomKey,
  uncovered: Uncovered & { readonly since: Millis },
  lastSaved: Millis | undefined,
  policy: SnapshotPolicy,
  now: Millis,
): boolean {
  if (lastSaved !== undefined && now - lastSaved < policy.snapshotIntervalMsMin) return false;
  const ageShare = lastSaved === undefined ? 0.5 + hash32(room) / 2 ** 33 : 1;
  return (
    uncovered.edits >= policy.snapshotEditsMax ||
    uncovered.bytes >= policy.snapshotBytesMax ||
    now - uncovered.since >= policy.snapshotAgeMsMax * ageShare
  );
}

export class SnapshotPlan {
  readonly #room: RoomKey;
  readonly #options: SnapshotPlanOptions;
  readonly #trims: TrimPlan;
  #uncoveredSince: Millis | undefined;
  #lastSaved: Millis | undefined;
  #lastUsed: Millis;
  /** The first record that this service received. Earlier records are left from a former run. */
  #firstStreamSeq: number | undefined;
  /** The newest checkpoint, the time since which it is known, and when it was written by its date, which is read once. */
  #covered: { readonly checkpoint: Checkpoint; readonly since: Millis; readonly writtenAt: Millis } | undefined;

  constructor(room: RoomKey, options: SnapshotPlanOptions, now: Millis) {
    this.#room = room;
    this.#options = options;
    this.#trims = new TrimPlan(options);
    this.#lastUsed = now;
  }

  /** Time at which the first edit that no snapshot covers was read. */
  get uncoveredSince(): Millis | undefined {
    return this.#uncoveredSince;
  }

  /** Call for every record that the document takes, in order. */
  receiveTaken({ streamSeq, time, bytes }: StoredRecord, document: Document, now: Millis): void {
    this.#lastUsed = now;
    this.#firstStreamSeq ??= streamSeq;
    this.#trims.receiveRecord({ streamSeq, since: now }, time, bytes.byteLength);
    this.#noteUncovered(document, now);
  }

  receiveUse(now: Millis): void {
    this.#lastUsed = now;
  }

  /** Call after each change of the document's checkpoint. */
  receiveCheckpoint(document: Document, now: Millis, wall: UnixMillis): void {
    this.#noteUncovered(document, now);
    const { checkpoint } = document;
    if (checkpoint === undefined || checkpoint === this.#covered?.checkpoint) return;
    if (this.#covered === undefined && (this.#firstStreamSeq ?? Infinity) > checkpoint.streamSeq)
      this.#trims.receiveLeft(checkpoint.logBytes ?? 0, checkpoint.streamSeq);
    this.#covered = { checkpoint, since: now, writtenAt: (now - Math.max(0, wall - checkpoint.time)) as Millis };
  }

  /** `startedAt`: the start of the save. Edits that arrived during a successful save count from this time. */
  receiveSaveEnd(document: Document, startedAt: Millis, isSaved: boolean): void {
    this.#lastSaved = startedAt;
    if (isSaved) this.#uncoveredSince = undefined;
    this.#noteUncovered(document, startedAt);
  }

  receiveTrimmed(before: number): void {
    this.#trims.receiveTrimmed(before);
  }

  /** "set-aside": the room cannot be merged, and its pending edits are too many to keep in memory. */
  nextMergeStep({ pending: { edits, bytes } }: Document, isStalled: boolean): "merge" | "set-aside" | "wait" {
    if (isStalled && bytes >= this.#options.stalledBytesMax) return "set-aside";
    return edits >= this.#options.mergeEditsMax || bytes >= this.#options.mergeBytesMax ? "merge" : "wait";
  }

  /** Number of edits at which a merge starts at once, not at the next tick. */
  hasManyPending({ pending }: Document): boolean {
    return pending.edits >= this.#options.mergeEditsMax;
  }

  /** `isPressed`: the partition needs memory. */
  isSaveDue({ uncovered }: Document, isPressed: boolean, now: Millis): boolean {
    if (uncovered === undefined) return false;
    return (
      isPressed || isSnapshotDue(this.#room, { ...uncovered, since: this.#uncoveredSince ?? now }, this.#lastSaved, this.#options, now)
    );
  }

  /** Records before this stream sequence may be trimmed; undefined: none. */
  trimBefore(document: Document, boardsFloor: number, now: Millis): number | undefined {
    const { checkpoint } = document;
    if (checkpoint === undefined || !this.#isKept(document, checkpoint) || this.#covered?.checkpoint !== checkpoint) return undefined;
    const { since, writtenAt } = this.#covered;
    return this.#trims.before(
      { streamSeq: checkpoint.streamSeq, since, writtenAt },
      boardsFloor,
      now,
      document.isOpaque ? this.#options.opaqueLogMsMax : 0,
    );
  }

  /** Bytes of records that are not trimmed, up to this stream sequence; without an argument: of all. */
  logBytes(through?: number): number {
    return this.#trims.bytesThrough(through);
  }

  /** The range of the log that a trim up to `through` reads. Undefined: none. `archivedThrough`: the history has all records up to it. */
  trimRange(through: number, archivedThrough: number | undefined): RoomRange | undefined {
    if (archivedThrough === undefined || archivedThrough >= through) return undefined;
    const from = Math.max(archivedThrough, Math.min(through, (this.#firstStreamSeq ?? 0) - 1));
    return { room: this.#room, after: archivedThrough, from, through, records: this.#trims.recordsThrough(through) };
  }

  isIdle(now: Millis): boolean {
    return now - this.#lastUsed > this.#options.documentIdleMsMax;
  }

  /** Whether the room can leave memory: the checkpoint and the log have all its data, and no work is left. */
  canRetire(document: Document, isPressed: boolean, now: Millis): boolean {
    if (document.uncovered !== undefined) return false;
    if (isPressed) return true;
    const { documentIdleMsMax } = this.#options;
    const idleMsMax = document.isBlank ? Math.min(BLANK_IDLE_MS_MAX, documentIdleMsMax) : documentIdleMsMax;
    return this.#isTrimDone(document) && now - this.#lastUsed > idleMsMax;
  }

  /** Nothing can be trimmed before there is another snapshot. A sweep trims an opaque room, because that may take days. */
  #isTrimDone(document: Document): boolean {
    const { checkpoint } = document;
    return (
      checkpoint === undefined ||
      document.isOpaque ||
      !this.#isKept(document, checkpoint) ||
      this.#trims.trimmedBefore >= checkpoint.streamSeq
    );
  }

  /** Whether the snapshot and the history together have every edit up to the checkpoint. */
  #isKept({ leftOut, lacksOnlyRefused, isOpaque }: Document, checkpoint: Checkpoint): boolean {
    const { historyMsMax, opaqueLogMsMax } = this.#options;
    if (leftOut === 0) return true;
    return lacksOnlyRefused && historyMsMax > 0 && (isOpaque ? opaqueLogMsMax > 0 : hasContent(checkpoint));
  }

  #noteUncovered({ uncovered }: Document, now: Millis): void {
    this.#uncoveredSince = uncovered === undefined ? undefined : (this.#uncoveredSince ?? now);
  }
}

export type StoredParts = Pick<RoomBytes, "snapshots" | "log">;

/** Undefined: the room is not opened yet. */
export function storedParts(
  document: Document | undefined,
  plan: Pick<SnapshotPlan, "logBytes">,
  isDeleted: boolean,
): StoredParts | undefined {
  if (isDeleted) return { snapshots: 0, log: 0 };
  return document && { snapshots: document.checkpoint?.snapshot.bytes ?? 0, log: plan.logBytes() };
}
