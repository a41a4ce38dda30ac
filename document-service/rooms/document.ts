/**
 * One room's document, built from the room's records in log order. It holds a merged state and the edits after it, and
 * knows which records the newest checkpoint covers. Other files run merges and stores, and pass their results to this
 * file.
 *
 * A record at or below the applied position is a repeat and changes nothing, because a reader may begin earlier in the
 * log. Epoch and seq decide, not the stream sequence. A record after a gap is refused until the room has looked for a
 * newer checkpoint.
 *
 * The invariant: no edit is missing between a state and the pending edits. Example: the state was at seq 12 and only the
 * checkpoint's snapshot had it. Then the pending edits from seq 13 are never merged into a snapshot at seq 6.
 */

import { assert } from "../../shared/assert.ts";
import { type Checkpoint, epochsOf } from "../../shared/bus/checkpoint.ts";
import { checkPosition, type EpochHistory, NO_EPOCHS, withNext } from "../../shared/bus/epoch-history.ts";
import { decodeRecord, type EditsRecord, epochOf, headOf, type LogRecord, recordIdOf, type StoredRecord } from "../../shared/bus/record.ts";
import { type Position, type Seq, START, type UserId } from "../../shared/ids.ts";
import { EMPTY_STATE, type MergedDocument } from "../merge.ts";
import { type DisputedYjsId, type EditAuthors, YjsAuthors } from "../yjs-authors.ts";
import { type Watermark, Watermarks, type WatermarksOptions } from "./watermarks.ts";

/** The last record of the room's log that the document includes. `recordId`: undefined if only an old checkpoint names it. */
export type AppliedPosition = Position & {
  readonly streamSeq: number;
  readonly recordId: string | undefined;
  readonly epochs: EpochHistory;
};

type DocumentPosition = Pick<AppliedPosition, "epoch" | "seq" | "streamSeq">;

export type RecordReceipt =
  /** `forgotten`: the number of writers that the next checkpoint omits for lack of space. */
  | { kind: "applied"; forgotten: number }
  | { kind: "repeat" }
  /** The bytes are not a record. They count as left out. */
  | { kind: "unreadable" }
  /** The edits from `expected` on are missing, and the record was not taken. */
  | { kind: "gap"; expected: Seq; found: Seq };

/** The records that the newest checkpoint does not cover. All of them have a stream sequence of at least `fromStreamSeq`. */
export type Uncovered = { readonly edits: number; readonly bytes: number; readonly fromStreamSeq: number };

/** A state, and the facts about it that a checkpoint names. */
export type MergedState = {
  readonly state: Uint8Array;
  readonly applied: AppliedPosition;
  readonly clients: readonly Watermark[];
  readonly leftOut: number;
  /** The edits among `leftOut` that the log had, and that Yjs refused. */
  readonly refused: number;
};

/** The input of one merge. */
export type PendingMerge = {
  readonly base: Uint8Array;
  readonly records: number;
  readonly edits: readonly Uint8Array[];
  readonly authors: EditAuthors;
  readonly into: Omit<MergedState, "state">;
};

/** The payloads are views of one copy of the record, which has `bytes` bytes. `users`: the user of each payload. */
type PendingRecord = { readonly payloads: readonly Uint8Array[]; readonly users: readonly UserId[]; readonly bytes: number };

/** Maximum bytes of a state that is merged fast enough for every request. */
const LONG_BYTES = 1024 ** 2;

const NOTHING_APPLIED: AppliedPosition = { ...START, streamSeq: 0, recordId: undefined, epochs: NO_EPOCHS };

export class Document {
  #checkpoint: Checkpoint | undefined;
  #applied = NOTHING_APPLIED;
  #leftOut = 0;
  #refused = 0;
  #pendingEdits = 0;
  #pendingBytes = 0;
  readonly #options: WatermarksOptions;
  #clients: Watermarks;
  /** Undefined while only the checkpoint's snapshot has the state. */
  #merged: MergedState | undefined;
  /** While only a snapshot has the state: the pending edits continue from here, so the snapshot reaches at least this position. */
  #releasedAt: DocumentPosition = NOTHING_APPLIED;
  /** The first edit that is missing because of a gap, if no checkpoint of this service covers it. */
  #crossedFrom: Seq | undefined;
  readonly #authors = new YjsAuthors();
  /** The edits after the merged state, by record. */
  #pending: PendingRecord[] = [];
  #isIncomplete = false;
  #uncovered: Uncovered | undefined;

