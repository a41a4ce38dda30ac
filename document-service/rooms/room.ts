/**
 * One room of the document service: `opening | open | deleting | deleted`. `room-host.ts` carries out its effects. The
 * invariant: the checkpoint is the commit. A snapshot that no checkpoint names is unused, and uncovered records stay in
 * the log, so the next try after any failure starts from a complete document.
 */

import { assert, assertNever } from "../../shared/assert.ts";
import type { DeletedCheckpoint } from "../../shared/bus/checkpoint.ts";
import { isDeletedRecord } from "../../shared/bus/record.ts";
import type { Millis, RoomKey, Seq, UnixMillis } from "../../shared/ids.ts";
import type { StoredCheckpoint } from "../ports.ts";
import type { Deletion } from "./deletion.ts";
import type { Document } from "./document.ts";
import { HeldCheckpoint } from "./known-checkpoint.ts";
import { RoomJobs } from "./room-jobs.ts";
import { DocumentMerges, isMergeEffect, type MergeEnd } from "./merges.ts";
import type { RoomRange } from "./read-ahead.ts";
import { type IntakeStep, RecordIntake, type RecordIntakeOptions, type RoomReading } from "./record-intake.ts";
import type { CheckpointRead, DocumentRoomEffect, DocumentRoomInput, StoreEffect, StoreFailure } from "./room-messages.ts";
import { answer, type DocumentRequest, RoomRequests } from "./room-requests.ts";
import { SnapshotPlan, type SnapshotPlanOptions, storedParts, type StoredParts } from "./snapshot-plan.ts";

export type DocumentRoomOptions = SnapshotPlanOptions &
  RecordIntakeOptions & { readonly mergeMsMax: number; readonly snapshotLagBytesMax: number };

type RoomDeletion = Pick<Deletion, "isDeleted" | "isDue" | "uncoveredFrom" | "receiveRecord" | "receiveEntry">;
/** `newName`: unique among all snapshots ever written. `boardsFloor`: the boards need no record up to it. */
type DocumentRoomDeps = RoomReading & { deletion: RoomDeletion; newName: () => string; boardsFloor: () => number };

export class DocumentRoom {
  readonly key: RoomKey;
  readonly #deps: DocumentRoomDeps;
  readonly #checkpoint: HeldCheckpoint;
  readonly #intake: RecordIntake;
  readonly #merges: DocumentMerges;
  readonly #jobs: RoomJobs;
  readonly #plan: SnapshotPlan;
  readonly #requests: RoomRequests;
  /** The current merge was started to keep the number of pending edits low. */
  #isMergingBacklog = false;
  #isClosed = false;
  /** The edits up to this seq were reported as read. */
  #notifiedSeq: Seq | undefined;

