/** Reads the writing sessions of one room, from its history and then from its log. */

import { assert } from "../../shared/assert.ts";
import { headOf } from "../../shared/bus/record.ts";
import type { Seq } from "../../shared/ids.ts";
import type { Segment } from "./history.ts";
import { type HistoryReadEffect, type HistoryReadInput, type HistoryReadsOptions, readSegment } from "./history-reads.ts";
import { EditsInTail } from "./log-tail.ts";
import { editsInSegment, type LoggedEdits, type WritingSession, writingSessionsOf } from "./segments.ts";

/** The next page begins at `through + 1`. */
export type WritingSessions = { readonly sessions: readonly WritingSession[]; readonly through: Seq };

/** The writing sessions from a seq on. An answer contains one segment, or as much of the log's tail as a read may take. */
export class SessionsRead {
  readonly #from: Seq;
  readonly #options: HistoryReadsOptions;
  #through = 0;
  /** The segments that are still to be read. */
  #segments: readonly Segment[] = [];
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
        return this.#readNext();
      case "object-read":
        if (input.bytes === undefined && !this.#isSecondTry) return this.#tryAgain();
        return this.#answerWith(editsInSegment(input.bytes) ?? []) ?? this.#readNext();
      default: {
        assert(input.kind === "tail-read" && this.#tail !== undefined, "sessions are read from the entry, segments and the log's tail");
        const [first] = this.#tail.edits;
        if (first !== undefined && first.record.edits.firstSeq > this.#from && !this.#isSecondTry) return this.#tryAgain();
        const nothing: WritingSessions = { sessions: [], through: (this.#from - 1) as Seq };
        return this.#answerWith(this.#tail.edits) ?? { kind: "answer", answer: nothing };
      }
    }
  }

  #tryAgain(): HistoryReadEffect<WritingSessions> {
    this.#isSecondTry = true;
    return this.begin();
  }

  #readNext(): HistoryReadEffect<WritingSessions> {
    const [next, ...rest] = this.#segments;
    this.#segments = rest;
    if (next !== undefined) return readSegment(next);
    const after = (this.#from - 1) as Seq;
    this.#tail = new EditsInTail({ after, through: Number.POSITIVE_INFINITY, bytesMax: this.#options.historyReadBytesMax });
    return { kind: "read-tail", after: this.#through, reader: this.#tail };
  }

  /** Undefined: no edit is at or after the seq. */
  #answerWith(edits: readonly LoggedEdits[]): HistoryReadEffect<WritingSessions> | undefined {
    const wanted = edits.filter(({ record }) => headOf(record) >= this.#from);
    const last = wanted.at(-1);
    if (last === undefined) return undefined;
    const sessions = writingSessionsOf(wanted, this.#options.historySessionMsMax);
    return { kind: "answer", answer: { sessions, through: headOf(last.record) } };
  }
}
