/**
 * The newest edits delivered to a room's members, so that somebody who joins (after a catch-up from the owner,
 * or back from a short absence) meets the live flow without a hole. Bounded by bytes and by age.
 */

import type { Epoch, Millis, Position, Seq } from "../../shared/ids.ts";
import type { CommittedBatch } from "./in-order.ts";

type Entry = { readonly epoch: Epoch; readonly firstSeq: Seq; readonly lastSeq: Seq; readonly bytes: Uint8Array; readonly at: Millis };

export type RecentOptions = { readonly recentBytesMax: number; readonly recentMsMax: number };

/** What an entry costs beside its bytes. */
const ENTRY_OVERHEAD_BYTES = 100;
const FORGOTTEN_MAX = 1024;
const FORGOTTEN: Entry = { epoch: 0 as Epoch, firstSeq: 0 as Seq, lastSeq: 0 as Seq, bytes: new Uint8Array(0), at: 0 as Millis };

export class Recent {
  readonly #options: RecentOptions;
  #entries: Entry[] = [];
  /** Entries before it are forgotten; they are cut off together, for cutting off each would move all others. */
  #first = 0;
  #bytes = 0;
  /** What the first entry follows. Undefined: not known. */
  #before: Position | undefined;

  constructor(options: RecentOptions) {
    this.#options = options;
  }

  get empty(): boolean {
    return this.#first === this.#entries.length;
  }

  /** Nothing is here yet: what is appended next follows this. */
  beginAfter(position: Position): void {
    this.clear();
    this.#before = position;
  }

  append({ epoch, firstSeq, lastSeq, bytes }: CommittedBatch, now: Millis): void {
    this.#entries.push({ epoch, firstSeq, lastSeq, bytes: bytes.slice(), at: now }); // The bus lends its bytes out of a larger buffer.
    this.#bytes += costOf(bytes);
    this.expire(now);
  }

  /** The bytes of the edits behind `seq`. Undefined: some of them are no longer here. */
  after(seq: Seq): Uint8Array[] | undefined {
    const first = this.#indexOf((seq + 1) as Seq);
    return first === undefined ? undefined : this.#entries.slice(first).map((entry) => entry.bytes);
  }

  /**
   * Whether somebody at the position holds what was delivered here: it is in the epoch that ordered the edit, or in the
   * owner's own, `current`. One in between the log may have lost: its owner knows.
   */
  vouchesFor({ epoch, seq }: Position, current: Epoch): boolean {
    const index = this.#indexOf(seq);
    const at = index === undefined ? this.#before : this.#entries[index]!;
    if (at === undefined || (index === undefined && this.#before?.seq !== seq)) return false;
    return seq === 0 || epoch === at.epoch || epoch === current;
  }

  expire(now: Millis): void {
    const oldest = now - this.#options.recentMsMax;
    while (this.#first < this.#entries.length) {
      const entry = this.#entries[this.#first]!;
      if (this.#bytes <= this.#options.recentBytesMax && entry.at >= oldest) break;
      this.#bytes -= costOf(entry.bytes);
      this.#before = { epoch: entry.epoch, seq: entry.lastSeq };
      this.#entries[this.#first] = FORGOTTEN;
      this.#first += 1;
    }
    if (this.#first < FORGOTTEN_MAX && this.#first < this.#entries.length) return;
    this.#entries = this.#entries.slice(this.#first);
    this.#first = 0;
  }

  clear(): void {
    this.#entries = [];
    this.#first = 0;
    this.#bytes = 0;
    this.#before = undefined;
  }

  /** Which entry holds the edit. Sought from the end: whoever asks was there a moment ago. */
  #indexOf(seq: Seq): number | undefined {
    for (let index = this.#entries.length - 1; index >= this.#first; index--) {
      const { firstSeq, lastSeq } = this.#entries[index]!;
      if (seq > lastSeq) return undefined;
      if (seq >= firstSeq) return index;
    }
    return undefined;
  }
}

function costOf(bytes: Uint8Array): number {
  return bytes.byteLength + ENTRY_OVERHEAD_BYTES;
}
