/**
 * Answers a catch-up from the log's own records, for a range that the backlog no longer holds whole.
 * It is fed the room's records in order, from at or before the range on. Rules RPL1 to RPL4.
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
  readonly answerBytesMax: number;
};

export class LogReplay {
  readonly #options: LogReplayOptions;
  readonly #packer: AnswerPacker;
  #next: Seq;
  #read = 0;
  #done = false;

  constructor(options: LogReplayOptions) {
    this.#options = options;
    this.#packer = new AnswerPacker(options);
    this.#next = (options.after.seq + 1) as Seq;
  }

  /** True once everything is answered. */
  get done(): boolean {
    return this.#done;
  }

  /** The answers to send now, in order. */
  receiveRecord(record: OwnersRecord): readonly CatchUp[] {
    if (this.#done || record.kind === "epoch") return [];
    const { after, through, readBytesMax } = this.#options;
    const { epoch, firstSeq } = record.edits;
    const lastSeq = headOf(record);

    // The owner knew the position of its log when it was asked. The log may have lost its end since, and another have gone on.
    if (after.seq >= firstSeq && after.seq <= lastSeq && epoch > after.epoch) return this.#resync("other-epoch");
    this.#read += record.editsBytes.byteLength;
    if (this.#read > readBytesMax || firstSeq > this.#next) return this.#resync("too-old");
    if (lastSeq < this.#next) return [];

    const full = this.#packer.add(cutEdits({ firstSeq, lastSeq, bytes: record.editsBytes }, after.seq, through));
    this.#next = (lastSeq + 1) as Seq;
    const answers = full === undefined ? [] : [full];
    if (lastSeq < through) return answers;
    this.#done = true;
    return [...answers, this.#packer.finish()];
  }

  /** The log has no more records. */
  receiveEnd(): readonly CatchUp[] {
    return this.#done ? [] : this.#resync("too-old");
  }

  #resync(reason: "too-old" | "other-epoch"): readonly CatchUp[] {
    this.#done = true;
    return [{ kind: "resync", reason }];
  }
}
