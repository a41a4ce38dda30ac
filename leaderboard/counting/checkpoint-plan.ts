/**
 * Decides when a room's checkpoint is due, and which entries it covers. Coverage is kept per stream. A checkpoint
 * covers only entries that were received before it began: after [7, begin, 8, end] the first uncovered entry is 8.
 */

import { epochOf, headOf } from "../../shared/bus/record.ts";
import type { Millis, Seq } from "../../shared/ids.ts";
import { type CountedMark, countsEdit } from "../boards/board.ts";
import type { ReceivedEntry, Source } from "./received.ts";

type Uncovered = { readonly streamSeq: number; readonly since: Millis };

/** The first entry of one stream that no checkpoint covers. */
export class Coverage {
  #first: Uncovered | undefined;
  /** The first entry that a checkpoint being written will not cover. */
  #later: Uncovered | undefined;

  get from(): number | undefined {
    return this.#first?.streamSeq;
  }

  get since(): Millis | undefined {
    return this.#first?.since;
  }

  receiveEntry(streamSeq: number, now: Millis): void {
    this.#first ??= { streamSeq, since: now };
    this.#later ??= { streamSeq, since: now };
  }

  /** Treats everything received so far as covered. */
  forget(): void {
    this.#first = undefined;
  }

  beginCheckpoint(): void {
    this.#later = undefined;
  }

  endCheckpoint(): void {
    this.#first = this.#later;
  }
}

const NOTHING_COVERED = { seq: 0 as Seq, activity: 0, revision: 0 };

export class CheckpointPlan {
  readonly #checkpointMsMax: number;
  readonly #uncovered: Readonly<Record<Source, Coverage>> = { edits: new Coverage(), activities: new Coverage() };
  #covered: CountedMark & { readonly revision: number } = NOTHING_COVERED;

  constructor({ boardCheckpointMsMax }: { boardCheckpointMsMax: number }) {
    this.#checkpointMsMax = boardCheckpointMsMax;
  }

  /** The revision that the next checkpoint replaces. */
  get revision(): number {
    return this.#covered.revision;
  }

  uncoveredFrom(source: Source): number | undefined {
    return this.#uncovered[source].from;
  }

  /** Whether an entry has been in no checkpoint for too long. */
  isOverdue(now: Millis): boolean {
    const { edits, activities } = this.#uncovered;
    return now - Math.min(edits.since ?? now, activities.since ?? now) >= this.#checkpointMsMax;
  }

  /** The room's stored checkpoint is known. */
  receiveStored(mark: CountedMark & { readonly revision: number }): void {
    const { epoch, time, seq, activity, revision } = mark;
    this.#covered = { epoch, time, seq, activity, revision };
  }

  /** Entries that arrived before the stored checkpoint was known have to be received again. */
  forgetEntries(): void {
    for (const coverage of Object.values(this.#uncovered)) coverage.forget();
  }

  receiveEntry(received: ReceivedEntry, now: Millis): void {
    if (!this.#covers(received)) this.#uncovered[received.source].receiveEntry(received.streamSeq, now);
  }

  begin(): void {
    for (const coverage of Object.values(this.#uncovered)) coverage.beginCheckpoint();
  }

  end(written: CountedMark, revision: number): void {
    const { epoch, time, seq, activity } = written;
    this.#covered = { epoch, time, seq, activity, revision };
    for (const coverage of Object.values(this.#uncovered)) coverage.endCheckpoint();
  }

  #covers(received: ReceivedEntry): boolean {
    if (received.source === "activities") return received.streamSeq <= this.#covered.activity;
    return countsEdit(this.#covered, { epoch: epochOf(received.record), seq: headOf(received.record), time: received.time });
  }
}
