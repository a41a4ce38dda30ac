/**
 * Puts a room's committed edits into seq order: what comes twice is dropped, what comes early is held behind
 * the gap, the gap is asked for, and nothing is let through that would leave a hole. Rules INB1 to INB6.
 */

import { type ClientId, type Epoch, type Millis, type Position, type Seq, START } from "../../shared/ids.ts";
import type { Counter } from "../../shared/wire/frames.ts";

/** A committed edit as the application gets it. `own`: it made the edit itself, or was given it back as `restored`: it has it. */
export type RoomEdit = {
  readonly seq: Seq;
  readonly client: ClientId;
  readonly counter: Counter;
  readonly payload: Uint8Array;
  readonly own: boolean;
};

/** Edits whose seqs follow each other. */
export type Batch = { readonly epoch: Epoch; readonly edits: readonly RoomEdit[] };

export type InboxOptions = {
  readonly heldBytesMax: number;
  /** A range asked for that did not come within so long is asked for again. */
  readonly replayMsMax: number;
  /** Asked for so often in vain, the room is joined anew. */
  readonly replaysMax: number;
};

export type Repair = { readonly kind: "replay"; readonly after: Seq; readonly through: Seq } | { readonly kind: "rejoin" };

export class Inbox {
  readonly #options: InboxOptions;
  #position: Position = START;
  /** Each begins beyond the position; by first seq. */
  readonly #held = new Map<Seq, Batch>();
  #heldBytes = 0;
  /** The highest seq known to be committed without its edit: what is missing up to there nobody sends unasked. */
  #told = 0;
  /** The gap before the first held, or up to what was told: when to ask for it next, and how often that was done. */
  #gap: { after: Seq; dueAt: Millis; asked: number } | undefined;

  constructor(options: InboxOptions) {
    this.#options = options;
  }

  get position(): Position {
    return this.#position;
  }

  /** When `planRepair` has something to say. */
  get dueAt(): Millis | undefined {
    return this.#gap?.dueAt;
  }

  /** What may be delivered now, in order. `patienceMs`: how long a gap may fill by itself. */
  receive(batch: Batch, patienceMs: number, now: Millis): Batch[] {
    const next = this.#position.seq + 1;
    const first = batch.edits[0];
    if (first === undefined) return [];
    if (first.seq > next) {
      this.#hold(first.seq, batch);
      this.#watchGap(patienceMs, now);
      return [];
    }
    const fresh = this.#advance(batch);
    const delivered = fresh === undefined ? [] : [fresh];
    if (this.#held.size > 0) this.#release(delivered);
    this.#watchGap(patienceMs, now);
    return delivered;
  }

  /** Edits up to there are committed. Those that were not received before come only if they are asked for. */
  receiveHead(head: Seq, patienceMs: number, now: Millis): void {
    if (head <= Math.max(this.#position.seq, this.#told)) return;
    this.#told = head;
    this.#watchGap(patienceMs, now);
  }

  /** Begins anew where a snapshot ends. */
  startAt(position: Position): void {
    this.#position = position;
    this.forgetHeld();
  }

  /** The line is lost: the next join replays from the position. */
  forgetHeld(): void {
    this.#held.clear();
    this.#heldBytes = 0;
    this.#told = 0;
    this.#gap = undefined;
  }

  planRepair(now: Millis): Repair | undefined {
    const gap = this.#gap;
    if (gap === undefined || now < gap.dueAt) return undefined;
    if (gap.asked >= this.#options.replaysMax) {
      this.forgetHeld();
      return { kind: "rejoin" };
    }
    gap.asked += 1;
    gap.dueAt = (now + this.#options.replayMsMax * gap.asked) as Millis;
    return { kind: "replay", after: this.#position.seq, through: (this.#held.size > 0 ? this.#firstHeld() - 1 : this.#told) as Seq };
  }

  /** The part of the batch that is new. */
  #advance(batch: Batch): Batch | undefined {
    const { seq } = this.#position;
    const last = batch.edits.at(-1)!.seq;
    if (last <= seq) return undefined;
    const known = seq + 1 - batch.edits[0]!.seq;
    this.#position = { epoch: batch.epoch, seq: last };
    return known === 0 ? batch : { epoch: batch.epoch, edits: batch.edits.slice(known) };
  }

  /** Past the limit it is dropped: once the gap is filled, it is missing in its turn and asked for. */
  #hold(firstSeq: Seq, batch: Batch): void {
    const bytes = bytesOf(batch);
    const before = this.#held.get(firstSeq);
    if (before !== undefined && before.edits.length >= batch.edits.length) return;
    const grown = bytes - (before === undefined ? 0 : bytesOf(before));
    if (this.#held.size > 0 && this.#heldBytes + grown > this.#options.heldBytesMax) return;
    this.#held.set(firstSeq, batch);
    this.#heldBytes += grown;
  }

  #firstHeld(): number {
    let first = Infinity;
    for (const seq of this.#held.keys()) first = Math.min(first, seq);
    return first;
  }

  #release(delivered: Batch[]): void {
    for (const [firstSeq, batch] of [...this.#held].sort(([a], [b]) => a - b)) {
      if (firstSeq > this.#position.seq + 1) break;
      this.#held.delete(firstSeq);
      this.#heldBytes -= bytesOf(batch);
      const fresh = this.#advance(batch);
      if (fresh !== undefined) delivered.push(fresh);
    }
  }

  #watchGap(patienceMs: number, now: Millis): void {
    const after = this.#position.seq;
    if (this.#held.size === 0 && after >= this.#told) this.#gap = undefined;
    else if (this.#gap?.after !== after) this.#gap = { after, dueAt: (now + patienceMs) as Millis, asked: 0 };
  }
}

/** What an edit costs beside its payload: small ones would otherwise take many times what is counted, and empty ones nothing. */
const EDIT_OVERHEAD_BYTES = 200;

function bytesOf(batch: Batch): number {
  return batch.edits.reduce((sum, { payload }) => sum + payload.byteLength + EDIT_OVERHEAD_BYTES, 0);
}