  constructor(checkpoint: Checkpoint | undefined, options: WatermarksOptions) {
    this.#options = options;
    this.#clients = new Watermarks([], options);
    this.#merged = { state: EMPTY_STATE, applied: this.#applied, clients: [], leftOut: 0, refused: 0 };
    if (checkpoint !== undefined) this.#startFrom(checkpoint);
  }

  get checkpoint(): Checkpoint | undefined {
    return this.#checkpoint;
  }

  get applied(): AppliedPosition {
    return this.#applied;
  }

  /** The room has no edit and no checkpoint. */
  get isBlank(): boolean {
    return this.#checkpoint === undefined && this.#applied.seq === 0;
  }

  get uncovered(): Uncovered | undefined {
    return this.#uncovered;
  }

  get pending(): { edits: number; bytes: number } {
    return { edits: this.#pendingEdits, bytes: this.#pendingBytes };
  }

  get merged(): MergedState | undefined {
    return this.#merged;
  }

  /**
   * The state of a long document that lacks only few edits: a joining client receives them from the log before a merge
   * would end. Undefined: a merge is needed. A state older than the checkpoint is not returned, because the edits after
   * it may be trimmed.
   */
  nearlyMerged(lagBytesMax: number): MergedState | undefined {
    const merged = this.#merged;
    if (merged === undefined || merged.state.byteLength < LONG_BYTES || this.#pendingBytes > lagBytesMax) return undefined;
    return merged.applied.seq >= (this.#checkpoint?.seq ?? 0) ? merged : undefined;
  }

  /** Taken edits were dropped. So this document is not saved again. */
  get isIncomplete(): boolean {
    return this.#isIncomplete;
  }

  /** Edits that no snapshot contains. */
  get leftOut(): number {
    return this.#leftOut;
  }

  /** Every edit that no snapshot has is no Yjs update, as the log shows. */
  get lacksOnlyRefused(): boolean {
    return this.#leftOut === this.#refused;
  }

  /** Most edits are no Yjs updates: only the room's application knows the content. */
  get isOpaque(): boolean {
    return this.#refused > 0 && this.#refused * 2 >= this.#applied.seq;
  }

  get heldBytes(): number {
    return this.#pendingBytes + (this.#merged?.state.byteLength ?? 0);
  }

  receiveRecord(stored: StoredRecord): RecordReceipt {
    return this.#receiveInOrder(stored, { acrossGap: false });
  }

  /** After a gap that no checkpoint explains: takes the record, and counts the missing edits as left out. */
  receiveAcrossGap(stored: StoredRecord): RecordReceipt {
    return this.#receiveInOrder(stored, { acrossGap: true });
  }

  #receiveInOrder(stored: StoredRecord, { acrossGap }: { acrossGap: boolean }): RecordReceipt {
    const bytes = stored.bytes.slice(); // The reader reuses its buffer.
    const record = decodeRecord(bytes);
    if (this.#isRepeat(record, stored.streamSeq)) return { kind: "repeat" };
    if (record === undefined || record.kind === "deleted") {
      this.#applied = { ...this.#applied, streamSeq: stored.streamSeq, recordId: recordIdOf(bytes) };
      this.#leftOut += 1;
      this.#uncover({ edits: 1, bytes: 0 }, stored);
      return { kind: "unreadable" };
    }
    const found = record.kind === "edits" ? record.edits.firstSeq : ((record.head + 1) as Seq);
    const expected = (this.#applied.seq + 1) as Seq;
    if (found !== expected && !acrossGap) return { kind: "gap", expected, found };

    if (found !== expected) this.#crossedFrom ??= expected;
    this.#leftOut += Math.abs(found - expected);
    const epoch = epochOf(record);
    const epochs = withNext(this.#applied.epochs, record);
    this.#applied = { epoch, seq: headOf(record), streamSeq: stored.streamSeq, recordId: record.id, epochs };
    return { kind: "applied", forgotten: record.kind === "edits" ? this.#takeEdits(record, stored) : 0 };
  }

  /** A log that lost its end gives the same stream sequences again, but never the same epochs with their seqs. */
  #isRepeat(record: LogRecord | undefined, streamSeq: number): boolean {
    const { epoch, seq, streamSeq: appliedStreamSeq, epochs } = this.#applied;
    if (record === undefined || record.kind === "deleted" || epochOf(record) < epoch) {
      if (streamSeq <= appliedStreamSeq) return true;
      const isOlder = record !== undefined && record.kind !== "deleted";
      return isOlder && checkPosition({ epoch: epochOf(record), seq: headOf(record) }, epochs, seq) === "of-this-log";
    }
    return epochOf(record) === epoch && (record.kind === "epoch" || headOf(record) <= seq);
  }

  #takeEdits(record: EditsRecord, stored: StoredRecord): number {
    const payloads = record.edits.edits.map(({ payload }) => payload);
    const users = record.edits.edits.map(({ client }) => record.users.get(client)!);
    const forgotten = this.#clients.receiveEdits(record, stored.time);
    this.#addPending({ payloads, users, bytes: stored.bytes.byteLength });
    this.#uncover({ edits: payloads.length, bytes: stored.bytes.byteLength }, stored);
    return forgotten;
  }

  #addPending(record: PendingRecord): void {
    this.#pending.push(record);
    this.#pendingEdits += record.payloads.length;
    this.#pendingBytes += record.bytes;
  }

  #uncover(more: { edits: number; bytes: number }, { streamSeq }: StoredRecord): void {
    const before = this.#uncovered ?? { edits: 0, bytes: 0, fromStreamSeq: streamSeq };
    this.#uncovered = { ...before, edits: before.edits + more.edits, bytes: before.bytes + more.bytes };
  }

  /** Takes back the state of the checkpoint's snapshot. */
  receiveState(state: Uint8Array): void {
    const checkpoint = this.#checkpoint;
    assert(checkpoint !== undefined && this.#merged === undefined, "a state is loaded where only the checkpoint has it");
    assert(!isBehind(checkpoint, this.#releasedAt), "no edit is missing between a snapshot and the pending edits");
    const { clients, leftOut = 0, refused = 0 } = checkpoint;
    this.#merged = { state, applied: appliedOf(checkpoint), clients, leftOut, refused };
  }

  /** The merge of all pending edits into the state; undefined: there are none, or edits before them were dropped. */
  planMerge(): PendingMerge | undefined {
    if (this.#isIncomplete) return undefined;
    if (this.#pending.length === 0 && this.#leftOut === this.#merged?.leftOut) return undefined;
    assert(this.#merged !== undefined, "edits are merged into a state that is here");
    return {
      base: this.#merged.state,
      records: this.#pending.length,
      edits: this.#pending.flatMap(({ payloads }) => payloads),
      authors: this.#authors.of(this.#pending.flatMap(({ users }) => users)),
      into: { applied: this.#applied, clients: this.#clients.all(), leftOut: this.#leftOut, refused: this.#refused },
    };
  }

  /** Returns Yjs client ids that a different user has written with before. */
  receiveMerged({ base, records, into }: PendingMerge, { state, refused, uses = [] }: MergedDocument): readonly DisputedYjsId[] {
    if (this.#merged?.state !== base) return []; // The document restarted from a newer checkpoint during the merge.
    this.#merged = { ...into, state, leftOut: into.leftOut + refused, refused: into.refused + refused };
    this.#leftOut += refused;
    this.#refused += refused;
    const rest = this.#pending.slice(records);
    this.#forgetPending();
    for (const record of rest) this.#addPending(record);
    return this.#authors.receiveUses(uses);
  }

  /** The room is deleted: drops everything. */
  clear(): void {
    this.#merged = { state: EMPTY_STATE, applied: this.#applied, clients: [], leftOut: 0, refused: 0 };
    this.#clients = new Watermarks([], this.#options);
    this.#checkpoint = undefined;
    this.#uncovered = undefined;
    this.#isIncomplete = false;
    this.#crossedFrom = undefined;
    this.#forgetPending();
  }

  /** Drops the pending edits. The next reader of the log reads them again. */
  dropPending(): void {
    this.#isIncomplete ||= this.#pending.length > 0;
    this.#forgetPending();
  }

  /** This service wrote a checkpoint. */
  receiveSaved(checkpoint: Checkpoint): void {
    if (checkpoint.seq >= (this.#crossedFrom ?? Infinity)) this.#crossedFrom = undefined;
    this.receiveStored(checkpoint);
  }

  /**
   * This service found a checkpoint, or none. A checkpoint that is newer than this document replaces the document.
   * Returns false if this document lacks edits that the checkpoint, or the log after it, has. Then it drops its content,
   * and the log must be read again from the checkpoint on.
   */
  receiveStored(checkpoint: Checkpoint | undefined): boolean {
    const stored = checkpoint ?? NOTHING_APPLIED;
    if (checkpoint !== undefined && isBehind(this.#applied, checkpoint)) {
      this.#startFrom(checkpoint);
      return true;
    }
    const continues = this.#continuesFrom(stored);
    if (!continues) this.#drop(stored);
    this.#checkpoint = checkpoint;
    const edits = this.#applied.seq - stored.seq;
    const coversAll = edits === 0 && this.#leftOut === (checkpoint?.leftOut ?? 0);
    this.#uncovered = coversAll ? undefined : { edits, bytes: this.#pendingBytes, fromStreamSeq: stored.streamSeq + 1 };
    return continues;
  }

  #continuesFrom(stored: DocumentPosition): boolean {
    if (this.#merged === undefined && isBehind(stored, this.#releasedAt)) return false; // The snapshot with the state is lost.
    return stored.seq < (this.#crossedFrom ?? Infinity); // Otherwise the checkpoint may have edits that this document lacks.
  }

  #drop(stored: DocumentPosition): void {
    this.#merged = undefined;
    this.#releasedAt = stored;
    this.#isIncomplete = true;
    this.#forgetPending();
  }

  /** Drops a state that the checkpoint's snapshot contains too. */
  releaseState(): void {
    if (this.#pending.length > 0 || this.#uncovered !== undefined || this.#checkpoint === undefined) return;
    if (this.#merged !== undefined) this.#releasedAt = this.#merged.applied;
    this.#merged = undefined;
  }

  #startFrom(checkpoint: Checkpoint): void {
    this.#checkpoint = checkpoint;
    this.#applied = appliedOf(checkpoint);
    this.#leftOut = checkpoint.leftOut ?? 0;
    this.#refused = checkpoint.refused ?? 0;
    this.#clients = new Watermarks(checkpoint.clients, this.#options);
    this.#merged = undefined;
    this.#releasedAt = checkpoint;
    this.#crossedFrom = undefined;
    this.#uncovered = undefined;
    this.#isIncomplete = false;
    this.#forgetPending();
  }

  #forgetPending(): void {
    this.#pending = [];
    this.#pendingEdits = 0;
    this.#pendingBytes = 0;
  }
}

/** Whether `other` includes a record that `position` does not. */
export function isBehind(position: DocumentPosition, other: DocumentPosition): boolean {
  if (position.epoch !== other.epoch) return position.epoch < other.epoch;
  return position.seq === other.seq ? position.streamSeq < other.streamSeq : position.seq < other.seq;
}

function appliedOf(checkpoint: Checkpoint): AppliedPosition {
  const { epoch, seq, streamSeq, recordId } = checkpoint;
  return { epoch, seq, streamSeq, recordId, epochs: epochsOf(checkpoint) };
}
