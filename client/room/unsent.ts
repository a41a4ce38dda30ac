/**
 * Edits that were never sent, oldest first. They wait for the pace or the network, and go out as few: when the
 * next is taken, as many as fit are merged into it, and one that is too large is cut. Rules UNS1 to UNS5.
 */

import type { UnsentEdit } from "./waiting-edits.ts";

/** How payloads of one kind are joined and cut. They bear being ordered twice, whole and in pieces. */
export type EditFormat = {
  /** One payload that does what all of them do, in their order. */
  merge(payloads: readonly Uint8Array[]): Uint8Array;
  /** As `merge`, of a room's whole content: what was deleted may be forgotten. For what is kept on this device. */
  condense?(payloads: readonly Uint8Array[]): Uint8Array;
  /** Payloads of at most `bytesMax` that together do the same; undefined if it cannot be cut so small. */
  split(payload: Uint8Array, bytesMax: number): readonly Uint8Array[] | undefined;
};

export type UnsentOptions = {
  /** Undefined: nothing is known of the payloads, and they are sent as they were made. */
  readonly format: EditFormat | undefined;
  /** False: each is sent by itself, though one that is too large is cut still. */
  readonly mergeUnsent: boolean;
  readonly unsentBytesMax: number;
};

export type Taken = { readonly kind: "taken"; readonly edit: UnsentEdit } | { readonly kind: "too-large"; readonly payload: Uint8Array };

/** So many waiting are merged into pieces of this size, so that hours of typing offline stay small. */
const COMPACT_AFTER_EDITS = 1_000;
const PIECE_BYTES_MAX = 65_536;

export class Unsent {
  readonly #format: EditFormat | undefined;
  readonly #merge: EditFormat["merge"] | undefined;
  readonly #bytesMax: number;
  #edits: UnsentEdit[] = [];
  /** Index of the first that still waits. */
  #start = 0;
  #bytes = 0;
  #made = 0;
  #compactAt = COMPACT_AFTER_EDITS;
  /** What is merged or cut is made no larger: known since the server took less than it had said. */
  #pieceBytesMax = Infinity;

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

  /** False: too much is waiting already. */
  add(payload: Uint8Array): boolean {
    if (!this.isEmpty && this.#bytes + payload.byteLength > this.#bytesMax) return false;
    this.#edits.push(this.#counted({ payload, made: 1 }));
    if (this.#merge !== undefined && this.#edits.length - this.#start >= this.#compactAt) this.#compact(this.#merge);
    return true;
  }

  /** The server refused so much, though it had said that it takes it. Halves, so that a few refusals show what it does take. */
  receiveTooLarge(bytes: number): void {
    this.#pieceBytesMax = Math.min(this.#pieceBytesMax, Math.floor(bytes / 2));
  }

  /** Edits that were taken and have to be taken again, to the front. */
  putBack(edits: readonly UnsentEdit[]): void {
    this.#edits = [...edits.map(({ payload, made }) => this.#counted({ payload, made })), ...this.#edits.slice(this.#start)];
    this.#start = 0;
  }

  /** The next to send, of at most `bytesMax`. Only while it is not empty. */
  take(bytesMax: number): Taken {
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

  #takeCut(first: UnsentEdit, bytesMax: number): Taken {
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
      const fitting = this.#countFitting(at, PIECE_BYTES_MAX);
      compacted.push(fitting === 1 ? this.#edits[at]! : mergeAll(this.#edits.slice(at, at + fitting), merge));
      at += fitting;
    }
    this.#edits = compacted;
    this.#start = 0;
    this.#bytes = compacted.reduce((sum, { payload }) => sum + payload.byteLength, 0);
    this.#compactAt = compacted.length + COMPACT_AFTER_EDITS;
  }

  /** How many, from `start` on, have together at most `bytesMax`; at least one. */
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
