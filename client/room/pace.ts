/**
 * How fast edits go out over one connection: always somewhat below what WELCOME allows, in edits and in bytes, so that
 * honest typing and large pastes are never closed for their rate, even where the network hands over at once what was
 * sent over a second. Whatever is sent counts, repeats included. Rules PAC1 to PAC3.
 */

import type { Millis } from "../../shared/ids.ts";
import type { Limits } from "../../shared/wire/frames.ts";

/** Of what the server allows. */
export const BURST_PART = 0.7;
export const RATE_PART = 0.9;

export type PaceLimits = Pick<Limits, "editBurst" | "editsPerSecond" | "editBytesMax" | "bytesBurst" | "bytesPerSecond">;

export class Pace {
  readonly burst: number;
  readonly #perMs: number;
  #tokens: number;
  readonly #bytesBurst: number;
  readonly #bytesPerMs: number;
  /** What an edit weighs shows once it is taken, so this may go below nothing; the next waits until that is made up for. */
  #bytes: number;
  #filledAt: Millis;

  constructor({ editBurst, editsPerSecond, editBytesMax, bytesBurst, bytesPerSecond }: PaceLimits, now: Millis) {
    this.burst = Math.max(1, Math.floor(editBurst * BURST_PART));
    this.#perMs = (Math.max(1, editsPerSecond) * RATE_PART) / 1000;
    this.#tokens = this.burst;
    this.#bytesBurst = Math.max(1, Math.min(bytesBurst * BURST_PART, bytesBurst - editBytesMax)); // One edit may go beyond it.
    this.#bytesPerMs = (Math.max(1, bytesPerSecond) * RATE_PART) / 1000;
    this.#bytes = this.#bytesBurst;
    this.#filledAt = now;
  }

  take(now: Millis): boolean {
    this.#fill(now);
    if (this.#tokens < 1 || this.#bytes < 1) return false;
    this.#tokens -= 1;
    return true;
  }

  /** What was taken weighs so much. */
  spend(bytes: number): void {
    this.#bytes -= bytes;
  }

  /** When the next edit may go out. */
  nextAt(now: Millis): Millis {
    this.#fill(now);
    const waitMs = Math.max(0, (1 - this.#tokens) / this.#perMs, (1 - this.#bytes) / this.#bytesPerMs);
    return (now + Math.ceil(waitMs)) as Millis;
  }

  #fill(now: Millis): void {
    const elapsedMs = Math.max(0, now - this.#filledAt); // A clock set back gives nothing and takes nothing.
    this.#tokens = Math.min(this.burst, this.#tokens + elapsedMs * this.#perMs);
    this.#bytes = Math.min(this.#bytesBurst, this.#bytes + elapsedMs * this.#bytesPerMs);
    this.#filledAt = now;
  }
}
