/**
 * Puts a room's committed edits into seq order. Repeated edits are dropped, early ones are held behind the gap. No
 * batch passes that would leave a gap, or that follows edits that the log has lost. Rules ORD1 to ORD13.
 */

import type { Epoch, Position, Seq } from "../../shared/ids.ts";
import { LazyMap } from "../../shared/collections/lazy-map.ts";
import { readRuns, type CounterRun } from "../../shared/wire/committed-edits.ts";
import { decodeAll } from "../../shared/wire/fields.ts";

/** Committed edits of one frame: the bytes as the log has them, and the authors. */
export type CommittedBatch = {
  readonly epoch: Epoch;
  readonly firstSeq: Seq;
  readonly lastSeq: Seq;
  readonly runs: readonly CounterRun[];
  readonly bytes: Uint8Array;
};

export type Gap = { readonly after: Position; readonly through: Seq };

/** Memory of a held batch beside its bytes. */
const HELD_OVERHEAD_BYTES = 200;

export class InOrder {
  readonly #heldBytesMax: number;
  readonly #held = new LazyMap<Seq, CommittedBatch>();
  #heldBytes = 0;
  #position: Position | undefined;
  #isUnconfirmed = false;

  constructor(options: { heldBytesMax: number }) {
    this.#heldBytesMax = options.heldBytesMax;
  }

  /** Position that the members have. Undefined: not known yet, so that everything is held. */
  get position(): Position | undefined {
    return this.#position;
  }

  /** The owner has yet to confirm that its log contains the delivered edits. */
  get isUnconfirmed(): boolean {
    return this.#isUnconfirmed;
  }

  /** A new owner's log may have other edits up to here. Everything is held until that is known. */
  doubt(): void {
    this.#isUnconfirmed = this.#position !== undefined && this.#position.seq > 0;
  }

  /** The owner's log contains the position. */
  confirm(): CommittedBatch[] {
    if (!this.#isUnconfirmed) return [];
    this.#isUnconfirmed = false;
    return this.#release();
  }

  /** The next owner begins directly after the last one, so its log contains the delivered edits. */
  receiveNext(begin: Position): void {
    if (this.#position?.seq === begin.seq && !this.#isUnconfirmed) this.#position = begin;
  }

  /** Delivered edits beyond the beginning of a later owner are lost: its log does not contain them. */
  isBeyond(begin: Position): boolean {
    const position = this.#position;
    return position !== undefined && begin.epoch > position.epoch && begin.seq < position.seq;
  }

  /** Returns the batches to deliver now, in order. */
  receiveBatch(batch: CommittedBatch): CommittedBatch[] {
    const position = this.#position;
    if (position === undefined || this.#isUnconfirmed || batch.firstSeq > position.seq + 1) {
      this.#hold(batch);
      return [];
    }
    if (batch.lastSeq <= position.seq) return [];
    this.#position = { epoch: batch.epoch, seq: batch.lastSeq };
    return this.#held.size === 0 ? [batch] : [batch, ...this.#release()];
  }

  /** Begins at a position that all members have. */
  startAt(position: Position): CommittedBatch[] {
    this.#position = position;
    this.#isUnconfirmed = false;
    return this.#release();
  }

  /** Held batches of the former owner may be lost from the log. If not, they are requested again. */
  forgetHeld(): void {
    this.#held.clear();
    this.#heldBytes = 0;
  }

  /** The missing edits before the first held batch. */
  gap(): Gap | undefined {
    if (this.#position === undefined || this.#isUnconfirmed || this.#held.size === 0) return undefined;
    const first = Math.min(...this.#held.keys());
    return { after: this.#position, through: (first - 1) as Seq };
  }

  /** A batch beyond the limit is dropped. Once the gap is closed, the dropped one is the next gap and is requested. */
  #hold(batch: CommittedBatch): void {
    if (this.#held.has(batch.firstSeq) || this.#heldBytes + costOf(batch) > this.#heldBytesMax) return;
    this.#held.set(batch.firstSeq, { ...batch, bytes: batch.bytes.slice() }); // NATS reuses the buffer of these bytes.
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

/** Undefined: the bytes are no committed edits. */
export function batchFrom(bytes: Uint8Array): CommittedBatch | undefined {
  return decodeAll(bytes, (input) => ({ ...readRuns(input), bytes }));
}
