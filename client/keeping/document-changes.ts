/**
 * What of a room's content is still to be kept on this device, in its order. Where the log has lost something, what is
 * kept here may be all there is of it: that stays until the room is known whole, and is given it anew. Deterministic.
 * Rules KDC1 to KDC4.
 */

import type { Position, Seq } from "../../shared/ids.ts";
import type { RoomEdit } from "../room/inbox.ts";
import type { RoomEffect } from "../room/room-messages.ts";
import type { DocumentChange, EditName } from "./edit-store.ts";

export class DocumentChanges {
  readonly #bytesMax: number;
  readonly #changes: DocumentChange[] = [];
  #bytes = 0;
  /** So many, the oldest, are being written. */
  #writing = 0;
  /** More came than could be written: what follows does not join on. */
  #isBehind = false;
  #isHeldBack = false;

  /** `bytesMax`: past it the document is kept no further. */
  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /** Something may be written now. */
  get isWaiting(): boolean {
    return !this.#isHeldBack && this.#changes.length > 0;
  }

  /** What the application is about to be given of the room's content. `position`: how far that goes. */
  observe(effect: RoomEffect, position: Position): void {
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

  /** The room is known whole. */
  release(): void {
    this.#isHeldBack = false;
  }

  /** All that may be written now. */
  take(): readonly DocumentChange[] {
    this.#writing = this.#isHeldBack ? 0 : this.#changes.length;
    return this.#changes.slice(0, this.#writing);
  }

  /** What was taken. */
  kept(): void {
    for (const change of this.#changes.splice(0, this.#writing)) this.#bytes -= bytesOf(change);
    this.#writing = 0;
  }

  /** What was taken waits again. */
  notKept(): void {
    this.#writing = 0;
  }

  #continueBy(edits: readonly RoomEdit[], position: Position): void {
    const { seq, client, counter } = edits.at(-1)!;
    const last: EditName = { client, counter };
    const after = (edits[0]!.seq - 1) as Seq;
    this.#add({ kind: "continued", after, position: { epoch: position.epoch, seq }, last, payloads: edits.map(({ payload }) => payload) });
  }

  #beginAt({ position, last, payload }: RoomEffect & { kind: "load-snapshot" }): void {
    this.#startOver(...this.#changes.filter(({ kind }) => kind === "forgotten"), { kind: "begun", position, last, payload });
  }

  /** What was to be written before is void. What is being written is not. */
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

/** What an edit costs beside its payload. */
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