  constructor(key: RoomKey, options: DocumentRoomOptions, deps: DocumentRoomDeps, now: Millis) {
    this.key = key;
    this.#deps = deps;
    this.#intake = new RecordIntake(options, deps);
    this.#requests = new RoomRequests(options);
    this.#merges = new DocumentMerges(options, this.#requests, (document, lost) => this.#intake.readAgain(document, 1, lost));
    this.#plan = new SnapshotPlan(key, options, now);
    this.#checkpoint = new HeldCheckpoint(this.#plan, {
      deleted: (entry) => this.#receiveDeletedEntry(entry),
      contentDropped: (document, from) => this.#intake.readAgain(document, from),
    });
    this.#jobs = new RoomJobs(key, {
      checkpoint: this.#checkpoint,
      plan: this.#plan,
      newName: deps.newName,
      isDeleted: () => this.isDeleted,
      isStalled: () => this.isStalled,
      readAgain: (document, from) => this.#intake.readAgain(document, from),
      mergeOrJoin: (at, effects) => this.#mergeOrJoin(at, effects),
    });
  }

  open(): readonly DocumentRoomEffect[] {
    return [{ kind: "read-checkpoint", reader: "opening" }];
  }

  get state(): "opening" | "open" | "deleting" | "deleted" {
    if (this.isDeleted) return this.isUnwiped ? "deleting" : "deleted";
    return this.#intake.state === "opening" ? "opening" : "open";
  }

  get isDeleted(): boolean {
    return this.#deps.deletion.isDeleted;
  }

  /** Some data of the room may be left, although the room is deleted. */
  get isUnwiped(): boolean {
    return this.#deps.deletion.isDue;
  }

  get isBusy(): boolean {
    return this.#jobs.isBusy;
  }

  /** The checkpoint is being read, for the first time or because of a gap. */
  get isLookingUp(): boolean {
    return this.#intake.state !== "open";
  }

  get appliedThrough(): number {
    return this.#intake.appliedThrough;
  }

  get heldBytes(): number {
    return this.#intake.heldBytes;
  }

  get storedBytes(): StoredParts | undefined {
    return storedParts(this.#intake.document, this.#plan, this.isDeleted);
  }

  /** The first stream sequence of the room that no snapshot may cover yet. */
  get uncoveredFrom(): number | undefined {
    return this.isDeleted ? this.#deps.deletion.uncoveredFrom : this.#intake.uncoveredFrom;
  }

  /** Time at which the first edit that no snapshot covers was read. */
  get uncoveredSince(): Millis | undefined {
    return this.#plan.uncoveredSince;
  }

  /** The checkpoint does not decode. The room stays in memory until a person repairs it. */
  get isUndecodable(): boolean {
    return this.#intake.isUndecodable;
  }

  /** The edits cannot be merged in time, or their snapshot is lost. */
  get isStalled(): boolean {
    return this.#merges.isStalled;
  }

  /** False: a snapshot can cover the room only after a person repairs the checkpoint, or removes edits that cannot be merged. */
  get canBeCovered(): boolean {
    return !this.isUndecodable && (this.isDeleted || !(this.isStalled || this.#intake.isSetAside));
  }

  /** The room dropped records and can take them now. So the log is read again from this place into a new room. */
  get readAgainFrom(): number | undefined {
    if ((this.isStalled && !this.#intake.isOutdated) || this.isDeleted || this.isBusy || this.#merges.isRunning) return undefined;
    return this.#intake.readAgainFrom;
  }

  get lostSnapshot(): string | undefined {
    return this.#intake.lostSnapshot;
  }

  isSaveDue(now: Millis, isPressed: boolean): boolean {
    const document = this.#idleDocument(now);
    const mayBegin = document !== undefined && !this.#intake.isSetAside && !this.#merges.isPausing(now);
    return mayBegin && this.#plan.isSaveDue(document, isPressed, now);
  }

  isTrimDue(now: Millis): boolean {
    return this.trimThrough(now) !== undefined;
  }

  /** Records before this one may be trimmed; undefined: none, or not now. */
  trimThrough(now: Millis): number | undefined {
    const document = this.#idleDocument(now);
    return document && this.#plan.trimBefore(document, this.#deps.boardsFloor(), now);
  }

  trimRange(through: number, archivedThrough: number | undefined): RoomRange | undefined {
    return this.#plan.trimRange(through, archivedThrough);
  }

  isWipeDue(now: Millis): boolean {
    return this.isUnwiped && this.#intake.document !== undefined && !this.isBusy && !this.#jobs.isPausing(now);
  }

  /** Whether the room can leave memory: the stores and the log have all its data, and no work is left. */
  canRetire(now: Millis, isPressed: boolean): boolean {
    const { document } = this.#intake;
    if (document === undefined || this.isLookingUp || this.isBusy || this.#merges.isRunning) return false;
    return this.isDeleted ? !this.isUnwiped : this.#plan.canRetire(document, isPressed, now);
  }

  receive(input: DocumentRoomInput, now: Millis, wall: UnixMillis): readonly DocumentRoomEffect[] {
    const effects: DocumentRoomEffect[] = [];
    switch (input.kind) {
      case "record":
        if (isDeletedRecord(input.stored.bytes)) this.#receiveDeletion(input.stored.streamSeq);
        else this.#takeRecords((step) => this.#intake.receiveRecord(input.stored, step), now, effects);
        break;
      case "deletion":
        this.#receiveDeletion(input.streamSeq);
        break;
      case "tick":
        this.#receiveTick(input.isPressed, now, effects);
        break;
      case "serve":
      case "read-state":
        this.#receiveRequest(input, now, effects);
        break;
      case "job":
        this.#jobs.begin(input.job, { document: this.#intake.document, trimDue: this.trimThrough(now) }, now, wall, effects);
        break;
      case "failure":
        this.#jobs.pauseAfterFailure(input.what, input.failure, now, effects);
        break;
      case "close":
        this.#close(effects);
        break;
      case "checkpoint-read":
        this.#receiveCheckpointRead(input, now, wall, effects);
        break;
      case "snapshot-read":
      case "covered-read":
      case "merge-ended":
        this.#receiveMergeEnd(this.#merges.receiveOutcome(this.#document, input, now, effects), now, effects);
        break;
      case "failed":
        this.#receiveStoreFailure(input.effect, input.failure, now, effects);
        break;
      default:
        this.#jobs.receiveOutcome(input, now, wall, effects);
    }
    if (this.#isClosed || this.isDeleted) this.#merges.end(effects);
    return effects;
  }

  get #document(): Document {
    const { document } = this.#intake;
    assert(document !== undefined, "a room is opened before its document is used");
    return document;
  }

  /** The document, if a save or a trim may begin. */
  #idleDocument(now: Millis): Document | undefined {
    const isIdle = !this.isLookingUp && !this.isDeleted && !this.isBusy && !this.#jobs.isPausing(now);
    return isIdle ? this.#intake.document : undefined;
  }

  #takeRecords(take: (step: IntakeStep) => void, now: Millis, effects: DocumentRoomEffect[]): void {
    const taken: IntakeStep["taken"] = [];
    take({ taken, effects });
    if (taken.length === 0) return;
    const document = this.#document;
    for (const stored of taken) this.#plan.receiveTaken(stored, document, now);
    const { applied, checkpoint } = document;
    effects.push({ kind: "notify-edits", position: applied, edits: applied.seq - (this.#notifiedSeq ?? checkpoint?.seq ?? 0) });
    this.#notifiedSeq = applied.seq;
    if (this.#plan.hasManyPending(document)) this.#mergeIfDue(now, effects);
  }

  #receiveDeletion(streamSeq: number): void {
    this.#deps.deletion.receiveRecord(streamSeq);
    this.#intake.stop();
  }

  #receiveDeletedEntry(entry: DeletedCheckpoint): void {
    this.#deps.deletion.receiveEntry(entry);
    this.#intake.stop();
  }

  #receiveTick(isPressed: boolean, now: Millis, effects: DocumentRoomEffect[]): void {
    if (!this.#isClosed) this.#intake.retryLookupIfDue(now, effects);
    this.#mergeIfDue(now, effects);
    if (isPressed) this.#intake.releaseUndecodable(effects);
    if (!this.#merges.isRunning && (isPressed || this.#plan.isIdle(now))) this.#intake.document?.releaseState();
  }

  #close(effects: DocumentRoomEffect[]): void {
    this.#isClosed = true;
    this.#jobs.close();
    if (this.#intake.document !== undefined) return;
    this.#requests.answerUnopened(this.isDeleted, effects);
    effects.push({ kind: "opened", isOpen: false }, { kind: "looked-up" });
  }

  #receiveRequest(asked: DocumentRequest, now: Millis, effects: DocumentRoomEffect[]): void {
    const { document } = this.#intake;
    if (document === undefined && (this.#isClosed || this.isUndecodable))
      return void effects.push(answer(asked, undefined, this.isDeleted));
    if (document === undefined) return this.#requests.addUnopened(asked);
    const next = this.#requests.receiveRequest(asked, document, this.isDeleted, this.#merges, effects);
    if (next !== "answered-without-use") this.#plan.receiveUse(now);
    if (next === "merge") this.#mergeOrJoin(now, effects);
  }

  #mergeIfDue(now: Millis, effects: DocumentRoomEffect[]): void {
    const { document } = this.#intake;
    if (document === undefined || this.#merges.isRunning || this.#jobs.isPausing(now)) return;
    const step = this.#plan.nextMergeStep(document, this.isStalled);
    if (step === "set-aside") this.#intake.setAside(document, effects);
    if (step !== "merge") return;
    this.#isMergingBacklog = true;
    this.#mergeOrJoin(now, effects);
  }

  #mergeOrJoin(now: Millis, effects: DocumentRoomEffect[]): void {
    if (!this.#merges.isRunning) this.#receiveMergeEnd(this.#merges.begin(this.#document, now, effects), now, effects);
  }

  /** `end` undefined: the merge continues. */
  #receiveMergeEnd(end: MergeEnd | undefined, now: Millis, effects: DocumentRoomEffect[]): void {
    if (end === undefined) return;
    if (this.#isMergingBacklog && end.kind === "failed")
      this.#jobs.pauseAfterFailure("its edits were not merged", end.failure, now, effects);
    this.#isMergingBacklog = false;
    this.#requests.receiveMergeEnd(end, this, effects);
    this.#jobs.receiveMergeEnd(end, now, effects);
    if (this.#requests.isMergeWanted) this.#mergeOrJoin(now, effects);
  }

  #receiveCheckpointRead({ reader, found }: CheckpointRead, now: Millis, wall: UnixMillis, effects: DocumentRoomEffect[]): void {
    switch (reader) {
      case "opening":
        return this.#receiveFirstCheckpoint(found, now, wall, effects);
      case "gap":
      case "merge": {
        const isNewer = this.#continueFromNewer(found, now, wall, effects);
        if (reader === "merge") return this.#receiveMergeEnd(this.#merges.receiveCheckpoint(isNewer, effects), now, effects);
        return this.#takeRecords((step) => this.#intake.receiveGapLookedUp(step), now, effects);
      }
      case "job":
        return this.#jobs.receiveCheckpointRead(found, now, wall, effects);
      default:
        return assertNever(reader);
    }
  }

  /** Returns whether another service has written the checkpoint. */
  #continueFromNewer(found: StoredCheckpoint, now: Millis, wall: UnixMillis, effects: DocumentRoomEffect[]): boolean {
    const { isNewer, replaced } = this.#checkpoint.receiveRead(this.#document, found, now, wall);
    if (replaced.length > 0) effects.push({ kind: "remove-snapshots", names: replaced, isAwaited: false });
    return isNewer;
  }

  #receiveFirstCheckpoint(found: StoredCheckpoint, now: Millis, wall: UnixMillis, effects: DocumentRoomEffect[]): void {
    if (this.#isClosed) return;
    const checkpoint = this.#checkpoint.receiveFirst(found, this.lostSnapshot);
    this.#takeRecords((step) => this.#intake.receiveFirstCheckpoint(checkpoint, step), now, effects);
    this.#plan.receiveCheckpoint(this.#document, now, wall);
    effects.push({ kind: "opened", isOpen: true }, { kind: "looked-up" });
    for (const asked of this.#requests.takeUnopened()) this.#receiveRequest(asked, now, effects);
  }

  #receiveStoreFailure(effect: StoreEffect, failure: StoreFailure, now: Millis, effects: DocumentRoomEffect[]): void {
    const reader = effect.kind === "read-checkpoint" ? effect.reader : undefined;
    if (reader === "opening" || reader === "gap") {
      this.#intake.receiveLookupFailed(failure, now);
      if (failure.isUndecodable) this.#requests.answerUnopened(this.isDeleted, effects);
      if (failure.isUndecodable) effects.push({ kind: "looked-up" });
      return this.#jobs.pauseAfterFailure("its checkpoint could not be read", failure, now, effects);
    }
    if (reader === "merge" || isMergeEffect(effect)) this.#receiveMergeEnd(this.#merges.receiveFailure(failure), now, effects);
    else this.#jobs.receiveFailure(failure, now, effects);
  }
}
