/**
 * Puts a room's committed edits into seq order for this gateway's members: what comes twice is dropped, what
 * comes early is held behind the gap, and nothing is let through that would leave a hole, or stand behind edits that
 * the log has lost. Rules ORD1 to ORD13.
 */

import type { Epoch, Position, Seq } from "../../shared/ids.ts";
import { SeldomMap } from "../../shared/seldom.ts";
import { readRuns, type Run } from "../../shared/wire/committed-edits.ts";
import { readWhole } from "../../shared/wire/fields.ts";

/** Committed edits as one frame's worth: their bytes as the log has them, and who wrote which. */
export type CommittedBatch = {
  readonly epoch: Epoch;
  readonly firstSeq: Seq;
  readonly lastSeq: Seq;
  readonly runs: readonly Run[];
  readonly bytes: Uint8Array;
};

export type Gap = { readonly after: Position; readonly through: Seq };

/** What a held batch costs beside its bytes. */
const HELD_OVERHEAD_BYTES = 200;

export class InOrder {
  readonly #heldBytesMax: number;
  readonly #held = new SeldomMap<Seq, CommittedBatch>();
  #heldBytes = 0;
  #position: Position | undefined;
  #isDoubtful = false;

  constructor(options: { heldBytesMax: number }) {
    this.#heldBytesMax = options.heldBytesMax;
  }

  /** How far members have been served. Undefined: not known yet, so that everything is held. */
  get position(): Position | undefined {
    return this.#position;
  }

  /** Whether the owner has still to say that its log has what was delivered. */
  get isDoubtful(): boolean {
    return this.#isDoubtful;
  }

  /** A later owner was heard, and not how it began: its log may have other edits up to here. Until that is known all is held. */
  doubt(): void {
    this.#isDoubtful = this.#position !== undefined && this.#position.seq > 0;
  }

  /** The owner goes on from the position. */
  confirm(): CommittedBatch[] {
    if (!this.#isDoubtful) return [];
    this.#isDoubtful = false;
    return this.#release();
  }

  /** The next owner begins behind the last: what was delivered up to there is of its log too. */
  receiveNext(begin: Position): void {
    if (this.#position?.seq === begin.seq && !this.#isDoubtful) this.#position = begin;
  }

  /** A later owner begins with all that its log has: what was delivered beyond that is of a log that has lost its end. */
  isBeyond(begin: Position): boolean {
    const position = this.#position;
    return position !== undefined && begin.epoch > position.epoch && begin.seq < position.seq;
  }

  /** What may be delivered now, in order. Often nothing or one. */
  receive(batch: CommittedBatch): CommittedBatch[] {
    const position = this.#position;
    if (position === undefined || this.#isDoubtful || batch.firstSeq > position.seq + 1) {
      this.#hold(batch);
      return [];
    }
    if (batch.lastSeq <= position.seq) return [];
    this.#position = { epoch: batch.epoch, seq: batch.lastSeq };
    return this.#held.size === 0 ? [batch] : [batch, ...this.#release()];
  }

  /** Begins, or begins anew, at a position that all members have. */
  startAt(position: Position): CommittedBatch[] {
    this.#position = position;
    this.#isDoubtful = false;
    return this.#release();
  }

  /** Another owner has taken over: what is held may be of a log that lost its end, and else is asked for again. */
  forgetHeld(): void {
    this.#held.clear();
    this.#heldBytes = 0;
  }

  /** What is missing before the first held. */
  gap(): Gap | undefined {
    if (this.#position === undefined || this.#isDoubtful || this.#held.size === 0) return undefined;
    const first = Math.min(...this.#held.keys());
    return { after: this.#position, through: (first - 1) as Seq };
  }

  /** Past the limit the batch is dropped: once the gap is filled, what follows is missing in its turn and asked for. */
  #hold(batch: CommittedBatch): void {
    if (this.#held.has(batch.firstSeq) || this.#heldBytes + costOf(batch) > this.#heldBytesMax) return;
    this.#held.set(batch.firstSeq, { ...batch, bytes: batch.bytes.slice() }); // The bus lends its bytes out of a larger buffer.
    this.#heldBytes += costOf(batch);
  }

  #release(): CommittedBatch[] {
    const released: CommittedBatch[] = [];
    for (const batch of [...this.#held.values()].sort((a, b) => a.firstSeq - b.firstSeq)) {
      const seq = this.#position?.seq ?? 0;
      if (batch.firstSeq > seq + 1) break;
      this.#held.delete(batch.firstSeq);
      this.#heldBytes -= costOf(batch);
      if (batch.lastSeq <= seq) continue;
      this.#position = { epoch: batch.epoch, seq: batch.lastSeq };
      released.push(batch);
    }
    return released;
  }
}

function costOf(batch: CommittedBatch): number {
  return batch.bytes.byteLength + HELD_OVERHEAD_BYTES;
}

/** Undefined for bytes that are no committed edits. */
export function batchFrom(bytes: Uint8Array): CommittedBatch | undefined {
  return readWhole(bytes, (input) => ({ ...readRuns(input), bytes }));
}
