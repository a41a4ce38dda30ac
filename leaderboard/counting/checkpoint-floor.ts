/**
 * Where the next pass may begin. Everything below the floor is in checkpoints, and also in Redis if the sentinel that was
 * written afterwards is there. A pass that finds this sentinel, or a later one, has nothing below the floor to count.
 */

import { assert } from "../../shared/assert.ts";
import type { Sentinel } from "../../shared/cluster/lease.ts";
import type { SentinelWrite, ClosedTenant, Closing } from "../ports.ts";
import { SOURCES } from "./instants.ts";
import type { StreamEnds } from "./progress.ts";

/** `edits`: the stream sequence. `said`: the last known sentinel; undefined when none is known. */
export type LogFloor = { readonly edits: number; readonly said: Sentinel | undefined };

/** Why a sentinel is written: `subject` is a window that is about to be archived. */
export type SentinelPurpose =
  { readonly kind: "start" | "heartbeat" | "drain" } | { readonly kind: "confirm"; readonly subject: Closing | ClosedTenant };

export class CheckpointFloor {
  #floor: LogFloor;
  /** In checkpoints. */
  #covered: StreamEnds;
  /** In checkpoints, and in Redis as a later sentinel proves. */
  #kept: StreamEnds;
  /** The sentinel that is being written. `covered`: later checkpoints may be missing from Redis when it is there. */
  #writing: { readonly covered: StreamEnds; readonly purposes: readonly SentinelPurpose[] } | undefined;
  /** They need a sentinel that is sent after they asked. */
  #waiting: SentinelPurpose[] = [];

  constructor(floor: LogFloor) {
    this.#floor = floor;
    this.#covered = this.#kept = { edits: floor.edits, activities: 0 };
  }

  get floor(): LogFloor {
    return this.#floor;
  }

  get kept(): StreamEnds {
    return this.#kept;
  }

  /** Everything up to `covered` is in checkpoints. The floor rises only with the next sentinel. */
  cover(covered: StreamEnds): void {
    const [edits, activities] = SOURCES.map((source) => Math.max(this.#covered[source], covered[source])) as [number, number];
    this.#covered = { edits, activities };
  }

  /** Call `beginSentinel` next. */
  requestSentinel(purpose: SentinelPurpose): void {
    this.#waiting.push(purpose);
  }

  /** Whether a sentinel has to be written now: one at a time, for all that wait. */
  beginSentinel(): boolean {
    if (this.#writing !== undefined || this.#waiting.length === 0) return false;
    this.#writing = { covered: this.#covered, purposes: this.#waiting };
    this.#waiting = [];
    return true;
  }

  /** Returns what the sentinel was for. */
  receiveBeat(beat: SentinelWrite): readonly SentinelPurpose[] {
    assert(this.#writing !== undefined, "a sentinel was being written");
    const { covered, purposes } = this.#writing;
    this.#writing = undefined;
    if (beat.kind !== "lost") this.#raise(beat.kind === "kept" ? covered : this.#kept, beat.said);
    return purposes;
  }

  /** Redis has all boards again that checkpoints had. */
  receiveBegun(said: Sentinel): void {
    this.#raise(this.#kept, said);
  }

  #raise(kept: StreamEnds, said: Sentinel): void {
    this.#kept = kept;
    this.#floor = { edits: kept.edits, said };
  }
}
