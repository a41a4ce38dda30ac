/**
 * Rebuilds what an owner must know of a room: the checkpoint first, then every record of the log behind it.
 * A checkpoint that was replaced in between leaves a hole, since the log is trimmed behind the newer one:
 * then both are to be read again. Rules LOD1 to LOD7.
 */

import { type Checkpoint, epochsOf } from "../../shared/bus/checkpoint.ts";
import { type EpochHistory, NO_EPOCHS, withEpoch, withNext } from "../../shared/bus/epoch-history.ts";
import { type EpochRecord, headOf, type OwnersRecord } from "../../shared/bus/record.ts";
import type { Epoch, Millis, Seq, UnixMillis } from "../../shared/ids.ts";
import { Backlog, type BacklogBudget, type BacklogOptions } from "./backlog.ts";
import { Sequencer, type SequencerOptions } from "./sequencer.ts";

export type LoadingOptions = SequencerOptions & BacklogOptions;

/** `hole`: seqs that neither the checkpoint nor the log holds. */
export type Loaded = {
  readonly sequencer: Sequencer;
  readonly backlog: Backlog;
  readonly epochs: EpochHistory;
  readonly hole: Hole | undefined;
};
/** The same moment by both clocks. */
export type Moment = { readonly now: Millis; readonly wallNow: UnixMillis };
export type Hole = { readonly after: Seq; readonly before: Seq };

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

  /** The seq of the newest edit gathered. */
  get head(): Seq {
    return this.#sequencer.head;
  }

  /** Whether it has every edit up to its head that it must know of. */
  get isWhole(): boolean {
    return this.#hole === undefined;
  }

  /** `moment`: when it is gathered, which goes on for hours in a warm copy. Its writers count as seen then. */
  receiveRecord(record: OwnersRecord, { now, wallNow }: Moment): void {
    if (record.kind === "epoch") return this.#receiveEpoch(record);
    const { firstSeq } = record.edits;
    const lastSeq = headOf(record);
    if (lastSeq <= this.#sequencer.head) return;
    this.#reach(firstSeq);
    this.#epochs = withNext(this.#epochs, record, this.#checkpointEpoch);
    this.#sequencer.commit(record.edits, now);
    this.#backlog.append({ firstSeq, lastSeq, since: whenTaken(record.time, { now, wallNow }), bytes: record.editsBytes }, now);
  }

  /** Lets go of what has grown too old to be of use. */
  expire(now: Millis): void {
    this.#sequencer.forgetSilent(now);
    this.#backlog.expire(now);
  }

  /** `epoch`: the new owner's. `head`: where its record says that the room stands. */
  receiveEnd(epoch: Epoch, head: Seq, now: Millis): Loaded {
    this.#epochs = withEpoch(this.#epochs, epoch, head, this.#checkpointEpoch);
    this.#reach((head + 1) as Seq);
    this.#sequencer.forgetSilent(now);
    return { sequencer: this.#sequencer, backlog: this.#backlog, epochs: this.#epochs, hole: this.#hole };
  }

  /** Gives back what was gathered. */
  clear(): void {
    this.#backlog.clear();
  }

  /** One that begins before what is here: that was lost with the log's end. */
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

/** Two servers' dates are compared here: all that one of them being wrong does is that the backlog holds less, or a little longer. */
function whenTaken(time: UnixMillis, { now, wallNow }: Moment): Millis {
  return (now - Math.max(0, wallNow - time)) as Millis;
}
