/** Committed edits as bytes, cut to a range of seqs and packed into answers of a bounded size. */

import * as decoding from "lib0/decoding";
import * as encoding from "lib0/encoding";

import type { CatchUp } from "../../shared/bus/envelope.ts";
import type { Seq } from "../../shared/ids.ts";
import { readCommittedEdits, writeCommittedEdits } from "../../shared/wire/committed-edits.ts";

export type EditsRange = { readonly firstSeq: Seq; readonly lastSeq: Seq; readonly bytes: Uint8Array };

/** What lies in `after < seq <= through`. As it is if all of it does; else read and written anew. The range must meet it. */
export function cutEdits({ firstSeq, lastSeq, bytes }: EditsRange, after: Seq, through: Seq): Uint8Array {
  if (firstSeq > after && lastSeq <= through) return bytes;
  const { epoch, edits } = readCommittedEdits(decoding.createDecoder(bytes));
  const first = Math.max(firstSeq, after + 1) as Seq;
  const inside = edits.slice(first - firstSeq, Math.min(lastSeq, through) - firstSeq + 1);
  return encoding.encode((out) => writeCommittedEdits(out, { epoch, firstSeq: first, edits: inside }));
}

/** Gathers parts until an answer is full. The last answer says that it is, even if it is empty. */
export class AnswerPacker {
  readonly #bytesMax: number;
  #parts: Uint8Array[] = [];
  #bytes = 0;

  constructor(options: { answerBytesMax: number }) {
    this.#bytesMax = options.answerBytesMax;
  }

  /** An answer, once the part no longer fits it. A part larger than an answer gets one of its own. */
  add(part: Uint8Array): CatchUp | undefined {
    const full = this.#parts.length > 0 && this.#bytes + part.byteLength > this.#bytesMax ? this.#take(false) : undefined;
    this.#parts.push(part);
    this.#bytes += part.byteLength;
    return full;
  }

  finish(): CatchUp {
    return this.#take(true);
  }

  #take(last: boolean): CatchUp {
    const answer: CatchUp = { kind: "edits", parts: this.#parts, last };
    this.#parts = [];
    this.#bytes = 0;
    return answer;
  }
}
