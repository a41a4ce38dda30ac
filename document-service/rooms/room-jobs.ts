/**
 * The work on one room, one job at a time: save (and add a version to the history), trim, wipe, remove orphans. After
 * the failure of a store, no job starts for a short time.
 */

import { assert, assertNever } from "../../shared/assert.ts";
import { type Checkpoint, isDeleted, isLastCovered } from "../../shared/bus/checkpoint.ts";
import type { StoredRecord } from "../../shared/bus/record.ts";
import type { LeaseWrite } from "../../shared/cluster/lease.ts";
import type { Millis, RoomKey, UnixMillis } from "../../shared/ids.ts";
import type { StoredCheckpoint } from "../ports.ts";
import { type Document, isBehind, type MergedState } from "./document.ts";
import type { HeldCheckpoint } from "./known-checkpoint.ts";
import type { MergeEnd } from "./merges.ts";
import { RETRY_MS, UNDECODABLE_RETRY_MS } from "./record-intake.ts";
import type { DocumentRoomEffect, RoomJobOutcome, RoomJobRequest, SaveOutcome, StoreFailure } from "./room-messages.ts";
import { type PlannedCheckpoint, DocumentSaves, type NamedBy } from "./saves.ts";
import type { SnapshotPlan } from "./snapshot-plan.ts";
import { planSnapshotRemoval } from "./sweep.ts";

/** `names`: the orphans, removed once the checkpoint is written again. In a deleted room no checkpoint is written. */
type Job = { readonly document: Document } & (
  | { readonly kind: "saving" }
  | { readonly kind: "checking-version" }
  | { readonly kind: "merging-version" }
  | { readonly kind: "adding-version" }
  | { readonly kind: "trimming"; readonly before: number; readonly checkpoint: Checkpoint }
  | { readonly kind: "wiping" }
  | { readonly kind: "removing-orphans"; readonly names: readonly string[]; readonly write: PlannedCheckpoint | undefined }
);

/** `mergeOrJoin`: the room merges, and calls `receiveMergeEnd` at the end. */
type RoomJobsParts = {
  readonly checkpoint: HeldCheckpoint;
  readonly plan: SnapshotPlan;
  readonly newName: () => string;
  readonly isDeleted: () => boolean;
  readonly isStalled: () => boolean;
  /** The room drops the log's records from that one on, and a new room replaces it. */
  readonly readAgain: (document: Document, from: number) => void;
  readonly mergeOrJoin: (now: Millis, effects: DocumentRoomEffect[]) => void;
};

export class RoomJobs {
  readonly #parts: RoomJobsParts;
  readonly #saves: DocumentSaves;
  #job: Job | undefined;
  #notBefore = 0 as Millis;
  #isClosed = false;

  constructor(room: RoomKey, parts: RoomJobsParts) {
    this.#parts = parts;
    this.#saves = new DocumentSaves(room, parts.newName);
  }

  get isBusy(): boolean {
    return this.#job !== undefined;
  }

  /** A store failed a moment ago, or the room waits for another service. */
  isPausing(now: Millis): boolean {
    return now < this.#notBefore;
  }

  /** Failures are no longer reported. */
  close(): void {
    this.#isClosed = true;
  }

