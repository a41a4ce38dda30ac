/**
 * An owner's doubts whether it is one still, settled by a look at the log's end. A look answers only for the
 * requests that were there when it began: a later owner may have come in between.
 */

import type { CatchUpRequest } from "./catch-ups.ts";

export class Doubts {
  readonly #waitingMax: number;
  /** Those that the look under way is for. */
  #asking: readonly CatchUpRequest[] | undefined;
  #waiting: CatchUpRequest[] = [];

  constructor(options: { deferredCatchUpsMax: number }) {
    this.#waitingMax = options.deferredCatchUpsMax;
  }

  /** A request from a gateway that has heard of a later owner. False when too many wait. */
  add(request: CatchUpRequest): boolean {
    if (this.#waiting.length >= this.#waitingMax) return false;
    this.#waiting.push(request);
    return true;
  }

  /** Whether to look at the log now: not while a look is under way. */
  begin(): boolean {
    if (this.#asking !== undefined) return false;
    this.#asking = this.#waiting;
    this.#waiting = [];
    return true;
  }

  /** The look found no later owner: for these requests that holds. */
  settle(): readonly CatchUpRequest[] {
    const settled = this.#asking ?? [];
    this.#asking = undefined;
    return settled;
  }

  get waiting(): boolean {
    return this.#waiting.length > 0;
  }

  /** The log could not be asked. Gateways send again what they want to know. */
  drop(): void {
    this.#asking = undefined;
    this.#waiting = [];
  }
}
