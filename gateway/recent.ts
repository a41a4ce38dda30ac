/**
 * The newest edits delivered to a room's members, so that somebody who joins (after a catch-up from the owner,
 * or back from a short absence) meets the live flow without a hole. Bounded by bytes and by age.
 */

import type { Epoch, Millis, Position, Seq } from "../shared/ids.ts";
import type { CommittedBatch } from "./in-order.ts";

type Entry = { readonly epoch: Epoch; readonly firstSeq: Seq; readonly lastSeq: Seq; readonly bytes: Uint8Array; readonly at: Millis };

/** What an entry costs beside its bytes. */
const ENTRY_OVERHEAD_BYTES = 100;

export class Recent {
  readonly #options: { readonly bytesMax: number; readonly msMax: number };
  #entries: Entry[] = [];
  #bytes = 0;

  constructor(options: { bytesMax: number; msMax: number }) {
    this.#options = options;
  }

  get empty(): boolean {
    return this.#entries.length === 0;
  }

  append({ epoch, firstSeq, lastSeq, bytes }: CommittedBatch, now: Millis): void {
    this.#entries.push({ epoch, firstSeq, lastSeq, bytes: bytes.slice(), at: now }); // The bus lends its bytes out of a larger buffer.
    this.#bytes += costOf(bytes);
    this.expire(now);
  }

  /** The bytes of the edits behind `seq`. Undefined: some of them are no longer here. */
  after(seq: Seq): Uint8Array[] | undefined {
    const first = this.#entries.findIndex((entry) => entry.lastSeq > seq);
    if (first < 0) return undefined;
    return this.#entries[first]!.firstSeq <= seq + 1 ? this.#entries.slice(first).map((entry) => entry.bytes) : undefined;
  }

  /** Whether somebody may hold the position: edits never change, but a log that was lost begins anew. */
  vouchesFor(position: Position): boolean {
    const entry = this.#entries.find(({ firstSeq, lastSeq }) => firstSeq <= position.seq && position.seq <= lastSeq);
    return entry !== undefined && position.epoch >= entry.epoch;
  }

  expire(now: Millis): void {
    const oldest = now - this.#options.msMax;
    let drop = 0;
    while (drop < this.#entries.length && (this.#bytes > this.#options.bytesMax || this.#entries[drop]!.at < oldest)) {
      this.#bytes -= costOf(this.#entries[drop]!.bytes);
      drop += 1;
    }
    if (drop > 0) this.#entries.splice(0, drop);
  }

  clear(): void {
    this.#entries = [];
    this.#bytes = 0;
  }
}

function costOf(bytes: Uint8Array): number {
  return bytes.byteLength + ENTRY_OVERHEAD_BYTES;
}
