/** Decides up to which record one room's log may be trimmed, given its newest checkpoint. */

import type { Millis, UnixMillis } from "../../shared/ids.ts";

export type TrimOptions = { readonly replayWindowMs: number; readonly boardsHoldMsMax: number };

/** A record's place in the log, and a time at which the log had it. No record before it is younger. */
type Place = { readonly streamSeq: number; readonly since: Millis };
/** `writtenAt`: by the checkpoint's date, which another machine may have written. `since`: this service knows it. */
type CheckpointPlace = Place & { readonly writtenAt: Millis };
/** `records` and `bytes`: received up to this place. */
type Received = { readonly records: number; readonly bytes: number };
type Mark = Place & Received;

const NOTHING: Received = { records: 0, bytes: 0 };
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
  /** What was received, the place of the last record, and what is trimmed. */
  #received: Received = NOTHING;
  #lastStreamSeq = 0;
  #trimmed: Received = NOTHING;
  /** Bytes that an earlier run left in the log, up to this stream sequence. */
  #left = { bytes: 0, through: 0 };

  constructor(options: TrimOptions) {
    this.#options = options;
  }

  get trimmedBefore(): number {
    return this.#trimmedBefore;
  }

  /** Every record, in order. */
  receiveRecord({ streamSeq, since }: Place, time: UnixMillis, bytes: number): void {
    this.#received = { records: this.#received.records + 1, bytes: this.#received.bytes + bytes };
    this.#lastStreamSeq = streamSeq;
    // The record's date only measures the distance to the last mark, even if both were read at once. Its age never
    // depends on the date.
    if (Math.abs(time - this.#lastMarked) < this.#options.replayWindowMs / MARKS_PER_WINDOW) return;
    this.#lastMarked = time;
    this.#marks = this.#marks.concat({ streamSeq, since, ...this.#received }); // `push()` and spreading would reserve memory for sixteen more.
    if (this.#marks.length > MARKS_MAX) this.#marks = this.#marks.filter((_, index) => index % 2 === 0);
  }

  /**
   * Records before this stream sequence may be trimmed; undefined: none that was not trimmed already. `boardsFloor`:
   * the boards need no record up to it. `keptMsMin`: the room's records stay at least so long. A checkpoint's date counts
   * for this age alone. If it were wrong, it would also end the boards' hold, and they would never count the records.
   */
  before(checkpoint: CheckpointPlace, boardsFloor: number, now: Millis, keptMsMin = 0): number | undefined {
    const { boardsHoldMsMax } = this.#options;
    const replayWindowMs = Math.max(this.#options.replayWindowMs, keptMsMin);
    let before = 0;
    for (const { streamSeq, since } of [...this.#marks, checkpoint]) {
      const isOld = now - since > replayWindowMs || (streamSeq === checkpoint.streamSeq && now - checkpoint.writtenAt > replayWindowMs);
      const isHeld = streamSeq > boardsFloor + 1 && now - since <= boardsHoldMsMax;
      if (streamSeq <= checkpoint.streamSeq && isOld && !isHeld) before = Math.max(before, streamSeq);
    }
    return before > this.#trimmedBefore ? before : undefined;
  }

  /** Approximate number of received records up to this place that are not trimmed. */
  recordsThrough(streamSeq: number): number {
    return this.#receivedThrough(streamSeq).records - this.#trimmed.records;
  }

  /** The same in bytes, with those that an earlier run left. Without an argument: of the whole log. */
  bytesThrough(streamSeq = this.#lastStreamSeq): number {
    return this.#left.bytes + this.#receivedThrough(streamSeq).bytes - this.#trimmed.bytes;
  }

  /** The log had so many bytes up to that place when an earlier run last wrote the checkpoint. */
  receiveLeft(bytes: number, through: number): void {
    this.#left = { bytes, through };
  }

  #receivedThrough(streamSeq: number): Received {
    if (streamSeq >= this.#lastStreamSeq) return this.#received;
    return this.#marks.findLast((mark) => mark.streamSeq <= streamSeq) ?? this.#trimmed;
  }

  receiveTrimmed(before: number): void {
    if (before >= this.#left.through) this.#left = { bytes: 0, through: 0 };
    const { records, bytes } = this.#receivedThrough(before);
    this.#trimmed = { records, bytes };
    this.#trimmedBefore = before;
    this.#marks = this.#marks.filter(({ streamSeq }) => streamSeq > before);
  }
}
