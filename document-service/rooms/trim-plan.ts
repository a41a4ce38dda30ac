/** Decides up to which record one room's log may be trimmed, given its newest checkpoint. */

import type { Millis, UnixMillis } from "../../shared/ids.ts";

export type TrimOptions = { readonly replayWindowMs: number; readonly boardsHoldMsMax: number };

/** A record's place in the log, and a time at which the log had it. No record before it is younger. */
type Place = { readonly streamSeq: number; readonly since: Millis };
/** `records`: the number of records received up to this place. */
type Mark = Place & { readonly records: number };

/** Number of marks that represent all records of the replay window. A trim may be late by one mark, never early. */
const MARKS_PER_WINDOW = 20;
/**
 * While the boards delay trims, marks grow older than the window. Above this number every second mark is dropped, and
 * trims become later.
 */
const MARKS_MAX = 200;

/**
 * The records that may be trimmed. Nothing is lost, because a record is trimmed only if all of these hold: it is before
 * the record at the checkpoint's `streamSeq`, so uncovered records and at least one record stay (an empty subject would
 * restart its sequence at 0); it is older than the replay window, from which returning clients catch up; the boards'
 * checkpoints have it, or it was held for them for the maximum time.
 */
export class TrimPlan {
  readonly #options: TrimOptions;
  #marks: readonly Mark[] = [];
  #lastMarked = Number.NEGATIVE_INFINITY as UnixMillis;
  #trimmedBefore = 0;
  /** The number of records received, the place of the last one, and the number trimmed. */
  #records = 0;
  #lastStreamSeq = 0;
  #trimmedRecords = 0;

  constructor(options: TrimOptions) {
    this.#options = options;
  }

  get trimmedBefore(): number {
    return this.#trimmedBefore;
  }

  /** Every record, in order. */
  receiveRecord({ streamSeq, since }: Place, time: UnixMillis): void {
    this.#records += 1;
    this.#lastStreamSeq = streamSeq;
    // The record's date only measures the distance to the last mark, even if both were read at once. Its age never
    // depends on the date.
    if (Math.abs(time - this.#lastMarked) < this.#options.replayWindowMs / MARKS_PER_WINDOW) return;
    this.#lastMarked = time;
    this.#marks = this.#marks.concat({ streamSeq, since, records: this.#records }); // `push()` and spreading would reserve memory for sixteen more.
    if (this.#marks.length > MARKS_MAX) this.#marks = this.#marks.filter((_, index) => index % 2 === 0);
  }

  /**
   * Records before this stream sequence may be trimmed; undefined: none that was not trimmed already. `boardsFloor`:
   * the boards need no record up to it.
   */
  before(checkpoint: Place, boardsFloor: number, now: Millis): number | undefined {
    const { replayWindowMs, boardsHoldMsMax } = this.#options;
    let before = 0;
    for (const mark of [...this.#marks, checkpoint]) {
      const ageMsMin = mark.streamSeq <= boardsFloor + 1 ? replayWindowMs : Math.max(replayWindowMs, boardsHoldMsMax);
      if (mark.streamSeq <= checkpoint.streamSeq && now - mark.since > ageMsMin) before = Math.max(before, mark.streamSeq);
    }
    return before > this.#trimmedBefore ? before : undefined;
  }

  /** Approximate number of received records up to this place that are not trimmed. */
  recordsThrough(streamSeq: number): number {
    return this.#receivedThrough(streamSeq) - this.#trimmedRecords;
  }

  #receivedThrough(streamSeq: number): number {
    if (streamSeq >= this.#lastStreamSeq) return this.#records;
    return this.#marks.findLast((mark) => mark.streamSeq <= streamSeq)?.records ?? this.#trimmedRecords;
  }

  receiveTrimmed(before: number): void {
    this.#trimmedRecords = this.#receivedThrough(before);
    this.#trimmedBefore = before;
    this.#marks = this.#marks.filter(({ streamSeq }) => streamSeq > before);
  }
}
