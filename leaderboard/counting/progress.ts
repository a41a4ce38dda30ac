/**
 * The progress of a pass on both streams: the entries that are received, counted and sent as totals, and the floor at
 * which the next pass may begin. The floor rises only after a sentinel proves that Redis has everything below it.
 */

import { assert } from "../../shared/assert.ts";
import type { RecordPlace } from "../../shared/bus/record.ts";
import type { Sentinel } from "../../shared/cluster/lease.ts";
import type { UnixMillis } from "../../shared/ids.ts";
import type { ClosedTenant, Closing, SentinelWrite } from "../ports.ts";
import { type Source, SOURCES } from "./received.ts";

export type StreamEnds = Readonly<Record<Source, number>>;

export class CountingProgress {
  readonly #received: Record<Source, number>;
  /**
   * The ends of the streams at the time `asked`. Once the entries up to these ends are counted, all entries before
   * `asked` are counted.
   */
  #target: { readonly ends: StreamEnds; readonly asked: UnixMillis } | undefined;
  #through: UnixMillis;
  #totalsSent = 0 as UnixMillis;
  #hasCaughtUp = false;
  /** The open question for the ends of the streams: its time, and the progress at that time. */
  #asking: { readonly asked: UnixMillis; readonly received: StreamEnds; readonly ends: StreamEnds | undefined } | undefined;

  /** `through`: progress of the previous pass, for readers that ask meanwhile. */
  constructor(received: StreamEnds, through: UnixMillis) {
    this.#received = { ...received };
    this.#through = through;
  }

