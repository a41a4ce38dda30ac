/**
 * The newest edits of one room, as the bytes that the log holds, so that whoever was away for a while is caught
 * up without reading the log. Bounded by age, by bytes of the room and by bytes of the process: the oldest go
 * first, and what has gone is read from the log. Rules BLG1 to BLG3, BLG6 and BLG7.
 */

import { assert } from "../../shared/assert.ts";
import type { Millis, Seq } from "../../shared/ids.ts";
import { cutEdits } from "./edits-range.ts";

/** `since`: when the log took it, by the clock of this process. */
export type BacklogRecord = {
  readonly firstSeq: Seq;
  readonly lastSeq: Seq;
  readonly since: Millis;
  readonly bytes: Uint8Array;
};

export type BacklogAnswer =
  | { kind: "edits"; parts: readonly Uint8Array[] }
  /** Some of the range is no longer here. */
  | { kind: "older" };

/** What the backlogs of all rooms of a process hold together. */
export class BacklogBudget {
  readonly bytesMax: number;
  bytes = 0;

  constructor(options: { bytesMax: number }) {
    this.bytesMax = options.bytesMax;
  }
}

export type BacklogOptions = { readonly backlogMsMax: number; readonly backlogBytesMax: number };

/** What a record costs beside its bytes: small records would otherwise take many times what is counted. */
const RECORD_OVERHEAD_BYTES = 200;
/** Of all rooms without any: an empty list of each would be 32 bytes. Nothing is added to it. */
const NO_RECORDS: BacklogRecord[] = [];
/** Dropped records are cut off the array in one go once there are so many. */
const DROPPED_MAX = 1024;

export class Backlog {
  readonly #options: BacklogOptions;
  readonly #budget: BacklogBudget;
  #records: BacklogRecord[] = NO_RECORDS;
  /** Records before it were dropped. */
  #start = 0;
  #bytes = 0;
  #head: Seq;

  /** `head`: the seq before the first record to come. */
  constructor(options: BacklogOptions, budget: BacklogBudget, head: Seq) {
    this.#options = options;
    this.#budget = budget;
    this.#head = head;
  }

  append(record: BacklogRecord, now: Millis): void {
    assert(record.firstSeq === this.#head + 1, "the backlog takes records in the log's order");
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

  /** Edits in `after < seq <= through`. */
  range(after: Seq, through: Seq): BacklogAnswer {
    if (after >= Math.min(through, this.#head)) return { kind: "edits", parts: [] };

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

  /** Gives its share of the process's bytes back. */
  clear(): void {
    this.#count(-this.#bytes);
    this.#records = NO_RECORDS;
    this.#start = 0;
  }

  /** Which record holds the edit, by bisection. */
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
