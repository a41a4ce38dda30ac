/**
 * The newest edits of one room as the log's bytes, so that a returning client catches up without a log read. Limited by
 * age, by bytes per room and by bytes per process. The oldest edits are dropped first, and a catch-up that needs them
 * reads the log. Rules BLG1 to BLG3, BLG6 and BLG7.
 */

import * as decoding from "lib0/decoding";
import * as encoding from "lib0/encoding";

import { assert } from "../../shared/assert.ts";
import type { CatchUp } from "../../shared/bus/envelope.ts";
import type { Millis, Seq } from "../../shared/ids.ts";
import { readCommittedEdits, writeCommittedEdits } from "../../shared/wire/committed-edits.ts";

/** `since`: the time at which the log stored it, by this process's clock. */
export type BacklogRecord = {
  readonly firstSeq: Seq;
  readonly lastSeq: Seq;
  readonly since: Millis;
  readonly bytes: Uint8Array;
};

export type BacklogAnswer =
  | { kind: "edits"; parts: readonly Uint8Array[] }
  /** A part of the range is no longer in memory. */
  | { kind: "older" };

export type BacklogOptions = { readonly backlogMsMax: number; readonly backlogBytesMax: number };

/** Overhead per record. Without it, small records would take many times the counted bytes. */
const RECORD_OVERHEAD_BYTES = 200;
/** Shared by all rooms without records, because an empty array costs 32 bytes. Never add to it. */
const NO_RECORDS: BacklogRecord[] = [];
/** Dropped records are removed from the array together when there are this many. */
const DROPPED_MAX = 1024;

export class Backlog {
  readonly #options: BacklogOptions;
  readonly #budget: BacklogBudget;
  #records: BacklogRecord[] = NO_RECORDS;
  /** Records before this index were dropped. */
  #start = 0;
  #bytes = 0;
  #head: Seq;

  /** `head`: the seq before the next record. */
  constructor(options: BacklogOptions, budget: BacklogBudget, head: Seq) {
    this.#options = options;
    this.#budget = budget;
    this.#head = head;
  }

  append(record: BacklogRecord, now: Millis): void {
    assert(record.firstSeq === this.#head + 1, "the backlog receives records in the log's order");
    if (this.#records === NO_RECORDS) this.#records = [record];
    else this.#records.push(record);
    this.#head = record.lastSeq;
    this.#count(costOf(record));
    this.expire(now);
  }

  expire(now: Millis): void {
    const oldest = now - this.#options.backlogMsMax;
    while (this.#start < this.#records.length) {
      const first = this.#records[this.#start]!;
      if (first.since >= oldest && this.#bytes <= this.#options.backlogBytesMax && this.#budget.bytes <= this.#budget.bytesMax) break;
      this.#count(-costOf(first));
      this.#start += 1;
    }
    if (this.#start === 0 || (this.#start < DROPPED_MAX && this.#start < this.#records.length)) return;
    this.#records = this.#start === this.#records.length ? NO_RECORDS : this.#records.slice(this.#start);
    this.#start = 0;
  }

  /** The edits in `after < seq <= through`. `through`: at most the seq of the last record. */
  range(after: Seq, through: Seq): BacklogAnswer {
    if (after >= through) return { kind: "edits", parts: [] };

    const first = this.#indexOf((after + 1) as Seq);
    if (first === undefined) return { kind: "older" };
    const parts: Uint8Array[] = [];
    for (let index = first; index < this.#records.length; index++) {
      const record = this.#records[index]!;
      if (record.firstSeq > through) break;
      parts.push(cutEdits(record, after, through));
    }
    return { kind: "edits", parts };
  }

  /** Releases the room's part of the process's bytes. */
  clear(): void {
    this.#count(-this.#bytes);
    this.#records = NO_RECORDS;
    this.#start = 0;
  }

  /** The record that holds the edit, by binary search. */
  #indexOf(seq: Seq): number | undefined {
    let low = this.#start;
    let high = this.#records.length - 1;
    while (low <= high) {
      const middle = (low + high) >>> 1;
      const record = this.#records[middle]!;
      if (seq < record.firstSeq) high = middle - 1;
      else if (seq > record.lastSeq) low = middle + 1;
      else return middle;
    }
    return undefined;
  }

  #count(bytes: number): void {
    this.#bytes += bytes;
    this.#budget.bytes += bytes;
  }
}

function costOf(record: BacklogRecord): number {
  return record.bytes.byteLength + RECORD_OVERHEAD_BYTES;
}

/** Bytes in the backlogs of all rooms of a process. */
export class BacklogBudget {
  readonly bytesMax: number;
  bytes = 0;

  constructor(options: { bytesMax: number }) {
    this.bytesMax = options.bytesMax;
  }
}

/** Committed edits as bytes, cut to a range of seqs and packed into an answer of bounded size. */
type EditsRange = { readonly firstSeq: Seq; readonly lastSeq: Seq; readonly bytes: Uint8Array };

/**
 * The edits in `after < seq <= through`: the same bytes if the range contains all of them, otherwise decoded and
 * encoded again. The range must overlap.
 */
export function cutEdits({ firstSeq, lastSeq, bytes }: EditsRange, after: Seq, through: Seq): Uint8Array {
  if (firstSeq > after && lastSeq <= through) return bytes;
  const { epoch, edits } = readCommittedEdits(decoding.createDecoder(bytes));
  const first = Math.max(firstSeq, after + 1) as Seq;
  const inside = edits.slice(first - firstSeq, Math.min(lastSeq, through) - firstSeq + 1);
  return encoding.encode((out) => writeCommittedEdits(out, { epoch, firstSeq: first, edits: inside }));
}

/**
 * The answer to one request, up to the size of a message. The gateway requests the rest afterwards. So it never
 * receives more history than it can take, and new edits do not wait behind it.
 */
export class AnswerPacker {
  readonly #bytesMax: number;
  readonly #parts: Uint8Array[] = [];
  #bytes = 0;

  constructor(options: { answerBytesMax: number }) {
    this.#bytesMax = options.answerBytesMax;
  }

  /** False: the part does not fit. Any part fits an empty answer. */
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
