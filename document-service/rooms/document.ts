/**
 * One room's document, built from the room's records in the order of the log. It holds a merged state, the
 * edits that came after, and knows what the newest checkpoint covers; merging and storing are done by its
 * host, which reports back what became of them.
 *
 * A record at or below what was applied is a repeat and changes nothing: a reader of the log may begin
 * anywhere before. A record that leaves a hole is refused until the host has looked for a newer checkpoint.
 */

import type { StoredRecord } from "../../shared/bus/stored-record.ts";
import { assert } from "../../shared/assert.ts";
import { type Checkpoint, epochsOf } from "../../shared/bus/checkpoint.ts";
import { type EpochHistory, NO_EPOCHS, withNext } from "../../shared/bus/epoch-history.ts";
import { decodeRecord, type EditsRecord, epochOf, headOf } from "../../shared/bus/record.ts";
import { type Position, type Seq, START } from "../../shared/ids.ts";
import type { Uncovered } from "./compaction.ts";
import { EMPTY_STATE, type Merged } from "../merge.ts";
import { type Watermark, Watermarks, type WatermarksOptions } from "./watermarks.ts";

/** How far the room's log has been taken in. */
export type Applied = Position & { readonly streamSeq: number; readonly epochs: EpochHistory };

export type Received =
  /** `forgotten`: writers that the next checkpoint leaves out for want of room. */
  | { kind: "applied"; forgotten: number }
  | { kind: "repeat" }
  /** The bytes are no record: counted as left out. */
  | { kind: "unreadable" }
  /** The edits up to `expected` are missing; nothing was taken of the record. */
  | { kind: "gap"; expected: Seq; found: Seq };

/** A state, and all that a checkpoint says of it. */
export type MergedState = {
  readonly state: Uint8Array;
  readonly applied: Applied;
  readonly clients: readonly Watermark[];
  readonly leftOut: number;
};

/** What one merge is given. */
export type Merge = {
  readonly base: Uint8Array;
  readonly records: number;
  readonly edits: readonly Uint8Array[];
  readonly into: Omit<MergedState, "state">;
};

/** The payloads are views into one copy of the record: `bytes` long. */
type PendingRecord = { readonly payloads: readonly Uint8Array[]; readonly bytes: number };

/** Shorter ones are merged in no time. */
const LONG_BYTES = 1024 ** 2;

const NOTHING_APPLIED: Applied = { ...START, streamSeq: 0, epochs: NO_EPOCHS };

export class Document {
  #checkpoint: Checkpoint | undefined;
  #applied = NOTHING_APPLIED;
  #leftOut = 0;
  #pendingEdits = 0;
  #pendingBytes = 0;
  readonly #options: WatermarksOptions;
  #clients: Watermarks;
  /** Undefined while the state lies in the checkpoint's snapshot only. */
  #merged: MergedState | undefined;
  /** The edits after the merged state, record by record. */
  #pending: PendingRecord[] = [];
  /** Some of them were dropped. */
  #isIncomplete = false;
  #uncovered: Uncovered | undefined;

  constructor(checkpoint: Checkpoint | undefined, options: WatermarksOptions) {
    this.#options = options;
    this.#clients = new Watermarks([], options);
    this.#merged = { state: EMPTY_STATE, applied: this.#applied, clients: [], leftOut: 0 };
    if (checkpoint !== undefined) this.#startFrom(checkpoint);
  }

  get checkpoint(): Checkpoint | undefined {
    return this.#checkpoint;
  }

  get applied(): Applied {
    return this.#applied;
  }

