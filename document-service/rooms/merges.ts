/**
 * Keeps one room's state merged. Loads the snapshot if only the store has the state, and merges the pending edits once
 * for all callers that wait. A merge that takes too long, or ends its thread, stalls only its own room: the room is
 * tried again after a pause that doubles. A room whose snapshot is lost is read again from a log that still has every
 * record; otherwise it stalls until the snapshot is restored.
 */

import { assert, assertNever } from "../../shared/assert.ts";
import { type Checkpoint, isLastCovered } from "../../shared/bus/checkpoint.ts";
import { decodeRecord, type StoredRecord } from "../../shared/bus/record.ts";
import type { Millis } from "../../shared/ids.ts";
import type { MergedDocument } from "../merge.ts";
import type { MergeUrgency, Unread } from "../ports.ts";
import { mainWriters } from "../yjs-authors.ts";
import type { Document, PendingMerge, MergedState } from "./document.ts";
import type { CoveredRead, DocumentRoomEffect, MergeStepOutcome, StoreEffect, StoreFailure } from "./room-messages.ts";

const PAUSE_DOUBLINGS_MAX = 6;

/** `merged` undefined: the room's snapshot is not available now. */
export type MergeEnd =
  { readonly kind: "settled"; readonly merged: MergedState | undefined } | { readonly kind: "failed"; readonly failure: StoreFailure };

type MergeStep =
  | { readonly kind: "idle" }
  | { readonly kind: "reading-snapshot"; readonly checkpoint: Checkpoint }
  | { readonly kind: "reading-checkpoint"; readonly checkpoint: Checkpoint }
  | { readonly kind: "reading-covered"; readonly checkpoint: Checkpoint }
  | { readonly kind: "merging"; readonly merge: PendingMerge; readonly startedAt: Millis };

export class DocumentMerges {
  readonly #mergeMsMax: number;
  readonly #readLogAgain: (document: Document, lostSnapshot: string) => void;
  readonly #requests: { readonly mergeUrgency: MergeUrgency };
  #step: MergeStep = { kind: "idle" };
  /** Abandoned merges in a row. */
  #overrunCount = 0;
  /** Abandoned merges are reported, and their end is not. */
  #isReported = false;
  /** The room is deleted or closed. */
  #isEnded = false;
  #isSnapshotLost = false;
  #notBefore = 0 as Millis;

  /** `readLogAgain`: the log still has every record that the lost snapshot covered. */
  constructor(
    { mergeMsMax }: { readonly mergeMsMax: number },
    requests: { readonly mergeUrgency: MergeUrgency },
    readLogAgain: (document: Document, lostSnapshot: string) => void,
  ) {
    this.#mergeMsMax = mergeMsMax;
    this.#readLogAgain = readLogAgain;
    this.#requests = requests;
  }

  get isRunning(): boolean {
    return this.#step.kind !== "idle";
  }

  /** The last merge was abandoned, or had no state to start from. */
  get isStalled(): boolean {
    return this.#overrunCount > 0 || this.#isSnapshotLost;
  }

  /** A merge is running after one that was abandoned. It may wait long for the thread that all such rooms share. */
  get isRetrying(): boolean {
    return this.#step.kind === "merging" && this.#overrunCount > 0;
  }

  isPausing(now: Millis): boolean {
    return now < this.#notBefore;
  }

  /** Returns the end if nothing has to be read or merged. Otherwise the end comes from a later input. */
  begin(document: Document, now: Millis, effects: DocumentRoomEffect[]): MergeEnd | undefined {
    assert(!this.isRunning, "a room is merged once at a time");
    const { checkpoint } = document;
    if (document.merged !== undefined) return this.#mergePending(document, now, effects);
    if (checkpoint === undefined) return this.#end(undefined);
    this.#step = { kind: "reading-snapshot", checkpoint };
    effects.push({ kind: "read-snapshot", checkpoint });
    return undefined;
  }

  receiveOutcome(document: Document, input: MergeStepOutcome, now: Millis, effects: DocumentRoomEffect[]): MergeEnd | undefined {
    switch (input.kind) {
      case "snapshot-read":
        return this.#receiveSnapshot(document, input.state, now, effects);
      case "covered-read":
        return this.#receiveCovered(document, input, effects);
      case "merge-ended":
        return this.#receiveMerged(document, input.outcome, now, effects);
      default:
        return assertNever(input);
    }
  }

  /** `state` undefined: the snapshot is missing or damaged. */
  #receiveSnapshot(document: Document, state: Uint8Array | undefined, now: Millis, effects: DocumentRoomEffect[]): MergeEnd | undefined {
    assert(this.#step.kind === "reading-snapshot", "a snapshot is read for a merge");
    const { checkpoint } = this.#step;
    if (document.checkpoint !== checkpoint) return this.#end(undefined); // Replaced during the read.
    if (state !== undefined) {
      document.receiveState(state);
      return this.#mergePending(document, now, effects);
    }
    this.#step = { kind: "reading-checkpoint", checkpoint };
    effects.push({ kind: "read-checkpoint", reader: "merge" });
    return undefined;
  }