  /** `trimDue`: records before this one may be trimmed; undefined: none. */
  begin(
    job: RoomJobRequest,
    { document, trimDue }: { document: Document | undefined; trimDue: number | undefined },
    now: Millis,
    wall: UnixMillis,
    effects: DocumentRoomEffect[],
  ): void {
    assert(this.#job === undefined, "one job at a time works on a room");
    if (document === undefined) return this.#end(effects);
    switch (job.kind) {
      case "save":
        this.#job = { kind: "saving", document };
        this.#saves.begin(now);
        return this.#parts.mergeOrJoin(now, effects);
      case "trim": {
        if (trimDue === undefined) return this.#end(effects);
        const before = Math.min(trimDue, job.before ?? trimDue);
        const { checkpoint } = document;
        assert(checkpoint !== undefined, "records are trimmed behind a checkpoint");
        this.#job = { kind: "trimming", document, before, checkpoint };
        return void effects.push({ kind: "read-record", streamSeq: checkpoint.streamSeq });
      }
      case "wipe": {
        this.#job = { kind: "wiping", document };
        document.clear();
        const names = this.#saves.takeUnnamed(document);
        return void effects.push(names.length > 0 ? { kind: "remove-snapshots", names, isAwaited: true } : { kind: "wipe" });
      }
      case "remove-orphans":
        return this.#beginRemovingOrphans(document, job.names, wall, effects);
      default:
        return assertNever(job);
    }
  }

  /** The room's merge has ended; a job may have waited for it. */
  receiveMergeEnd(end: MergeEnd, now: Millis, effects: DocumentRoomEffect[]): void {
    const isSaving = this.#job?.kind === "saving" && this.#saves.step === "merging";
    if (!isSaving && this.#job?.kind !== "merging-version") return;
    if (end.kind === "failed") this.receiveFailure(end.failure, now, effects);
    else if (isSaving) this.#receiveSaveStep(this.#saves.receiveMerged(end.merged, this.#parts.isStalled(), effects), now, effects);
    else this.#addVersion(end.merged, effects);
  }

  receiveOutcome(input: RoomJobOutcome, now: Millis, wall: UnixMillis, effects: DocumentRoomEffect[]): void {
    switch (input.kind) {
      case "snapshot-written":
        return this.#receiveSaveStep(this.#saves.receiveWritten(input.written, effects), now, effects);
      case "notifications-queued":
        return this.#nameSnapshot(now, wall, effects);
      case "record-read":
        return this.#receiveLastCovered(input.stored, now, effects);
      case "checkpoint-written":
        return this.#receiveCheckpointWritten(input.checkpoint, input.write, now, wall, effects);
      case "snapshots-removed":
        return input.isAwaited ? this.#receiveSnapshotsRemoved(now, effects) : undefined;
      case "snapshot-announced":
        return this.#receiveSaveStep(this.#saves.receiveAnnounced(), now, effects);
      case "version-checked":
        return input.isDue ? this.#mergeVersion(now, effects) : this.#end(effects);
      case "version-added":
        return this.#end(effects);
      case "snapshot-verified":
        return this.#receiveVerified(input.isReadable, now, effects);
      case "archived":
        return void effects.push({ kind: "trim-log", before: this.#trimming.before });
      case "log-trimmed":
        return this.#receiveLogTrimmed(effects);
      case "wiped": // If not, a room server may still hold the room.
        if (!input.isWiped) this.#pause(RETRY_MS, now);
        return this.#end(effects);
      default:
        return assertNever(input);
    }
  }

  /** If a newer checkpoint was found during the save, this service continues from it, or reads the log again. */
  #nameSnapshot(now: Millis, wall: UnixMillis, effects: DocumentRoomEffect[]): void {
    const { document } = this.#running;
    const { revision } = this.#parts.checkpoint;
    const checkpoint = this.#saves.receiveQueued(wall, revision, (streamSeq) => this.#parts.plan.logBytes(streamSeq));
    const known = document.checkpoint;
    if (document.isIncomplete) this.#receiveSaveStep(this.#saves.receiveNamed("unknown", [], document, effects), now, effects);
    else if (known !== undefined && isBehind(checkpoint, known))
      this.#receiveSaveStep(this.#saves.receiveNamed("theirs", [], document, effects), now, effects);
    else effects.push({ kind: "read-record", streamSeq: checkpoint.streamSeq });
  }

  /**
   * Checks the record at the place that a checkpoint names. A log that lost its end has another record at this place,
   * or none. Then the checkpoint is not written and nothing is trimmed up to it. The partition will be read again.
   */
  #receiveLastCovered(stored: StoredRecord | undefined, now: Millis, effects: DocumentRoomEffect[]): void {
    const job = this.#running;
    if (job.kind === "trimming") {
      const isThere = stored !== undefined && isLastCovered(job.checkpoint, stored.bytes);
      if (isThere) return void effects.push({ kind: "read-checkpoint", reader: "job" });
      this.#parts.plan.receiveTrimmed(job.before);
      effects.push({ kind: "report", report: { kind: "trim-ended", outcome: "refused" } });
      return this.#end(effects);
    }
    const write = job.kind === "saving" ? this.#saves.write : writeOf(job);
    const { checkpoint } = write;
    if (stored !== undefined && isLastCovered(checkpoint, stored.bytes)) return void effects.push({ kind: "write-checkpoint", ...write });
    const cause = new Error(
      `the log does not have record ${checkpoint.streamSeq}, which the snapshot includes: a replica lags, or the log lost its end`,
    );
    this.pauseAfterFailure(FAILED[job.kind], { cause, isUndecodable: false }, now, effects);
    effects.push({ kind: "read-checkpoint", reader: "job" }); // Another service may have written it, or the room may be deleted.
  }

  #receiveCheckpointWritten(checkpoint: Checkpoint, write: LeaseWrite, now: Millis, wall: UnixMillis, effects: DocumentRoomEffect[]): void {
    const { document } = this.#running;
    const known = this.#parts.checkpoint;
    if (write.kind === "superseded") {
      effects.push(
        { kind: "report", report: { kind: "superseded", revision: known.revision } },
        { kind: "read-checkpoint", reader: "job" },
      );
      return;
    }
    if (write.revision < known.revision) return this.#receiveNamed("unknown", [], now, effects); // Replaced before its answer came.
    this.#receiveNamed("ours", known.receiveWritten(document, checkpoint, write.revision, now, wall), now, effects);
  }

  /**
   * Another service had written the checkpoint. If its revision is not above the refused one, a former leader answered,
   * or the bucket lost its end. Then the bucket may name any snapshot, and none is removed.
   */
  receiveCheckpointRead(found: StoredCheckpoint, now: Millis, wall: UnixMillis, effects: DocumentRoomEffect[]): void {
    if (this.#running.kind === "trimming") return this.#receiveCheckpointBeforeTrim(found, now, effects);
    const isNewer = found.revision > this.#parts.checkpoint.revision;
    const { replaced } = this.#parts.checkpoint.receiveRead(this.#running.document, found, now, wall);
    this.#receiveNamed(isNewer ? "theirs" : "unknown", replaced, now, effects);
  }

  /** The bucket has another checkpoint: another service wrote it, or the bucket lost its end. So the room is read again from there. */
  #receiveCheckpointBeforeTrim(found: StoredCheckpoint, now: Millis, effects: DocumentRoomEffect[]): void {
    const { document, checkpoint } = this.#trimming;
    if (this.#parts.checkpoint.isHeld(document, found)) return void effects.push({ kind: "verify-snapshot", checkpoint });
    const from = found.checkpoint === undefined || isDeleted(found.checkpoint) ? 1 : found.checkpoint.streamSeq + 1;
    this.#parts.readAgain(document, from);
    effects.push({ kind: "report", report: { kind: "trim-ended", outcome: "refused" } });
    this.#pause(RETRY_MS, now);
    this.#end(effects);
  }

  /**
   * The write of a checkpoint may arrive after the store has lost its snapshot. Then the log has the only copy. The room
   * is saved again, or its merge finds the loss.
   */
  #receiveVerified(isReadable: boolean, now: Millis, effects: DocumentRoomEffect[]): void {
    const { document, before, checkpoint } = this.#trimming;
    if (isReadable) return void effects.push({ kind: "archive", before });
    effects.push({ kind: "report", report: { kind: "trim-ended", outcome: "refused" } });
    this.#pause(RETRY_MS, now);
    this.#end(effects);
    if (document.checkpoint !== checkpoint) return; // Replaced in the meantime.
    if (document.merged === undefined) return this.#parts.mergeOrJoin(now, effects);
    const { object } = checkpoint.snapshot;
    effects.push({ kind: "report", report: { kind: "snapshot-lost", object, remedy: "state" } });
    this.#parts.checkpoint.receiveSnapshotLost(document);
  }

  #receiveSnapshotsRemoved(now: Millis, effects: DocumentRoomEffect[]): void {
    const { kind } = this.#running;
    if (kind === "saving") this.#receiveSaveStep(this.#saves.receiveRemoved(effects), now, effects);
    else if (kind === "wiping") effects.push({ kind: "wipe" });
    else this.#end(effects);
  }

