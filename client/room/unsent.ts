/**
 * Edits that were never sent, oldest first. When the next one is taken, later ones are merged into it up to the maximum
 * size, and an edit that is too large is cut. Rules UNS1 to UNS5.
 */

import type { ClientId, Seq } from "../../shared/ids.ts";
import type { Counter } from "../../shared/wire/frames.ts";

/** An edit that waits to be sent. */
export type UnsentEdit = {
  readonly payload: Uint8Array;
  /** Number of application calls that made it, because waiting edits are merged. */
  readonly made: number;
};

/** An edit with a counter. It is sent again under the same counter until it is acknowledged. */
export type SentEdit = UnsentEdit & {
  /** The client id under which it was sent, if known. */
  readonly client: ClientId | undefined;
  readonly counter: Counter;
  readonly parentSeq: Seq;
};

/** Merges and cuts payloads of one format. Payloads must tolerate being applied twice, complete and in pieces. */
export type EditFormat = {
  /** Returns one payload with the effect of all payloads in order. */
  merge(payloads: readonly Uint8Array[]): Uint8Array;
  /** Like `merge`, for a room's complete content, and may drop deleted content. Used for the local store. */
  readonly condense?: ((payloads: readonly Uint8Array[]) => Uint8Array) | undefined;
  /** Returns payloads of at most `bytesMax` bytes that together have the same effect; undefined if impossible. */
  split(payload: Uint8Array, bytesMax: number): readonly Uint8Array[] | undefined;
};

export type UnsentOptions = {
  /** Undefined: the format is unknown, so payloads are sent unchanged. */
  readonly format: EditFormat | undefined;
  /** False: edits are not merged, but one that is too large is still cut. */
  readonly mergeUnsent: boolean;
  readonly unsentBytesMax: number;
};

type TakenEdit = { readonly kind: "taken"; readonly edit: UnsentEdit } | { readonly kind: "too-large"; readonly payload: Uint8Array };

/**
 * When this many edits wait, they are merged into pieces of the size below, so that hours of offline typing stay small.
 */
const COMPACT_AFTER_EDITS = 1_000;
const COMPACT_BYTES_MAX = 65_536;
/**
 * Maximum bytes of merged or cut edits, whatever the server accepts. So many bytes hold fewer structs of Yjs than the
 * 50,000 above which all documents leave an edit out.
 */
export const PIECE_BYTES_MAX = 262_144;

export class Unsent {
  readonly #format: EditFormat | undefined;
  readonly #merge: EditFormat["merge"] | undefined;
  readonly #bytesMax: number;
  #edits: UnsentEdit[] = [];
  /** Index of the first waiting edit. */
  #start = 0;
  #bytes = 0;
  #made = 0;
  #compactAt = COMPACT_AFTER_EDITS;
  /** Maximum bytes of merged or cut edits, lowered when the server accepts less than it announced. */
  #pieceBytesMax = PIECE_BYTES_MAX;

  constructor({ format, mergeUnsent, unsentBytesMax }: UnsentOptions) {
    this.#format = format;
    this.#merge = mergeUnsent ? format?.merge : undefined;
    this.#bytesMax = unsentBytesMax;
  }

  get isEmpty(): boolean {
    return this.#start === this.#edits.length;
  }

  /** Oldest first. */
  get waiting(): readonly UnsentEdit[] {
    return this.#edits.slice(this.#start);
  }

  get made(): number {
    return this.#made;
  }

  /** False: too many edits are waiting. */
  add(payload: Uint8Array): boolean {
    if (!this.isEmpty && this.#bytes + payload.byteLength > this.#bytesMax) return false;
    this.#edits.push(this.#counted({ payload, made: 1 }));
    if (this.#merge !== undefined && this.#edits.length - this.#start >= this.#compactAt) this.#compact(this.#merge);
    return true;
  }

  /**
   * The server refused an edit of this size although it was within the announced limit. Halving finds the real limit
   * with few refusals.
   */
  receiveTooLarge(bytes: number): void {
    this.#pieceBytesMax = Math.min(this.#pieceBytesMax, Math.floor(bytes / 2));
  }

  /** Puts edits back to the front. */
  putBack(edits: readonly UnsentEdit[]): void {
    this.#edits = [...edits.map(({ payload, made }) => this.#counted({ payload, made })), ...this.#edits.slice(this.#start)];
    this.#start = 0;
  }

  /** Returns the next edit of at most `bytesMax` bytes. Call only while it is not empty. */
  take(bytesMax: number): TakenEdit {
    const first = this.#edits[this.#start]!;
    if (first.payload.byteLength > bytesMax) return this.#takeCut(first, bytesMax);
    const mergedMax = Math.min(bytesMax, this.#pieceBytesMax);
    const fitting = this.#merge === undefined ? 1 : this.#countFitting(this.#start, mergedMax);
    if (this.#merge !== undefined && fitting > 1) {
      const merged = mergeAll(this.#edits.slice(this.#start, this.#start + fitting), this.#merge);
      if (merged.payload.byteLength <= mergedMax) {
        this.#drop(fitting);
        return { kind: "taken", edit: merged };
      }
    }
    this.#drop(1);
    return { kind: "taken", edit: first };
  }

  #takeCut(first: UnsentEdit, bytesMax: number): TakenEdit {
    const pieces =
      this.#format?.split(first.payload, Math.min(bytesMax, this.#pieceBytesMax)) ?? this.#format?.split(first.payload, bytesMax);
    this.#drop(1);
    if (pieces === undefined) return { kind: "too-large", payload: first.payload };
    this.putBack(pieces.map((payload, index) => ({ payload, made: index === pieces.length - 1 ? first.made : 0 })));
    return this.take(bytesMax);
  }

  #compact(merge: EditFormat["merge"]): void {
    const compacted: UnsentEdit[] = [];
    for (let at = this.#start; at < this.#edits.length;) {
      const fitting = this.#countFitting(at, COMPACT_BYTES_MAX);
      compacted.push(fitting === 1 ? this.#edits[at]! : mergeAll(this.#edits.slice(at, at + fitting), merge));
      at += fitting;
    }
    this.#edits = compacted;
    this.#start = 0;
    this.#bytes = compacted.reduce((sum, { payload }) => sum + payload.byteLength, 0);
    this.#compactAt = compacted.length + COMPACT_AFTER_EDITS;
  }

  /** Number of edits from `start` on that have at most `bytesMax` bytes together; at least one. */
  #countFitting(start: number, bytesMax: number): number {
    let bytes = 0;
    let end = start;
    while (end < this.#edits.length) {
      bytes += this.#edits[end]!.payload.byteLength;
      if (bytes > bytesMax) break;
      end += 1;
    }
    return Math.max(1, end - start);
  }

  #counted(edit: UnsentEdit): UnsentEdit {
    this.#bytes += edit.payload.byteLength;
    this.#made += edit.made;
    return edit;
  }

  #drop(count: number): void {
    for (let dropped = 0; dropped < count; dropped++) {
      const { payload, made } = this.#edits[this.#start + dropped]!;
      this.#bytes -= payload.byteLength;
      this.#made -= made;
    }
    this.#start += count;
    if (this.#start < this.#edits.length && this.#start < COMPACT_AFTER_EDITS) return;
    this.#edits = this.#edits.slice(this.#start);
    this.#start = 0;
  }
}

function mergeAll(edits: readonly UnsentEdit[], merge: EditFormat["merge"]): UnsentEdit {
  return { payload: merge(edits.map(({ payload }) => payload)), made: edits.reduce((sum, { made }) => sum + made, 0) };
}
