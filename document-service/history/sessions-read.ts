/** Reads the writing sessions of one room, from its history and then from its log. */

import { assert } from "../../shared/assert.ts";
import { headOf } from "../../shared/bus/record.ts";
import type { Seq } from "../../shared/ids.ts";
import type { Segment } from "./history.ts";
import { type HistoryReadEffect, type HistoryReadInput, type HistoryReadsOptions, readSegment } from "./history-reads.ts";
import { EditsInTail } from "./log-tail.ts";
import { editsInSegment, type LoggedEdits, type WritingSession, writingSessionsOf } from "./segments.ts";

/** `from`: later than the first seq of the question if no edit before it can be read. The next page begins at `through + 1`. */
export type WritingSessions = { readonly sessions: readonly WritingSession[]; readonly from: Seq; readonly through: Seq };

/** The writing sessions from a seq on. An answer contains one segment, or as much of the log's tail as a read may take. */
export class SessionsRead {
  readonly #from: Seq;
  readonly #options: HistoryReadsOptions;
  #through = 0;
  /** The segments that are still to be read. */
  #segments: readonly Segment[] = [];
  /** Reads the first edit of the tail, before segments are read. */
  #tailStart: EditsInTail | undefined;
  #tail: EditsInTail | undefined;
  /** The entry was read again, because a trim may have moved edits during the read. */
  #isSecondTry = false;

  constructor(from: Seq, options: HistoryReadsOptions) {
    this.#from = from;
    this.#options = options;
  }

  begin(): HistoryReadEffect<WritingSessions> {
    return { kind: "read-entry" };
  }

  receive(input: HistoryReadInput): HistoryReadEffect<WritingSessions> {
    switch (input.kind) {
      case "entry-read":
        this.#through = input.history.through;
        this.#segments = input.history.segments.filter(({ lastSeq }) => lastSeq >= this.#from);
        if (this.#segments.length === 0) return this.#readNext();
        this.#tailStart = this.#tailReader({ after: 0 as Seq, through: 0 });
        return { kind: "read-tail", after: this.#through, reader: this.#tailStart };
      case "object-read":
        if (input.bytes === undefined && !this.#isSecondTry) return this.#tryAgain();
        return this.#answerWith(withoutLost(editsInSegment(input.bytes) ?? [], this.#laterFrom)) ?? this.#readNext();
      default: {
        assert(input.kind === "tail-read", "sessions are read from the entry, segments and the log's tail");
        if (this.#tail === undefined) return this.#readNext(); // Only the first edit of the tail was read.
        const [first] = this.#tail.edits;
        if (first !== undefined && first.record.edits.firstSeq > this.#from && !this.#isSecondTry) return this.#tryAgain();
        const nothing: WritingSessions = { sessions: [], from: this.#from, through: (this.#from - 1) as Seq };
        return this.#answerWith(this.#tail.edits) ?? { kind: "answer", answer: nothing };
      }
    }
  }

  /** The first seq in later segments and the tail. Earlier edits from there on were lost, and their seqs assigned again. */
  get #laterFrom(): number {
    const inTail = this.#tailStart?.edits[0]?.record.edits.firstSeq ?? Number.POSITIVE_INFINITY;
    return this.#segments.reduce((first, { firstSeq }) => Math.min(first, firstSeq), inTail);
  }

  #tailReader(range: { readonly after: Seq; readonly through: number }): EditsInTail {
    return new EditsInTail({ ...range, bytesMax: this.#options.historyReadBytesMax });
  }

  #tryAgain(): HistoryReadEffect<WritingSessions> {
    this.#isSecondTry = true;
    this.#tail = undefined;
    return this.begin();
  }

  #readNext(): HistoryReadEffect<WritingSessions> {
    const [next, ...rest] = this.#segments;
    this.#segments = rest;
    if (next !== undefined) return readSegment(next);
    this.#tail = this.#tailReader({ after: (this.#from - 1) as Seq, through: Number.POSITIVE_INFINITY });
    return { kind: "read-tail", after: this.#through, reader: this.#tail };
  }

  /** Undefined: no edit is at or after the seq. */
  #answerWith(edits: readonly LoggedEdits[]): HistoryReadEffect<WritingSessions> | undefined {
    const wanted = edits.filter(({ record }) => headOf(record) >= this.#from);
    const [first, last] = [wanted[0], wanted.at(-1)];
    if (first === undefined || last === undefined) return undefined;
    const sessions = writingSessionsOf(wanted, this.#options.historySessionMsMax);
    const from = Math.max(this.#from, first.record.edits.firstSeq) as Seq;
    return { kind: "answer", answer: { sessions, from, through: headOf(last.record) } };
  }
}

/** The edits before `laterFrom`. */
function withoutLost(edits: readonly LoggedEdits[], laterFrom: number): readonly LoggedEdits[] {
  return edits.flatMap((one): LoggedEdits[] => {
    const { record } = one;
    if (headOf(record) < laterFrom) return [one];
    const kept = record.edits.edits.slice(0, Math.max(0, laterFrom - record.edits.firstSeq));
    return kept.length === 0 ? [] : [{ ...one, record: { ...record, edits: { ...record.edits, edits: kept } } }];
  });
}