  /** `isNewer`: another service has replaced the checkpoint and its snapshot. Otherwise the snapshot is lost. */
  receiveCheckpoint(isNewer: boolean, effects: DocumentRoomEffect[]): MergeEnd | undefined {
    assert(this.#step.kind === "reading-checkpoint", "a checkpoint is read for a merge whose snapshot is missing");
    this.#isSnapshotLost = !isNewer;
    if (isNewer) return this.#end(undefined);
    const { checkpoint } = this.#step;
    this.#step = { kind: "reading-covered", checkpoint };
    effects.push({ kind: "read-covered", checkpoint });
    return undefined;
  }

  /** `first`: the room's first record in the log. `last`: the record at the place of the last covered one. */
  #receiveCovered(document: Document, { first, last }: CoveredRead, effects: DocumentRoomEffect[]): MergeEnd {
    assert(this.#step.kind === "reading-covered", "covered records are read for a merge whose snapshot is lost");
    const { checkpoint } = this.#step;
    const { object } = checkpoint.snapshot;
    const hasAll = first !== undefined && isFirstRecord(first) && last !== undefined && isLastCovered(checkpoint, last.bytes);
    effects.push({ kind: "report", report: { kind: "snapshot-lost", object, remedy: hasAll ? "log" : "backup" } });
    if (hasAll && document.checkpoint === checkpoint) this.#readLogAgain(document, object);
    return this.#end(undefined);
  }

  #receiveMerged(document: Document, outcome: MergedDocument | Unread, now: Millis, effects: DocumentRoomEffect[]): MergeEnd {
    assert(this.#step.kind === "merging", "edits are merged for a merge");
    const { merge, startedAt } = this.#step;
    if (typeof outcome === "string") {
      this.#pauseAfterOverrun(merge, outcome, now, effects);
      return this.#end(document.merged);
    }
    this.#reportEnd(effects);
    this.#overrunCount = 0;
    const disputed = document.receiveMerged(merge, outcome); // Edits that arrived during the merge belong to the next one.
    for (const use of disputed) effects.push({ kind: "report", report: { kind: "yjs-id-disputed", ...use } });
    effects.push({ kind: "report", report: { kind: "merged", ms: now - startedAt } });
    if (outcome.refused > 0) {
      const [through, users] = [merge.into.applied, mainWriters(merge.authors)];
      effects.push({ kind: "report", report: { kind: "edits-refused", refused: outcome.refused, through, users } });
    }
    return this.#end(document.merged);
  }

  /** The room is deleted, or another service reads it: nobody waits here for its edits to be merged. */
  end(effects: DocumentRoomEffect[]): void {
    this.#isEnded = true;
    this.#reportEnd(effects);
  }

  #reportEnd(effects: DocumentRoomEffect[]): void {
    if (this.#isReported) effects.push({ kind: "report", report: { kind: "merge-recovered" } });
    this.#isReported = false;
  }

  receiveFailure(failure: StoreFailure): MergeEnd {
    this.#step = { kind: "idle" };
    return { kind: "failed", failure };
  }

  #mergePending(document: Document, now: Millis, effects: DocumentRoomEffect[]): MergeEnd | undefined {
    this.#isSnapshotLost = false;
    const merge = document.planMerge();
    if (merge === undefined || this.isPausing(now)) return this.#end(document.merged);
    this.#step = { kind: "merging", merge, startedAt: now };
    const { mergeUrgency: urgency } = this.#requests;
    effects.push({ kind: "merge", base: merge.base, edits: merge.edits, urgency, authors: merge.authors });
    return undefined;
  }

  /** The next try may fail in the same way and take as long. */
  #pauseAfterOverrun(merge: PendingMerge, why: Unread, now: Millis, effects: DocumentRoomEffect[]): void {
    this.#overrunCount += 1;
    const pauseMs = this.#mergeMsMax * 2 ** Math.min(this.#overrunCount, PAUSE_DOUBLINGS_MAX);
    this.#notBefore = (now + pauseMs) as Millis;
    const isNew = !this.#isReported && !this.#isEnded;
    this.#isReported ||= isNew;
    effects.push({
      kind: "report",
      report: {
        kind: "merge-abandoned",
        edits: merge.edits.length,
        baseBytes: merge.base.byteLength,
        through: merge.into.applied,
        pauseMs,
        why,
        users: mainWriters(merge.authors),
        tries: this.#overrunCount,
        isNew,
      },
    });
  }

  #end(merged: MergedState | undefined): MergeEnd {
    this.#step = { kind: "idle" };
    return { kind: "settled", merged };
  }
}

/** Whether no record of the room was trimmed before this one. */
function isFirstRecord({ bytes }: StoredRecord): boolean {
  const record = decodeRecord(bytes);
  return (record?.kind === "epoch" && record.head === 0) || (record?.kind === "edits" && record.edits.firstSeq === 1);
}

export function isMergeEffect({ kind }: StoreEffect): boolean {
  return kind === "read-snapshot" || kind === "read-covered" || kind === "merge";
}
