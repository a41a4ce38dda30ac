/**
 * How fast frames of one kind go out over one connection, whatever the rooms that they are of: somewhat below what
 * WELCOME allows, as edits do (`pace.ts`). Whoever has one to send asks for a turn; turns come in the order in which they
 * are asked for, so that no room keeps another waiting, however much it has to say. Rules FPA1 to FPA3.
 */

import type { Millis } from "../../shared/ids.ts";
import { BURST_PART, RATE_PART } from "../room/pace.ts";

/** So many frames at once, so many a second in the long run, as the server allows them. */
export type FrameRate = { readonly burst: number; readonly perSecond: number };

export class FramePace {
  readonly #burst: number;
  readonly #perMs: number;
  /** Below nothing: so many have a turn that is still to come. */
  #left: number;
  #filledAt: Millis;

  constructor({ burst, perSecond }: FrameRate, now: Millis) {
    this.#burst = Math.max(1, Math.floor(burst * BURST_PART));
    this.#perMs = (Math.max(1, perSecond) * RATE_PART) / 1000;
    this.#left = this.#burst;
    this.#filledAt = now;
  }

  /** When the frame may go out: `now`, or later. It is to be sent then, or given back. */
  takeTurn(now: Millis): Millis {
    const elapsedMs = Math.max(0, now - this.#filledAt); // A clock set back gives nothing and takes nothing.
    this.#left = Math.min(this.#burst, this.#left + elapsedMs * this.#perMs) - 1;
    this.#filledAt = now;
    return (now + Math.ceil(Math.max(0, -this.#left) / this.#perMs)) as Millis;
  }

  giveBack(): void {
    this.#left = Math.min(this.#burst, this.#left + 1);
  }
}
