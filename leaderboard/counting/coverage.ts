/** From where on what a room has of one stream is in no checkpoint. */

import type { Millis } from "../../shared/ids.ts";

type Uncovered = { readonly streamSeq: number; readonly since: Millis };

export class Coverage {
  #first: Uncovered | undefined;
  /** The first that a checkpoint being written will not cover. */
  #later: Uncovered | undefined;

  get from(): number | undefined {
    return this.#first?.streamSeq;
  }

  get since(): Millis | undefined {
    return this.#first?.since;
  }

  receive(streamSeq: number, now: Millis): void {
    this.#first ??= { streamSeq, since: now };
    this.#later ??= { streamSeq, since: now };
  }

  /** Nothing received so far counts as uncovered. */
  forget(): void {
    this.#first = undefined;
  }

  /** What comes from here on will not be in the checkpoint. */
  beginCheckpoint(): void {
    this.#later = undefined;
  }

  endCheckpoint(): void {
    this.#first = this.#later;
  }
}
