/** Committed edits as bytes, cut to a range of seqs and packed into an answer of a bounded size. */

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

/**
 * What one question is answered with: as much as fits a message. Its gateway asks on for the rest once it has that, and so
 * is never sent more of a room's past than it can take: what is written in the room meanwhile would wait behind it.
 */
export class AnswerPacker {
  readonly #bytesMax: number;
  readonly #parts: Uint8Array[] = [];
  #bytes = 0;

  constructor(options: { answerBytesMax: number }) {
    this.#bytesMax = options.answerBytesMax;
  }

  /** False: it does not fit. Any part fits an answer that has none. */
  add(part: Uint8Array): boolean {
    if (this.#parts.length > 0 && !this.hasRoomFor(part)) return false;
    this.#parts.push(part);
    this.#bytes += part.byteLength;
    return true;
  }

  hasRoomFor({ byteLength }: Uint8Array): boolean {
    return this.#bytes + byteLength <= this.#bytesMax;
  }

  answer(): CatchUp {
    return { kind: "edits", parts: this.#parts };
  }
}