  /** Nothing was ever written in it. */
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
   * The state of a long document that lacks few edits: whoever joins from there is sent them sooner than they are merged.
   * Undefined: it has to be merged. What lies behind a checkpoint may be gone from the log.
   */
  nearlyMerged(lagBytesMax: number): MergedState | undefined {
    const merged = this.#merged;
    if (merged === undefined || merged.state.byteLength < LONG_BYTES || this.#pendingBytes > lagBytesMax) return undefined;
    return merged.applied.seq >= (this.#checkpoint?.seq ?? 0) ? merged : undefined;
  }

  /** Edits that no snapshot has: they are in the log only, which must stay whole. */
  get leftOut(): number {
    return this.#leftOut;
  }

  get heldBytes(): number {
    return this.#pendingBytes + (this.#merged?.state.byteLength ?? 0);
  }

  receiveRecord(stored: StoredRecord): Received {
    return this.#receive(stored, { acrossGap: false });
  }

  /** After a gap that no checkpoint explains: takes what there is, and counts what is missing as left out. */
  receiveAcrossGap(stored: StoredRecord): Received {
    return this.#receive(stored, { acrossGap: true });
  }

  #receive(stored: StoredRecord, { acrossGap }: { acrossGap: boolean }): Received {
    if (stored.streamSeq <= this.#applied.streamSeq) return { kind: "repeat" };
    const bytes = stored.bytes.slice(); // The reader's buffer is not for keeping.
    const record = decodeRecord(bytes);
    if (record === undefined || record.kind === "deleted") {
      this.#applied = { ...this.#applied, streamSeq: stored.streamSeq };
      this.#leftOut += 1;
      this.#uncover({ edits: 1, bytes: 0 }, stored);
      return { kind: "unreadable" };
    }
    const found = record.kind === "edits" ? record.edits.firstSeq : ((record.head + 1) as Seq);
    const expected = (this.#applied.seq + 1) as Seq;
    if (found !== expected && !acrossGap) return { kind: "gap", expected, found };

    this.#leftOut += Math.abs(found - expected);
    const epoch = epochOf(record);
    const epochs = withNext(this.#applied.epochs, record);
    this.#applied = { epoch, seq: headOf(record), streamSeq: stored.streamSeq, epochs };
    return { kind: "applied", forgotten: record.kind === "edits" ? this.#takeEdits(record, stored) : 0 };
  }

  #takeEdits(record: EditsRecord, stored: StoredRecord): number {
    const payloads = record.edits.edits.map(({ payload }) => payload);
    const forgotten = this.#clients.receiveEdits(record);
    this.#addPending({ payloads, bytes: stored.bytes.byteLength });
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

  /** The state that the checkpoint names, where it was let go. */
  receiveState(state: Uint8Array): void {
    const checkpoint = this.#checkpoint;
    assert(checkpoint !== undefined && this.#merged === undefined, "a state is loaded where only the checkpoint has it");
    this.#merged = { state, applied: appliedOf(checkpoint), clients: checkpoint.clients, leftOut: checkpoint.leftOut ?? 0 };
  }

  /** All edits that wait, to be merged into the state; undefined: none do, or some that belong before what could be merged are gone. */
  planMerge(): Merge | undefined {
    if (this.#isIncomplete) return undefined;
    if (this.#pending.length === 0 && this.#leftOut === this.#merged?.leftOut) return undefined;
    assert(this.#merged !== undefined, "edits are merged into a state that is here");
    return {
      base: this.#merged.state,
      records: this.#pending.length,
      edits: this.#pending.flatMap(({ payloads }) => payloads),
      into: { applied: this.#applied, clients: this.#clients.all(), leftOut: this.#leftOut },
    };
  }

  receiveMerged({ base, records, into }: Merge, { state, refused }: Merged): void {
    if (this.#merged?.state !== base) return; // The document began again from a newer checkpoint meanwhile.
    this.#merged = { ...into, state, leftOut: into.leftOut + refused };
    this.#leftOut += refused;
    const rest = this.#pending.slice(records);
    this.#forgetPending();
    for (const record of rest) this.#addPending(record);
  }

  /** The room is deleted: nothing is held of it any more. */
  clear(): void {
    this.#merged = { state: EMPTY_STATE, applied: this.#applied, clients: [], leftOut: 0 };
    this.#clients = new Watermarks([], this.#options);
    this.#checkpoint = undefined;
    this.#uncovered = undefined;
    this.#isIncomplete = false;
    this.#forgetPending();
  }

  /** They are read from the log again when somebody begins anew. */
  dropPending(): void {
    this.#isIncomplete ||= this.#pending.length > 0;
    this.#forgetPending();
  }

  /** Ours was written, or somebody else's was found. One that is ahead of us replaces all we have. */
  receiveCheckpoint(checkpoint: Checkpoint): void {
    if (checkpoint.streamSeq > this.#applied.streamSeq) return this.#startFrom(checkpoint);
    this.#checkpoint = checkpoint;
    const edits = this.#applied.seq - checkpoint.seq;
    const coversAll = edits === 0 && this.#leftOut === (checkpoint.leftOut ?? 0);
    this.#uncovered = coversAll ? undefined : { edits, bytes: this.#pendingBytes, fromStreamSeq: checkpoint.streamSeq + 1 };
  }

  /** Lets go of a state that the checkpoint's snapshot has as well. */
  releaseState(): void {
    if (this.#pending.length === 0 && this.#uncovered === undefined && this.#checkpoint !== undefined) this.#merged = undefined;
  }

  #startFrom(checkpoint: Checkpoint): void {
    this.#checkpoint = checkpoint;
    this.#applied = appliedOf(checkpoint);
    this.#leftOut = checkpoint.leftOut ?? 0;
    this.#clients = new Watermarks(checkpoint.clients, this.#options);
    this.#merged = undefined;
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

function appliedOf(checkpoint: Checkpoint): Applied {
  const { epoch, seq, streamSeq } = checkpoint;
  return { epoch, seq, streamSeq, epochs: epochsOf(checkpoint) };
}
