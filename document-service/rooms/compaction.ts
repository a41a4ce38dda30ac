/** When a room's snapshot is written anew, and how far its log may then be trimmed. */

import type { Millis, UnixMillis } from "../../shared/ids.ts";

/** What the newest checkpoint does not cover. No record of it stands before `fromStreamSeq`. */
export type Uncovered = { readonly edits: number; readonly bytes: number; readonly fromStreamSeq: number };

export type SnapshotPolicy = {
  readonly snapshotEditsMax: number;
  readonly snapshotBytesMax: number;
  readonly snapshotAgeMsMax: number;
  /** A busy room is not written more often than this, whatever else says so. */
  readonly snapshotIntervalMsMin: number;
};

/** `since`: when the first of it was read here. */
export function isSnapshotDue(
  uncovered: Uncovered & { readonly since: Millis },
  lastSaved: Millis | undefined,
  policy: SnapshotPolicy,
  now: Millis,
): boolean {
  if (lastSaved !== undefined && now - lastSaved < policy.snapshotIntervalMsMin) return false;
  return (
    uncovered.edits >= policy.snapshotEditsMax ||
    uncovered.bytes >= policy.snapshotBytesMax ||
    now - uncovered.since >= policy.snapshotAgeMsMax
  );
}

export type TrimOptions = { readonly replayWindowMs: number; readonly boardsHoldMsMax: number };

/** A record's place in the log, and since when it has been there at the least: no record before it is younger. */
type Place = { readonly streamSeq: number; readonly since: Millis };
/** `records`: received up to it. */
type Mark = Place & { readonly records: number };

/** So many marks stand for all records of the replay window: a trim may come so much later, never sooner. */
const MARKS_PER_WINDOW = 20;
/** While the boards hold the log back, marks grow older than the window; past it every second one goes, and trims come later. */
const MARKS_MAX = 200;

/**
 * What of a room's log may go. The rule, and why nothing is ever lost by it: only records before the one
 * at the checkpoint's `streamSeq`, so that what is not in a snapshot stays, and so does at least that one
 * record (a subject without any would begin its sequence at 0 again); only records older than the replay
 * window, which clients coming back are caught up from; and only records that the boards have in their own
 * checkpoints, or that have waited for that for so long that the log stops waiting.
 */
export class TrimPlan {
  readonly #options: TrimOptions;
  #marks: readonly Mark[] = [];
  #lastMarked = Number.NEGATIVE_INFINITY as UnixMillis;
  #trimmedBefore = 0;
  /** Received; up to which place, and how many of them are trimmed. */
  #records = 0;
  #lastStreamSeq = 0;
  #trimmedRecords = 0;

  constructor(options: TrimOptions) {
    this.#options = options;
  }

  get trimmedBefore(): number {
    return this.#trimmedBefore;
  }

  /** Every record in order. */
  receiveRecord({ streamSeq, since }: Place, time: UnixMillis): void {
    this.#records += 1;
    this.#lastStreamSeq = streamSeq;
    // Its date says how far it stands from the one marked before, also where both were read at once; its age never goes by it.
    if (Math.abs(time - this.#lastMarked) < this.#options.replayWindowMs / MARKS_PER_WINDOW) return;
    this.#lastMarked = time;
    this.#marks = this.#marks.concat({ streamSeq, since, records: this.#records }); // push(), and spreading, would make room for sixteen more.
    if (this.#marks.length > MARKS_MAX) this.#marks = this.#marks.filter((_, index) => index % 2 === 0);
  }

  /**
   * Records before this stream sequence may go; undefined: none that has not gone already. `boardsFloor`: the boards
   * need nothing up to it.
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

  /** About how many that were received stand there and are not trimmed. */
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
