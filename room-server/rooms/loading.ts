/**
 * Rebuilds the state that an owner needs of a room: first the checkpoint, then every later record of the log. If a
 * newer checkpoint replaced this one in between, the log was trimmed and edits are missing. Then both must be read
 * again. Rules LOD1 to LOD7.
 */

import { type Checkpoint, epochsOf } from "../../shared/bus/checkpoint.ts";
import { type EpochHistory, NO_EPOCHS, withEpoch, withNext } from "../../shared/bus/epoch-history.ts";
import { epochOf, type EpochRecord, headBefore, headOf, type OwnersRecord } from "../../shared/bus/record.ts";
import type { Epoch, Millis, Seq, UnixMillis } from "../../shared/ids.ts";
import { Backlog, type BacklogBudget, type BacklogOptions } from "./backlog.ts";
import { Sequencer, type SequencerOptions } from "./sequencer.ts";

export type LoadingOptions = SequencerOptions & BacklogOptions;

/** `hole`: seqs that neither the checkpoint nor the log contains. */
type Loaded = {
  readonly sequencer: Sequencer;
  readonly backlog: Backlog;
  readonly epochs: EpochHistory;
  readonly hole: Hole | undefined;
};
/** One instant on both clocks. */
export type LoadTime = { readonly now: Millis; readonly wallNow: UnixMillis };
export type Hole = { readonly after: Seq; readonly before: Seq };

/** The record that the log must return first: the last record that a replica has, or that a checkpoint covers. */
export type LoadedFrom =
  { readonly kind: "replica"; readonly id: string } | { readonly kind: "checkpoint"; readonly checkpoint: Checkpoint };

/** True for the record itself, and for the epoch record of an owner that knew the checkpoint of a log that has lost the record. */
export function isFirstBehind(from: LoadedFrom, record: OwnersRecord): boolean {
  if (from.kind === "replica") return record.id === from.id;
  const { recordId, epoch, seq } = from.checkpoint;
  if (record.id === recordId) return true;
  return headBefore(record) === seq && (record.kind === "epoch" ? record.epoch > epoch : epochOf(record) === epoch);
}

export class Loading {
  readonly #options: LoadingOptions;
  readonly #budget: BacklogBudget;
  readonly #sequencer: Sequencer;
  #backlog: Backlog;
  #epochs: EpochHistory;
  readonly #checkpointEpoch: Epoch | undefined;
  #hole: Hole | undefined;

  constructor(checkpoint: Checkpoint | undefined, options: LoadingOptions, budget: BacklogBudget, now: Millis) {
    const seq = checkpoint?.seq ?? (0 as Seq);
    this.#options = options;
    this.#budget = budget;
    this.#sequencer = new Sequencer(options, seq);
    this.#sequencer.restore(checkpoint?.clients ?? [], now);
    this.#backlog = new Backlog(options, budget, seq);
    this.#checkpointEpoch = checkpoint?.epoch;
    this.#epochs = checkpoint === undefined ? NO_EPOCHS : epochsOf(checkpoint);
  }

  /** The seq of the newest loaded edit. */
  get head(): Seq {
    return this.#sequencer.head;
  }

  /** Whether it has every edit up to its head that it needs. */
  get isComplete(): boolean {
    return this.#hole === undefined;
  }

  /**
   * `moment`: the time at which the record is received. A replica receives records for hours, and their writers count
   * as active at that time.
   */
  receiveRecord(record: OwnersRecord, { now, wallNow }: LoadTime): void {
    if (record.kind === "epoch") return this.#receiveEpoch(record);
    const { firstSeq } = record.edits;
    const lastSeq = headOf(record);
    if (lastSeq <= this.#sequencer.head) return;
    this.#reach(firstSeq);
    this.#epochs = withNext(this.#epochs, record, this.#checkpointEpoch);
    this.#sequencer.commit(record.edits, now);
    this.#backlog.append({ firstSeq, lastSeq, since: whenTaken(record.time, { now, wallNow }), bytes: record.editsBytes }, now);
  }

  /** Drops entries that are too old to be useful. */
  expire(now: Millis): void {
    this.#sequencer.forgetSilent(now);
    this.#backlog.expire(now);
  }

  /** `epoch`: the new owner's epoch. `head`: the room's head in its epoch record. */
  receiveEnd(epoch: Epoch, head: Seq, now: Millis): Loaded {
    this.#epochs = withEpoch(this.#epochs, epoch, head, this.#checkpointEpoch);
    this.#reach((head + 1) as Seq);
    this.#sequencer.forgetSilent(now);
    return { sequencer: this.#sequencer, backlog: this.#backlog, epochs: this.#epochs, hole: this.#hole };
  }

  /** Releases the memory of the loaded data. */
  clear(): void {
    this.#backlog.clear();
  }

  /** An epoch that begins before the loaded edits: the log lost its end, and these edits with it. */
  #receiveEpoch(record: EpochRecord): void {
    const { head } = record;
    this.#epochs = withNext(this.#epochs, record, this.#checkpointEpoch);
    if (head < this.#sequencer.head) this.#hole ??= { after: head, before: (head + 1) as Seq };
  }

  #reach(next: Seq): void {
    const { head } = this.#sequencer;
    if (next === head + 1) return;
    this.#hole ??= { after: head, before: next };
    this.#sequencer.startAt(next);
    this.#backlog.clear();
    this.#backlog = new Backlog(this.#options, this.#budget, (next - 1) as Seq);
  }
}

/** Compares the dates of two servers. A wrong date only makes the backlog a little smaller or larger. */
function whenTaken(time: UnixMillis, { now, wallNow }: LoadTime): Millis {
  return (now - Math.max(0, wallNow - time)) as Millis;
}
