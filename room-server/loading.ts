/**
 * Rebuilds what an owner must know of a room: the checkpoint first, then every record of the log behind it.
 * A checkpoint that was replaced in between leaves a hole, since the log is trimmed behind the newer one:
 * then both are to be read again. Rules LOD1 to LOD4.
 */

import type { Checkpoint } from "../shared/bus/checkpoint.ts";
import { headOf, type LogRecord } from "../shared/bus/record.ts";
import type { Millis, Seq, UnixMillis } from "../shared/ids.ts";
import { Backlog, type BacklogBudget, type BacklogOptions } from "./backlog.ts";
import { Sequencer, type SequencerOptions } from "./sequencer.ts";

export type LoadingOptions = SequencerOptions & BacklogOptions;

/** `hole`: seqs that neither the checkpoint nor the log holds. */
export type Loaded = { readonly sequencer: Sequencer; readonly backlog: Backlog; readonly hole: Hole | undefined };
export type Hole = { readonly after: Seq; readonly before: Seq };

export class Loading {
  readonly #options: LoadingOptions;
  readonly #budget: BacklogBudget;
  readonly #now: Millis;
  readonly #wallNow: UnixMillis;
  readonly #sequencer: Sequencer;
  #backlog: Backlog;
  #hole: Hole | undefined;

  constructor(checkpoint: Checkpoint | undefined, options: LoadingOptions, budget: BacklogBudget, { now, wallNow }: { now: Millis; wallNow: UnixMillis }) {
    const seq = checkpoint?.seq ?? (0 as Seq);
    this.#options = options;
    this.#budget = budget;
    this.#now = now;
    this.#wallNow = wallNow;
    this.#sequencer = new Sequencer(options, seq);
    this.#sequencer.restore(checkpoint?.clients ?? [], now);
    this.#backlog = new Backlog(options, budget, seq);
  }

  receiveRecord(record: LogRecord): void {
    if (record.kind === "epoch") return;
    const { epoch, firstSeq } = record.edits;
    const lastSeq = headOf(record);
    if (lastSeq <= this.#sequencer.head) return;
    this.#reach(firstSeq);
    this.#sequencer.commit(record.edits, this.#now);
    this.#backlog.append({ epoch, firstSeq, lastSeq, since: this.#whenTaken(record.time), bytes: record.editsBytes }, this.#now);
  }

  /** `head`: where the epoch record says that the room stands. */
  receiveEnd(head: Seq): Loaded {
    this.#reach((head + 1) as Seq);
    this.#sequencer.forgetSilent(this.#now);
    return { sequencer: this.#sequencer, backlog: this.#backlog, hole: this.#hole };
  }

  /** Gives back what was gathered. */
  clear(): void {
    this.#backlog.clear();
  }

  /** Two servers' dates are compared here: all that one of them being wrong does is that the backlog holds less, or a little longer. */
  #whenTaken(time: UnixMillis): Millis {
    return (this.#now - Math.max(0, this.#wallNow - time)) as Millis;
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
