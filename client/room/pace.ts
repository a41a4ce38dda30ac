/**
 * How fast edits go out over one connection: always somewhat below what WELCOME allows, in edits and in bytes, so that
 * honest typing and large pastes are never closed for their rate, however long the network holds back what was sent.
 * Whatever is sent counts, repeats included. Rules PAC1 to PAC4.
 */

import type { Millis } from "../../shared/ids.ts";
import type { Limits } from "../../shared/wire/frames.ts";
import { LineBucket } from "../connection/line-bucket.ts";

/** Of what the server allows. */
export const BURST_PART = 0.7;
export const RATE_PART = 0.9;

export type PaceLimits = Pick<Limits, "editBurst" | "editsPerSecond" | "editBytesMax" | "bytesBurst" | "bytesPerSecond">;

export class Pace {
  readonly burst: number;
  readonly #edits: LineBucket;
  /** What an edit weighs shows once it is taken, so this may go below nothing; the next waits until that is made up for. */
  readonly #bytes: LineBucket;

  constructor({ editBurst, editsPerSecond, editBytesMax, bytesBurst, bytesPerSecond }: PaceLimits, now: Millis) {
    this.burst = Math.max(1, Math.floor(editBurst * BURST_PART));
    this.#edits = new LineBucket({ size: this.burst, perSecond: Math.max(1, editsPerSecond) * RATE_PART }, now);
    const size = Math.max(1, Math.min(bytesBurst * BURST_PART, bytesBurst - editBytesMax)); // One edit may go beyond it.
    this.#bytes = new LineBucket({ size, perSecond: Math.max(1, bytesPerSecond) * RATE_PART }, now);
  }

  get asksSoon(): boolean {
    return this.#edits.asksSoon || this.#bytes.asksSoon;
  }

  take(now: Millis): boolean {
    if (!this.#edits.mayTake(now) || !this.#bytes.mayTake(now)) return false;
    this.#edits.take(1, now);
    return true;
  }

  /** What was taken weighs so much. */
  spend(bytes: number, now: Millis): void {
    this.#bytes.take(bytes, now);
  }

  /** When the next edit may go out, as far as is known. */
  nextAt(now: Millis): Millis {
    return Math.max(this.#edits.hasAt(1, now), this.#bytes.hasAt(1, now)) as Millis;
  }

  asked(): void {
    this.#edits.asked();
    this.#bytes.asked();
  }

  arrived(now: Millis): void {
    this.#edits.arrived(now);
    this.#bytes.arrived(now);
  }
}
