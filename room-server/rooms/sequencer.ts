/**
 * Says where each edit of one room stands among its writer's edits, so that none is ordered twice and none is
 * left out. A writer numbers its edits 1, 2, 3, ...; only the next number is taken. Rules SEQ1 to SEQ9.
 *
 * A writer that was silent for long is forgotten. When it comes back, it says itself up to where its edits are
 * committed (`ackedThrough`), so forgetting can make no hole; only a repeat from before might be ordered again.
 */

import type { Checkpoint } from "../../shared/bus/checkpoint.ts";
import type { ClientId, Millis, Seq } from "../../shared/ids.ts";
import { SeldomMap } from "../../shared/seldom.ts";
import type { CommittedEdits, Counter } from "../../shared/wire/frames.ts";

export type Place =
  | { kind: "next" }
  /** Nothing to say: its first copy waits for the log, whose commit will acknowledge it, or its writer knows it committed. */
  | { kind: "waiting" }
  /** `exact`: `seq` is the edit's own; else it was committed at or before `seq`. */
  | { kind: "committed"; seq: Seq; exact: boolean }
  | { kind: "gap"; expected: Counter };

/** `count` edits in a row, in the writer's numbering and in the room's order alike. */
type Run = { counter: Counter; seq: Seq; count: number };
/**
 * `accepted`: the last edit that was taken, `committed`: the last that this log is known to hold, `told`: the last
 * that the writer says is committed. An owner that does not know yet that it is deposed may be told more than it knows.
 */
type Writer = { accepted: Counter; committed: Counter; told: Counter; lastSeen: Millis; readonly runs: Run[] };

export type SequencerOptions = { readonly dedupeMsMin: number; readonly writersMax: number; readonly runsPerWriterMax: number };

/** Part of the writers that goes at once when there are too many, so that looking for the silent ones stays rare. */
const FORGOTTEN_AT_ONCE = 0.1;

const NEXT: Place = { kind: "next" };
const WAITING: Place = { kind: "waiting" };

export class Sequencer {
  readonly #options: SequencerOptions;
  readonly #writers = new SeldomMap<ClientId, Writer>();
  #head: Seq;

  /** `head`: the last seq given out before. */
  constructor(options: SequencerOptions, head: Seq) {
    this.#options = options;
    this.#head = head;
  }

  /** The seq of the newest committed edit. */
  get head(): Seq {
    return this.#head;
  }

  get writers(): number {
    return this.#writers.size;
  }

  /** Takes over what a checkpoint knows. All count as seen now: those whom the owner's end cut off have time to come back. */
  restore(clients: Checkpoint["clients"], now: Millis): void {
    for (const { client, counter, seq } of clients) {
      this.#writers.set(client, { accepted: counter, committed: counter, told: 0, lastSeen: now, runs: [{ counter, seq, count: 1 }] });
    }
  }

  /** Leaves out seqs that the log has lost. */
  startAt(next: Seq): void {
    this.#head = (next - 1) as Seq;
  }

  placeOf(client: ClientId, counter: Counter, ackedThrough: Counter, now: Millis): Place {
    const writer = this.#writers.get(client) ?? this.#meet(client, now);
    writer.lastSeen = now;
    writer.told = Math.max(writer.told, ackedThrough);
    // Of a writer just met, or of one that knows of commits that this log has lost: it goes on from there.
    writer.accepted = Math.max(writer.accepted, ackedThrough);

    if (counter === writer.accepted + 1) return NEXT;
    if (counter > writer.accepted) return { kind: "gap", expected: writer.accepted + 1 };
    if (counter > writer.committed) return WAITING;
    return this.#committedPlace(writer, counter);
  }

  /** Only after `placeOf` said that it is the next. */
  accept(client: ClientId, counter: Counter): void {
    const writer = this.#writers.get(client);
    if (writer !== undefined) writer.accepted = counter;
  }

  /** Edits that the log holds: of this owner, or of those before it when the room is rebuilt. */
  commit({ firstSeq, edits }: CommittedEdits, time: Millis): void {
    for (let index = 0; index < edits.length; index++) {
      const { client, counter } = edits[index]!;
      const seq = (firstSeq + index) as Seq;
      const writer = this.#writers.get(client) ?? this.#meet(client, time);
      writer.committed = Math.max(writer.committed, counter);
      writer.accepted = Math.max(writer.accepted, counter);
      writer.lastSeen = Math.max(writer.lastSeen, time) as Millis;
      this.#remember(writer, counter, seq);
    }
    this.#head = (firstSeq + edits.length - 1) as Seq;
  }

  /** Lets go of writers silent for longer than the dedupe window, and of the most silent while there are too many. Says how many of the latter. */
  forgetSilent(now: Millis): number {
    for (const [client, writer] of this.#writers) {
      if (now - writer.lastSeen > this.#options.dedupeMsMin && !hasWaiting(writer)) this.#writers.delete(client);
    }
    if (this.#writers.size <= this.#options.writersMax) return 0;
    const bySilence = [...this.#writers].filter(([, writer]) => !hasWaiting(writer)).sort(([, a], [, b]) => a.lastSeen - b.lastSeen);
    const over = this.#writers.size - this.#options.writersMax + Math.ceil(this.#options.writersMax * FORGOTTEN_AT_ONCE);
    const forgotten = bySilence.slice(0, over);
    for (const [client] of forgotten) this.#writers.delete(client);
    return forgotten.length;
  }

  #meet(client: ClientId, now: Millis): Writer {
    const writer: Writer = { accepted: 0, committed: 0, told: 0, lastSeen: now, runs: [] };
    this.#writers.set(client, writer);
    return writer;
  }

  #remember(writer: Writer, counter: Counter, seq: Seq): void {
    const last = writer.runs.at(-1);
    if (last !== undefined && counter === last.counter + last.count && seq === last.seq + last.count) {
      last.count += 1;
      return;
    }
    writer.runs.push({ counter, seq, count: 1 });
    if (writer.runs.length > this.#options.runsPerWriterMax) writer.runs.shift();
  }

  #committedPlace(writer: Writer, counter: Counter): Place {
    const run = writer.runs.findLast((candidate) => counter >= candidate.counter && counter < candidate.counter + candidate.count);
    if (run === undefined) return { kind: "committed", seq: this.#head, exact: false };
    return { kind: "committed", seq: (run.seq + counter - run.counter) as Seq, exact: true };
  }
}

function hasWaiting({ accepted, committed, told }: Writer): boolean {
  return accepted > Math.max(committed, told);
}
