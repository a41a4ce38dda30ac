/**
 * Answers a catch-up from the log's own records, for a range that is not completely in the backlog. It receives the
 * room's records in order, starting at or before the range. Rules RPL1 to RPL6.
 */

import type { CatchUp } from "../../shared/bus/envelope.ts";
import { headOf, type OwnersRecord } from "../../shared/bus/record.ts";
import type { Position, Seq, GatewayId, Millis, RoomKey } from "../../shared/ids.ts";
import { AnswerPacker, cutEdits } from "./backlog.ts";

type LogReplayOptions = {
  readonly after: Position;
  /** Greater than `after`. */
  readonly through: Seq;
  /** Maximum bytes to read before the answer is a resync; infinite if no newer snapshot could help. */
  readonly readBytesMax: number;
  /** Bytes already read for earlier parts of the same catch-up. */
  readonly readBytes?: number;
  readonly answerBytesMax: number;
};

export class LogReplay {
  readonly #options: LogReplayOptions;
  readonly #packer: AnswerPacker;
  #next: Seq;
  #read: number;
  #isDone = false;

  constructor(options: LogReplayOptions) {
    this.#options = options;
    this.#packer = new AnswerPacker(options);
    this.#read = options.readBytes ?? 0;
    this.#next = (options.after.seq + 1) as Seq;
  }

  /** The newest record that the answer contains a part of. */
  get answeredThrough(): Seq {
    return (this.#next - 1) as Seq;
  }

  get readBytes(): number {
    return this.#read;
  }

  /** Returns the answer once it is complete: the complete range, or as much as fits. */
  receiveRecord(record: OwnersRecord): CatchUp | undefined {
    if (this.#isDone || record.kind === "epoch") return undefined;
    const { after, through, readBytesMax } = this.#options;
    const { epoch, firstSeq } = record.edits;
    const lastSeq = headOf(record);

    // The position was in the log when the owner was asked. Since then the log may have lost its end and continued
    // differently.
    if (after.seq >= firstSeq && after.seq <= lastSeq && epoch > after.epoch) return this.#resync("other-epoch");
    this.#read += record.editsBytes.byteLength;
    if (this.#read > readBytesMax || firstSeq > this.#next) return this.#resync("too-old");
    if (lastSeq < this.#next) return undefined;

    const part = cutEdits({ firstSeq, lastSeq, bytes: record.editsBytes }, after.seq, through);
    const fits = this.#packer.add(part);
    if (fits) this.#next = (lastSeq + 1) as Seq;
    // The edits of a room mostly have similar sizes, so a record that would not fit need not be fetched.
    if (fits && lastSeq < through && this.#packer.hasRoomFor(part)) return undefined;
    this.#isDone = true;
    return this.#packer.answer();
  }

  /** The log has no more records. */
  receiveEnd(): CatchUp {
    return this.#resync("too-old");
  }

  #resync(reason: "too-old" | "other-epoch"): CatchUp {
    this.#isDone = true;
    return { kind: "resync", reason };
  }
}

/** The last record of the answer, the bytes read before it, and the time until which the next request must wait. */
export type ReplayPosition = { readonly streamSeq: number; readonly readBytes: number; readonly restUntil: Millis };
/** The gateway, the room and the seq after which it requests the rest. */
export type ReplayKey = { readonly gateway: GatewayId; readonly room: RoomKey; readonly seq: Seq };

/**
 * The places in the log where earlier answers ended, for gateways that will request the rest. Several requests of a
 * gateway may read the same range at the same time. Limited in number: a request without a place reads from an earlier
 * one. Rules BKM1 and BKM2.
 */
export class ReplayPositions {
  readonly #max: number;
  /** The oldest first. */
  readonly #kept = new Map<string, ReplayPosition>();

  constructor(max: number) {
    this.#max = max;
  }

  keep(place: ReplayKey, position: ReplayPosition): void {
    this.forget(place);
    this.#kept.set(nameOf(place), position);
    const [oldest] = this.#kept.keys();
    if (oldest !== undefined && this.#kept.size > this.#max) this.#kept.delete(oldest);
  }

  find(place: ReplayKey): ReplayPosition | undefined {
    return this.#kept.get(nameOf(place));
  }

  /** The place is invalid, because the log may have been trimmed or have lost its end. */
  forget(place: ReplayKey): void {
    this.#kept.delete(nameOf(place));
  }
}

function nameOf({ gateway, room, seq }: ReplayKey): string {
  return [gateway, room, seq].join(" ");
}
