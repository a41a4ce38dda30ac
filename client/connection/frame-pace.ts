/**
 * How fast frames of one kind go out over one connection, whatever the rooms that they are of: somewhat below what
 * WELCOME allows, as edits do (`pace.ts`). Whoever has one to send asks for a turn; turns come in the order in which they
 * are asked for, so that no room keeps another waiting, however much it has to say. While nothing that was sent arrives
 * they come ever later. Rules FPA1 to FPA4.
 */

import type { Millis } from "../../shared/ids.ts";
import { BURST_PART, RATE_PART } from "../room/pace.ts";
import { LineBucket } from "./line-bucket.ts";

/** So many frames at once, so many a second in the long run, as the server allows them. */
export type FrameRate = { readonly burst: number; readonly perSecond: number };

export class FramePace {
  readonly #frames: LineBucket;

  constructor({ burst, perSecond }: FrameRate, now: Millis) {
    const size = Math.max(1, Math.floor(burst * BURST_PART));
    this.#frames = new LineBucket({ size, perSecond: Math.max(1, perSecond) * RATE_PART }, now);
  }

  get asksSoon(): boolean {
    return this.#frames.asksSoon;
  }

  /** When the frame may go out: `now`, or later. It is to be sent then, or given back. */
  takeTurn(now: Millis): Millis {
    this.#frames.take(1, now);
    return this.#frames.hasAt(0, now);
  }

  giveBack(): void {
    this.#frames.giveBack(1);
  }

  asked(): void {
    this.#frames.asked();
  }

  arrived(now: Millis): void {
    this.#frames.arrived(now);
  }
}
