/**
 * The edits of one room that the log does not hold yet: those in the append in flight, and those that wait
 * for it to settle and then share the next record. One append at a time keeps the log's order ours. A room that is held
 * back begins records more seldom, so that more edits share each. Rules GRP1 to GRP6.
 */

import { assert } from "../../shared/assert.ts";
import type { SubmittedEdit } from "../../shared/bus/envelope.ts";
import type { Millis } from "../../shared/ids.ts";
import type { Waits } from "./saving.ts";

export type UnackedEdit = SubmittedEdit & {
  readonly acceptedAt: Millis;
  /** Whether it went out as tentative. Never: it may not, for as long as it waits. */
  shown: "no" | "yes" | "never";
};

export type GroupCommitOptions = {
  readonly unackedEditsMax: number;
  readonly unackedBytesMax: number;
  /** Payload bytes in one record; no edit is larger. */
  readonly recordBytesMax: number;
};

const LONG_AGO = Number.NEGATIVE_INFINITY as Millis;
const NONE: readonly UnackedEdit[] = [];

export class GroupCommit {
  readonly #options: GroupCommitOptions;
  #inFlight: readonly UnackedEdit[] = NONE;
  #inFlightSince = LONG_AGO;
  #everyMs = 0;
  #waiting: UnackedEdit[] = [];
  #bytes = 0;

  constructor(options: GroupCommitOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#inFlight.length + this.#waiting.length;
  }

  /** It holds nothing, and begins records whenever there is something. */
  get isIdle(): boolean {
    return this.size === 0 && this.#everyMs === 0;
  }

  /** How many edits the append in flight carries. */
  get inFlight(): number {
    return this.#inFlight.length;
  }

  /** How long the append in flight takes by now, and how long the oldest edit has waited. */
  waits(now: Millis): Waits {
    const oldest = this.#inFlight[0] ?? this.#waiting[0];
    return {
      appendMs: this.#inFlight.length === 0 ? 0 : now - this.#inFlightSince,
      oldestMs: oldest === undefined ? 0 : now - oldest.acceptedAt,
    };
  }

  hasRoomFor(payload: Uint8Array): boolean {
    return this.size < this.#options.unackedEditsMax && this.#bytes + payload.byteLength <= this.#options.unackedBytesMax;
  }

  /** From now on no record begins sooner after the one before. 0: at once. */
  gatherFor(everyMs: number): void {
    this.#everyMs = everyMs;
  }

  /** Copies the payload: a view would keep the network's whole buffer. */
  add(edit: SubmittedEdit, now: Millis): UnackedEdit {
    const { author, counter, ackedThrough, parentSeq, payload } = edit;
    assert(payload.byteLength <= this.#options.recordBytesMax, "an edit too large for a record was refused before");
    const unacked: UnackedEdit = {
      author,
      counter,
      ackedThrough,
      parentSeq,
      payload: new Uint8Array(payload),
      acceptedAt: now,
      shown: "no",
    };
    this.#waiting.push(unacked);
    this.#bytes += payload.byteLength;
    return unacked;
  }

  /** The edits of the next record, which is in flight from now on. None while another is, too soon after it, or when nothing waits. */
  takeNext(now: Millis): readonly UnackedEdit[] {
    if (this.#inFlight.length > 0 || this.#waiting.length === 0 || now - this.#inFlightSince < this.#everyMs) return NONE;
    let count = 0;
    let bytes = 0;
    for (; count < this.#waiting.length; count++) {
      bytes += this.#waiting[count]!.payload.byteLength;
      if (bytes > this.#options.recordBytesMax) break;
    }
    this.#inFlight = count === this.#waiting.length ? this.#waiting : this.#waiting.slice(0, count);
    this.#waiting = this.#waiting.slice(count);
    this.#inFlightSince = now;
    return this.#inFlight;
  }

  /** The record in flight is in the log. */
  settle(): void {
    for (const { payload } of this.#inFlight) this.#bytes -= payload.byteLength;
    this.#inFlight = NONE;
  }

  /** Every unacked edit in order. */
  *edits(): Iterable<UnackedEdit> {
    yield* this.#inFlight;
    yield* this.#waiting;
  }
}
