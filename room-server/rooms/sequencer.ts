/**
 * Finds the place of each edit among its writer's edits, so that no edit is ordered twice or skipped. A writer numbers
 * its edits 1, 2, 3, …, and only the next number is accepted. Rules SEQ1 to SEQ14. A writer that is silent for a long
 * time is forgotten. When it returns, it states up to which counter its edits are committed (`ackedThrough`). So no
 * edit is skipped, and only a repeat of an earlier edit might be ordered again.
 */

import type { Checkpoint } from "../../shared/bus/checkpoint.ts";
import { ONLY_EDIT_COUNTER_MIN } from "../../shared/bus/envelope.ts";
import type { ClientId, Millis, Seq } from "../../shared/ids.ts";
import { digestOf } from "../../shared/collections/hash.ts";
import { LazyMap } from "../../shared/collections/lazy-map.ts";
import type { CommittedEdits, Counter } from "../../shared/wire/frames.ts";

type EditPosition =
  | { kind: "next" }
  /**
   * No answer is needed: the first copy waits for the log and is acknowledged by its commit, or the writer knows that
   * the edit is committed.
   */
  | { kind: "waiting" }
  /** `exact`: `seq` is the seq of this edit. Otherwise the edit was committed at or before `seq`. */
  | { kind: "committed"; seq: Seq; exact: boolean }
  | { kind: "gap"; expected: Counter }
  /**
   * The log has a different edit with this client id and counter: another HTTP request with the same key, or a copy of
   * the client's process, such as a restored virtual machine.
   */
  | { kind: "key-reused" };

/** `count` consecutive edits, in the writer's numbering and in the room's order. */
type Run = { counter: Counter; seq: Seq; count: number };
/**
 * `accepted`: the last accepted edit. It waits for the log while it is above `committed`, the last edit that this log is
 * known to hold.
 */
type Writer = {
  accepted: Counter;
  committed: Counter;
  lastSeen: Millis;
  readonly runs: Run[];
  /** Hashes of the payloads of the newest committed edits, up to `committed`, without a gap. */
  digests: number[] | undefined;
};

export type SequencerOptions = { readonly dedupeMsMin: number; readonly writersMax: number; readonly runsPerWriterMax: number };

/** Number of newest edits per writer whose payloads a repeat is compared with: 8 bytes each. */
const DIGESTS_PER_WRITER_MAX = 32;

/** Share of the writers that is removed together when there are too many, so that the search for silent writers is rare. */
const FORGOTTEN_AT_ONCE = 0.1;
/** Between two calls of `forgetSilent` a room may have this multiple of the writers, for example while a claim loads a long log. */
const WRITERS_EXCESS = 2;

const NEXT: EditPosition = { kind: "next" };
const WAITING: EditPosition = { kind: "waiting" };
const KEY_REUSED: EditPosition = { kind: "key-reused" };

export class Sequencer {
  readonly #options: SequencerOptions;
  readonly #writers = new LazyMap<ClientId, Writer>();
  #head: Seq;
  /** Removed because there were too many, and not reported yet. */
  #forgottenCount = 0;

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

  /** Takes over a checkpoint's writers. All count as active now, so that clients that lost the former owner have time to return. */
  restore(clients: Checkpoint["clients"], now: Millis): void {
    for (const { client, counter, seq } of clients) {
      const runs = [{ counter, seq, count: 1 }];
      this.#writers.set(client, { accepted: counter, committed: counter, lastSeen: now, runs, digests: undefined });
    }
  }

  /** Skips seqs that the log has lost. */
  startAt(next: Seq): void {
    this.#head = (next - 1) as Seq;
  }

  placeOf(client: ClientId, counter: Counter, ackedThrough: Counter, payload: Uint8Array, now: Millis): EditPosition {
    const writer = this.#writers.get(client) ?? this.#meet(client, now);
    writer.lastSeen = now;
    if (counter >= ONLY_EDIT_COUNTER_MIN) return this.#placeOfOnly(writer, counter);
    // A new writer, or a writer that knows commits that this log lost, continues from there. Not remembered before the
    // edit is accepted: otherwise its earlier edits would wait for a commit that never comes, without any answer.
    const accepted = Math.max(writer.accepted, ackedThrough);
    if (counter === accepted + 1) return NEXT;
    if (counter > accepted) return { kind: "gap", expected: accepted + 1 };
    if (counter > writer.committed) return WAITING;
    return isOther(writer, counter, payload) ? KEY_REUSED : this.#committedPlace(writer, counter);
  }

