/**
 * The newest edits delivered to a room's members. Serves members that join after a catch-up or return after a short
 * absence: they receive the edits between their position and the room's from memory. Limited by bytes and age.
 */

import type { Epoch, Millis, Position, Seq } from "../../shared/ids.ts";
import type { CommittedBatch } from "../../shared/wire/committed-edits.ts";

type Entry = { readonly epoch: Epoch; readonly firstSeq: Seq; readonly lastSeq: Seq; readonly bytes: Uint8Array; readonly at: Millis };

export type RecentOptions = { readonly recentBytesMax: number; readonly recentMsMax: number };

/** Memory of an entry in addition to its bytes. */
const ENTRY_OVERHEAD_BYTES = 100;
const FORGOTTEN_MAX = 1024;
const FORGOTTEN: Entry = { epoch: 0 as Epoch, firstSeq: 0 as Seq, lastSeq: 0 as Seq, bytes: new Uint8Array(0), at: 0 as Millis };

export class Recent {
  readonly #options: RecentOptions;
  #entries: Entry[] = [];
  /** Entries before this index are forgotten. They are removed in groups, because each removal moves all later entries. */
  #first = 0;
  #bytes = 0;
  /** The position before the first entry. Undefined: not known. */
  #before: Position | undefined;

  constructor(options: RecentOptions) {
    this.#options = options;
  }

  get empty(): boolean {
    return this.#first === this.#entries.length;
  }

  /** Clears the entries: the next one follows this position. */
  beginAfter(position: Position): void {
    this.#entries = [];
    this.#first = 0;
    this.#bytes = 0;
    this.#before = position;
  }

  append({ epoch, firstSeq, lastSeq, bytes }: CommittedBatch, now: Millis): void {
    this.#entries.push({ epoch, firstSeq, lastSeq, bytes: bytes.slice(), at: now }); // NATS reuses the buffer of these bytes.
    this.#bytes += costOf(bytes);
    this.expire(now);
  }

  /** The edits after `seq`, to the end of the entry with `through`. Undefined: some of them are no longer in memory. */
  after(seq: Seq, through?: Seq): Uint8Array[] | undefined {
    const first = this.#indexOf((seq + 1) as Seq);
    if (first === undefined) return undefined;
    const last = (through === undefined ? undefined : this.#indexOf(through)) ?? this.#entries.length - 1;
    return this.#entries.slice(first, last + 1).map((entry) => entry.bytes);
  }

  /**
   * Whether a client at the position has the edits that were delivered here. Its epoch must be the one that ordered the
   * edit, or the `current` one. Only the owner knows about epochs between them.
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

  /** Index of the entry with the edit. The search starts at the end, because most clients were absent only briefly. */
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

/** The answer expires, so that a restored log or snapshot can be used. */
const KNOWN_MS = 2_000;

/** The last position that the owner reported as too old. Many reconnecting clients have the same position, so only the first one asks. */
export class TooOldPosition {
  #known: { readonly position: Position; readonly until: Millis } | undefined;

  /** `position`: the position in the question. */
  remember(position: Position, now: Millis): void {
    this.#known = { position, until: (now + KNOWN_MS) as Millis };
  }

  /** Another owner may answer differently. */
  forget(): void {
    this.#known = undefined;
  }

  /** Whether a client at this position needs a snapshot. */
  covers({ epoch, seq }: Position, now: Millis): boolean {
    const known = this.#known;
    return known !== undefined && now < known.until && seq === known.position.seq && epoch === known.position.epoch;
  }
}
