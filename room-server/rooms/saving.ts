/**
 * Whether a room's edits are being saved in time, from how long the log has taken with the append in flight. While
 * the room is "saving", unacked edits go out as tentative and acks wait; "refusing", new ones are turned away.
 * Nothing that was accepted is ever given up. Rules SAV1 to SAV6.
 */

import { assertNever } from "../../shared/assert.ts";
import type { Millis } from "../../shared/ids.ts";
import type { SavingState } from "../../shared/wire/frames.ts";
import type { TellingOptions } from "./beacons.ts";

export type SavingOptions = { readonly savingAfterMs: number; readonly refusingAfterMs: number };

/** How long the append in flight, and the oldest edit that the log does not hold, have waited: 0 for none. */
export type Waits = { readonly appendMs: number; readonly oldestMs: number };

/** It is over only once no edit has waited for long: appends that are slow one after the other are one spell. */
export function decideSaving(state: SavingState, { appendMs, oldestMs }: Waits, options: SavingOptions): SavingState {
  if (appendMs > options.refusingAfterMs) return "refusing";
  if (appendMs > options.savingAfterMs) return "saving";
  return state !== "saved" && oldestMs > options.savingAfterMs ? "saving" : "saved";
}

export function showsTentative(state: SavingState): boolean {
  switch (state) {
    case "saved":
      return false;
    case "saving":
    case "refusing":
      return true;
    default:
      return assertNever(state);
  }
}

/**
 * When gateways are told how saving goes: when it changes, again and again while the log is slow, and a few times
 * when that is over. Whoever misses the last word would show "saving" for ever, and wait with it for edits lost.
 */
export class SavingNews {
  readonly #options: TellingOptions;
  #told: SavingState = "saved";
  #left = 0;
  #next = 0 as Millis;

  constructor(options: TellingOptions) {
    this.#options = options;
  }

  /** All is saved, and has been told for long enough. */
  get isIdle(): boolean {
    return this.#told === "saved" && !this.pending;
  }

  get pending(): boolean {
    return this.#left > 0;
  }

  /** Whether to tell the state now. */
  due(state: SavingState, now: Millis): "changed" | "again" | undefined {
    const changed = state !== this.#told;
    if (!changed && (this.#left === 0 || now < this.#next)) return undefined;
    if (changed || state !== "saved") this.#left = this.#options.beaconsWhenQuiet;
    else this.#left -= 1;
    this.#told = state;
    this.#next = (now + this.#options.beaconMs) as Millis;
    return changed ? "changed" : "again";
  }
}