  /** The last stream sequences that rooms received. */
  get received(): StreamEnds {
    return { ...this.#received };
  }

  /** All entries that the streams stored before this date are counted. 0: not known. */
  get through(): UnixMillis {
    return this.#through;
  }

  /** Like `through`, with the rooms' totals also sent to the tenants' boards. */
  get totalsSent(): UnixMillis {
    return this.#totalsSent;
  }

  get hasCaughtUp(): boolean {
    return this.#hasCaughtUp;
  }

  /** Continues from the progress that the previous leaderboard reported. */
  resume(last: { readonly through: UnixMillis } | undefined): void {
    if (last !== undefined && last.through > this.#through) this.#through = last.through;
  }

  receiveEntry(source: Source, streamSeq: number): void {
    this.#received[source] = Math.max(this.#received[source], streamSeq);
  }

  /** The streams are about to be asked for their ends. */
  beginAsking(asked: UnixMillis): void {
    this.#asking = { asked, received: this.received, ends: undefined };
  }

  /** Returns what to do next. `lost`: the stream of activities ends before the last entry that was read, so the pass has to end. */
  receiveEnds(ends: StreamEnds): { readonly kind: "ask-last" | "aimed" } | { readonly kind: "lost"; readonly message: string } {
    const asking = this.#asking;
    if (asking === undefined) return { kind: "aimed" };
    // The reader of the log notices itself if the log ends before the last record that was read.
    const { activities } = asking.received;
    if (ends.activities < activities) return { kind: "lost", message: messageOf(ends.activities, activities) };
    this.#asking = { ...asking, ends };
    // Activities of deleted rooms are removed before they are counted; the last activity may be one of them.
    if (ends.activities > asking.received.activities) return { kind: "ask-last" };
    this.receiveLastActivity(ends.activities);
    return { kind: "aimed" };
  }

  receiveLastActivity(last: number): void {
    if (this.#asking?.ends !== undefined) this.aimAt({ edits: this.#asking.ends.edits, activities: last }, this.#asking.asked);
    this.#asking = undefined;
  }

  /**
   * The answer to the question at `asked` for the ends of the streams. The lower of two answers counts, because entries
   * that were removed in between never arrive.
   */
  aimAt(ends: StreamEnds, asked: UnixMillis): void {
    const target = this.#target ?? { ends, asked };
    const lower = (source: Source): number => Math.min(target.ends[source], ends[source]);
    this.#target = { asked: target.asked, ends: { edits: lower("edits"), activities: lower("activities") } };
  }

  /** All entries received up to `counted` are counted. Returns true when the pass has caught up for the first time. */
  receiveCounted(counted: StreamEnds): boolean {
    const target = this.#target;
    if (target === undefined || SOURCES.some((source) => counted[source] < target.ends[source])) return false;
    this.#through = target.asked;
    this.#target = undefined;
    const isFirst = !this.#hasCaughtUp;
    this.#hasCaughtUp = true;
    return isFirst;
  }

  /** All totals were sent after everything up to `through` was counted. */
  receiveTotalsSent(through: UnixMillis): void {
    this.#totalsSent = through;
  }
}

function messageOf(end: number, received: number): string {
  return `the stream of activities ends at ${end}, before ${received} which had been read: it was lost or restored from a backup`;
}

/**
 * `edits`: the stream sequence. `sentinel`: the last known sentinel; undefined: none is known. `last`: a record at or
 * before the floor that the log had. `acceptsGaps`: see `CheckpointFloor`.
 */
export type LogFloor = {
  readonly edits: number;
  readonly sentinel: Sentinel | undefined;
  readonly last?: RecordPlace | undefined;
  readonly acceptsGaps?: boolean;
};

/** The purpose of a sentinel. `subject`: a window that is about to be archived. */
export type SentinelPurpose =
  { readonly kind: "start" | "heartbeat" | "drain" } | { readonly kind: "confirm"; readonly subject: Closing | ClosedTenant };

/**
 * The position at which the next pass may begin. Checkpoints contain everything below the floor. Redis contains it too
 * if it has the sentinel that was written afterwards. A pass that finds this sentinel, or a later one, counts nothing
 * below the floor.
 */
export class CheckpointFloor {
  #floor: LogFloor;
  #last: RecordPlace | undefined;
  #acceptsGaps: boolean;
  /** The position up to which checkpoints contain everything. */
  #covered: StreamEnds;
  /** The position up to which checkpoints contain everything, and Redis too, as a later sentinel proves. */
  #kept: StreamEnds;
  /** The sentinel that is being written. It proves `covered`; Redis may still lack later checkpoints. */
  #writing: { readonly covered: StreamEnds; readonly purposes: readonly SentinelPurpose[] } | undefined;
  /** Purposes that need a sentinel that is sent after they were added. */
  #waiting: SentinelPurpose[] = [];

  constructor(floor: LogFloor) {
    this.#floor = floor;
    this.#last = floor.last;
    this.#acceptsGaps = floor.edits === 0 || floor.acceptsGaps === true;
    this.#covered = this.#kept = { edits: floor.edits, activities: 0 };
  }

  get floor(): LogFloor {
    return this.#floor;
  }

  get kept(): StreamEnds {
    return this.#kept;
  }

  /**
   * Redis has counted the log from its first record, so edits missing in the log are lost. False after boards may have
   * been restored from checkpoints, or when another process counted before: one of those checkpoints may have been lost.
   * So at most one complete reading of the log follows each such event.
   */
  get acceptsGaps(): boolean {
    return this.#acceptsGaps;
  }

  /** The log had this record. */
  receiveRecord(last: RecordPlace): void {
    this.#last = last;
  }

  /**
   * The log's end or a checkpoint below the floor was lost, so the next pass begins at the log's first record. Rooms skip
   * counted entries by epoch and seq.
   */
  reset(): LogFloor {
    this.#last = undefined;
    this.#covered = this.#kept = { edits: 0, activities: 0 };
    if (this.#writing !== undefined) this.#writing = { ...this.#writing, covered: this.#covered };
    this.#floor = { edits: 0, sentinel: this.#floor.sentinel };
    return this.#floor;
  }

  /** Checkpoints contain everything up to `covered`. The floor rises only with the next sentinel. */
  cover(covered: StreamEnds): void {
    const [edits, activities] = SOURCES.map((source) => Math.max(this.#covered[source], covered[source])) as [number, number];
    this.#covered = { edits, activities };
  }

  /** Call `beginSentinel` next. */
  requestSentinel(purpose: SentinelPurpose): void {
    this.#waiting.push(purpose);
  }

  /** Whether a sentinel has to be written now. One sentinel at a time serves all waiting callers. */
  beginSentinel(): boolean {
    if (this.#writing !== undefined || this.#waiting.length === 0) return false;
    this.#writing = { covered: this.#covered, purposes: this.#waiting };
    this.#waiting = [];
    return true;
  }

  /** Returns the purposes of the sentinel. */
  receiveBeat(beat: SentinelWrite): readonly SentinelPurpose[] {
    assert(this.#writing !== undefined, "a sentinel was being written");
    const { covered, purposes } = this.#writing;
    this.#writing = undefined;
    if (beat.kind !== "kept") this.#acceptsGaps = this.#floor.edits === 0;
    if (beat.kind !== "lost") this.#raise(beat.kind === "kept" ? covered : this.#kept, beat.sentinel);
    return purposes;
  }

  /** Redis has all boards of the checkpoints again. */
  receiveBegun(sentinel: Sentinel): void {
    this.#raise(this.#kept, sentinel);
  }

  #raise(kept: StreamEnds, sentinel: Sentinel): void {
    this.#kept = kept;
    this.#floor = { edits: kept.edits, sentinel, last: this.#last, acceptsGaps: this.#acceptsGaps };
  }
}
