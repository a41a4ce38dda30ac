/**
 * Answers a catch-up from the log's own records, for a range that the backlog no longer holds whole.
 * It is fed the room's records in order, from at or before the range on. Rules RPL1 to RPL6.
 */

import type { CatchUp } from "../../shared/bus/envelope.ts";
import { headOf, type OwnersRecord } from "../../shared/bus/record.ts";
import type { Position, Seq } from "../../shared/ids.ts";
import { AnswerPacker, cutEdits } from "./edits-range.ts";

export type LogReplayOptions = {
  readonly after: Position;
  /** At least one past `after`. */
  readonly through: Seq;
  /** What it may read before it gives up and asks for a resync; infinite where no newer snapshot could help. */
  readonly readBytesMax: number;
  /** What was read already for those who ask on. */
  readonly readBytes?: number;
  readonly answerBytesMax: number;
};

export class LogReplay {
  readonly #options: LogReplayOptions;
  readonly #packer: AnswerPacker;
  #next: Seq;
  #read: number;
  #done = false;

  constructor(options: LogReplayOptions) {
    this.#options = options;
    this.#packer = new AnswerPacker(options);
    this.#read = options.readBytes ?? 0;
    this.#next = (options.after.seq + 1) as Seq;
  }

  /** Of the newest record that the answer holds some of. */
  get answeredThrough(): Seq {
    return (this.#next - 1) as Seq;
  }

  get readBytes(): number {
    return this.#read;
  }

  /** The answer, once it is whole: with all of the range, or with what fits. */
  receiveRecord(record: OwnersRecord): CatchUp | undefined {
    if (this.#done || record.kind === "epoch") return undefined;
    const { after, through, readBytesMax } = this.#options;
    const { epoch, firstSeq } = record.edits;
    const lastSeq = headOf(record);

    // The owner knew the position of its log when it was asked. The log may have lost its end since, and another have gone on.
    if (after.seq >= firstSeq && after.seq <= lastSeq && epoch > after.epoch) return this.#resync("other-epoch");
    this.#read += record.editsBytes.byteLength;
    if (this.#read > readBytesMax || firstSeq > this.#next) return this.#resync("too-old");
    if (lastSeq < this.#next) return undefined;

    const part = cutEdits({ firstSeq, lastSeq, bytes: record.editsBytes }, after.seq, through);
    const fits = this.#packer.add(part);
    if (fits) this.#next = (lastSeq + 1) as Seq;
    // Edits of a room are of a size mostly: where one more would not fit, it need not be fetched to find that out.
    if (fits && lastSeq < through && this.#packer.hasRoomFor(part)) return undefined;
    this.#done = true;
    return this.#packer.answer();
  }

  /** The log has no more records. */
  receiveEnd(): CatchUp {
    return this.#resync("too-old");
  }

  #resync(reason: "too-old" | "other-epoch"): CatchUp {
    this.#done = true;
    return { kind: "resync", reason };
  }
}