  #mergeVersion(now: Millis, effects: DocumentRoomEffect[]): void {
    this.#job = { kind: "merging-version", document: this.#running.document };
    this.#parts.plan.receiveUse(now);
    this.#parts.mergeOrJoin(now, effects);
  }

  #receiveLogTrimmed(effects: DocumentRoomEffect[]): void {
    this.#parts.plan.receiveTrimmed(this.#trimming.before);
    effects.push({ kind: "report", report: { kind: "trim-ended", outcome: "trimmed" } });
    this.#end(effects, { isTrimmed: true });
  }

  /** A store failed: the job is due again after a pause. */
  receiveFailure(failure: StoreFailure, now: Millis, effects: DocumentRoomEffect[]): void {
    const { kind } = this.#running;
    if (kind === "trimming") effects.push({ kind: "report", report: { kind: "trim-ended", outcome: "failed" } });
    if (kind === "saving") {
      effects.push({ kind: "report", report: { kind: "save-ended", outcome: "failed", ms: now - this.#saves.startedAt } });
      this.#saves.abandon();
    }
    this.pauseAfterFailure(FAILED[kind], failure, now, effects);
    this.#end(effects);
  }

  /** `what`: the step that failed, for the log. */
  pauseAfterFailure(what: string, { cause, isUndecodable }: StoreFailure, now: Millis, effects: DocumentRoomEffect[]): void {
    this.#pause(isUndecodable ? UNDECODABLE_RETRY_MS : RETRY_MS, now);
    if (!this.#isClosed) effects.push({ kind: "report", report: { kind: "storage-failed", what, cause } });
  }

  get #running(): Job {
    assert(this.#job !== undefined, "the outcome of a job's step arrives while the job runs");
    return this.#job;
  }

  get #trimming(): Job & { kind: "trimming" } {
    assert(this.#job?.kind === "trimming", "records are archived and removed for a trim");
    return this.#job;
  }

  /** `by`: the writer of the bucket's checkpoint. */
  #receiveNamed(by: NamedBy, replaced: readonly string[], now: Millis, effects: DocumentRoomEffect[]): void {
    const job = this.#running;
    if (job.kind === "saving") return this.#receiveSaveStep(this.#saves.receiveNamed(by, replaced, job.document, effects), now, effects);
    assert(job.kind === "removing-orphans", "a checkpoint is written for a save, or before orphans are removed");
    const names = by === "ours" ? job.names : replaced;
    if (names.length === 0) this.#end(effects);
    else effects.push({ kind: "remove-snapshots", names, isAwaited: true });
  }

  /** `outcome` undefined: the save continues. */
  #receiveSaveStep(outcome: SaveOutcome | undefined, now: Millis, effects: DocumentRoomEffect[]): void {
    if (outcome === undefined) return;
    const { document } = this.#running;
    const { startedAt } = this.#saves;
    effects.push({ kind: "report", report: { kind: "save-ended", outcome, ms: now - startedAt } });
    this.#parts.plan.receiveSaveEnd(document, startedAt, outcome === "saved");
    if (outcome === "failed") this.#pause(RETRY_MS, now);
    if (outcome !== "saved" || this.#parts.isDeleted()) return this.#end(effects);
    this.#job = { kind: "checking-version", document };
    effects.push({ kind: "check-version", seq: document.applied.seq });
  }

  #addVersion(present: MergedState | undefined, effects: DocumentRoomEffect[]): void {
    if (present === undefined) return this.#end(effects);
    this.#job = { kind: "adding-version", document: this.#running.document };
    effects.push({ kind: "add-version", present });
  }

  #beginRemovingOrphans(document: Document, found: readonly string[], wall: UnixMillis, effects: DocumentRoomEffect[]): void {
    const plan = planSnapshotRemoval(found, { isDeleted: this.#parts.isDeleted(), checkpoint: document.checkpoint });
    if (plan.kind === "none") return this.#end(effects);
    const { names } = plan;
    const { revision } = this.#parts.checkpoint;
    const write = plan.kind === "remove" ? undefined : { checkpoint: { ...plan.checkpoint, time: wall }, revision };
    this.#job = { kind: "removing-orphans", document, names, write };
    effects.push(
      write === undefined
        ? { kind: "remove-snapshots", names, isAwaited: true }
        : { kind: "read-record", streamSeq: write.checkpoint.streamSeq },
    );
  }

  #pause(ms: number, now: Millis): void {
    this.#notBefore = (now + ms) as Millis;
  }

  #end(effects: DocumentRoomEffect[], { isTrimmed } = { isTrimmed: false }): void {
    this.#job = undefined;
    effects.push({ kind: "job-ended", isTrimmed });
  }
}

function writeOf(job: Job): PlannedCheckpoint {
  assert("write" in job && job.write !== undefined, "a job reads the last covered record of its checkpoint");
  return job.write;
}

const FAILED: Readonly<Record<Job["kind"], string>> = {
  "saving": "its snapshot was not saved",
  "checking-version": "its snapshot was not saved",
  "merging-version": "its snapshot was not saved",
  "adding-version": "its snapshot was not saved",
  "trimming": "its log was not trimmed",
  "wiping": "what is left of it was not removed",
  "removing-orphans": "what a crash left behind was not removed",
};