  #placeOfOnly(writer: Writer, counter: Counter): EditPosition {
    if (writer.accepted === 0) return NEXT;
    if (writer.committed === 0) return WAITING; // If the log does not get the accepted edit, the other request may be first.
    return writer.committed === counter ? this.#committedPlace(writer, counter) : KEY_REUSED;
  }

  /** Call only after `placeOf` returned "next". */
  accept(client: ClientId, counter: Counter): void {
    const writer = this.#writers.get(client);
    if (writer !== undefined) writer.accepted = counter;
  }

  /** Edits that the log has, of this owner or, during loading, of earlier ones. */
  commit({ firstSeq, edits }: CommittedEdits, time: Millis): void {
    for (let index = 0; index < edits.length; index++) {
      const { client, counter, payload } = edits[index]!;
      const seq = (firstSeq + index) as Seq;
      const writer = this.#writers.get(client) ?? this.#meet(client, time);
      this.#rememberDigest(writer, counter, digestOf(payload));
      writer.committed = Math.max(writer.committed, counter);
      writer.accepted = Math.max(writer.accepted, counter);
      writer.lastSeen = Math.max(writer.lastSeen, time) as Millis;
      this.#remember(writer, counter, seq);
    }
    this.#head = (firstSeq + edits.length - 1) as Seq;
  }

  /**
   * Removes writers that are silent for longer than the dedupe window, and the most silent ones while there are too
   * many. Returns the number of the latter.
   */
  forgetSilent(now: Millis): number {
    for (const [client, writer] of this.#writers) {
      if (now - writer.lastSeen > this.#options.dedupeMsMin && !hasWaiting(writer)) this.#writers.delete(client);
    }
    this.#forgetExcess();
    const forgotten = this.#forgottenCount;
    this.#forgottenCount = 0;
    return forgotten;
  }

  #forgetExcess(): void {
    if (this.#writers.size <= this.#options.writersMax) return;
    // A claim loads many writers at one moment. The seqs show which of them wrote last, and may repeat edits now.
    const bySilence = [...this.#writers]
      .filter(([, writer]) => !hasWaiting(writer))
      .sort(([, a], [, b]) => a.lastSeen - b.lastSeen || lastSeqOf(a) - lastSeqOf(b));
    const over = this.#writers.size - this.#options.writersMax + Math.ceil(this.#options.writersMax * FORGOTTEN_AT_ONCE);
    const forgotten = bySilence.slice(0, over);
    for (const [client] of forgotten) this.#writers.delete(client);
    this.#forgottenCount += forgotten.length;
  }

  #meet(client: ClientId, now: Millis): Writer {
    if (this.#writers.size >= this.#options.writersMax * WRITERS_EXCESS) this.#forgetExcess();
    const writer: Writer = { accepted: 0, committed: 0, lastSeen: now, runs: [], digests: undefined };
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

  /** Call before `committed` is that counter. */
  #rememberDigest(writer: Writer, counter: Counter, digest: number): void {
    const { digests } = writer;
    if (counter <= writer.committed) return; // An owner that had forgotten the writer ordered a repeat again.
    if (digests === undefined || counter !== writer.committed + 1) writer.digests = [digest];
    else if (digests.push(digest) > DIGESTS_PER_WRITER_MAX) digests.shift();
  }

  #committedPlace(writer: Writer, counter: Counter): EditPosition {
    const run = writer.runs.findLast((candidate) => counter >= candidate.counter && counter < candidate.counter + candidate.count);
    if (run === undefined) return { kind: "committed", seq: this.#head, exact: false };
    return { kind: "committed", seq: (run.seq + counter - run.counter) as Seq, exact: true };
  }
}

/** Whether the log is known to have other bytes under that counter. */
function isOther({ committed, digests }: Writer, counter: Counter, payload: Uint8Array): boolean {
  const digest = digests?.[digests.length - 1 - (committed - counter)];
  return digest !== undefined && digest !== digestOf(payload);
}

/** The seq of the writer's newest known edit; 0 if none is known. */
function lastSeqOf({ runs }: Writer): number {
  const last = runs.at(-1);
  return last === undefined ? 0 : last.seq + last.count - 1;
}

function hasWaiting({ accepted, committed }: Writer): boolean {
  return accepted > committed;
}
