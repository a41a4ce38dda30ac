/**
 * An ordered queue of content changes that are not yet in the local store. If the log lost edits, the store may have the
 * only copy, so old stored content is removed only after the room is synced and the server has received that content
 * again. Deterministic. Rules KDC1 to KDC4.
 */

import type { Position, Seq } from "../../shared/ids.ts";
import type { RoomEdit, RoomSessionEffect } from "../room/room-messages.ts";
import type { DocumentChange, EditName } from "./edit-store.ts";

export class DocumentChanges {
  readonly #bytesMax: number;
  readonly #changes: DocumentChange[] = [];
  #bytes = 0;
  /** Number of changes, from the oldest, that are being written. */
  #writing = 0;
  /** True: more changes arrived than could be written, so later edits do not continue the stored content. */
  #isBehind = false;
  #isHeldBack = false;

  /** `bytesMax`: above it, the document is no longer stored. */
  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /** True: there is something to write now. */
  get isWaiting(): boolean {
    return !this.#isHeldBack && this.#changes.length > 0;
  }

  /** Content that the application is about to receive. `position`: the position after it. */
  observe(effect: RoomSessionEffect, position: Position): void {
    switch (effect.kind) {
      case "deliver":
        return this.#continueBy(effect.edits, position);
      case "load-snapshot":
        return this.#beginAt(effect);
      case "log-rolled-back":
        this.#startOver({ kind: "forgotten" });
        this.#isHeldBack = true;
        return;
      default:
        return;
    }
  }

  /** The room is synced. */
  release(): void {
    this.#isHeldBack = false;
  }

  /** Returns all changes to write now. */
  take(): readonly DocumentChange[] {
    this.#writing = this.#isHeldBack ? 0 : this.#changes.length;
    return this.#changes.slice(0, this.#writing);
  }

  /** The changes that were taken are stored. */
  kept(): void {
    for (const change of this.#changes.splice(0, this.#writing)) this.#bytes -= bytesOf(change);
    this.#writing = 0;
  }

  /** The changes that were taken have to be written again. */
  notKept(): void {
    this.#writing = 0;
  }

  #continueBy(edits: readonly RoomEdit[], position: Position): void {
    const { seq, client, counter } = edits.at(-1)!;
    const last: EditName = { client, counter };
    const after = (edits[0]!.seq - 1) as Seq;
    this.#add({ kind: "continued", after, position: { epoch: position.epoch, seq }, last, payloads: edits.map(({ payload }) => payload) });
  }

  #beginAt({ position, last, payload }: RoomSessionEffect & { kind: "load-snapshot" }): void {
    this.#startOver(...this.#changes.filter(({ kind }) => kind === "forgotten"), { kind: "begun", position, last, payload });
  }

  /** Waiting changes are invalid. A write in progress is not. */
  #startOver(...changes: DocumentChange[]): void {
    for (const dropped of this.#changes.splice(this.#writing)) this.#bytes -= bytesOf(dropped);
    this.#isBehind = false;
    for (const change of changes) this.#add(change);
  }

  #add(change: DocumentChange): void {
    if (this.#isBehind) return;
    const bytes = bytesOf(change);
    this.#isBehind = this.#changes.length > 0 && this.#bytes + bytes > this.#bytesMax;
    if (this.#isBehind) return;
    this.#changes.push(change);
    this.#bytes += bytes;
  }
}

/** Estimated bytes of an edit in addition to its payload. */
const EDIT_OVERHEAD_BYTES = 100;

function bytesOf(change: DocumentChange): number {
  switch (change.kind) {
    case "continued":
      return change.payloads.reduce((sum, { byteLength }) => sum + byteLength + EDIT_OVERHEAD_BYTES, 0);
    case "begun":
      return change.payload.byteLength;
    case "forgotten":
      return 0;
  }
}
