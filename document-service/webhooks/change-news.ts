/**
 * When to tell that a room's document has changed: once it was quiet for a while, and after so long at the latest while
 * it is not. Rules CHN1 to CHN3.
 */

import type { Millis, Position } from "../../shared/ids.ts";

export type ChangeNewsOptions = { readonly webhookQuietMs: number; readonly webhookChangeMsMax: number };
/** `edits`: since the last was told. */
export type Change = Position & { readonly edits: number };

export class ChangeNews {
  readonly #options: ChangeNewsOptions;
  #change: Change | undefined;
  #since = 0 as Millis;
  #last = 0 as Millis;

  constructor(options: ChangeNewsOptions) {
    this.#options = options;
  }

  get isPending(): boolean {
    return this.#change !== undefined;
  }

  receiveEdits({ epoch, seq }: Position, edits: number, now: Millis): void {
    if (this.#change === undefined) this.#since = now;
    this.#last = now;
    this.#change = { epoch, seq, edits: (this.#change?.edits ?? 0) + edits };
  }

  isDue(now: Millis): boolean {
    const { webhookQuietMs, webhookChangeMsMax } = this.#options;
    return this.isPending && (now - this.#last >= webhookQuietMs || now - this.#since >= webhookChangeMsMax);
  }

  /** What is to be told now; from here on it counts as told. */
  take(): Change | undefined {
    const change = this.#change;
    this.#change = undefined;
    return change;
  }

  /** It could not be told. */
  putBack(change: Change, now: Millis): void {
    const newer = this.#change;
    this.#change = newer === undefined ? change : { ...newer, edits: newer.edits + change.edits };
    this.#last = now;
  }
}
