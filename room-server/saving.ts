/**
 * Whether a room's edits are being saved in time, from the age of the oldest that the log does not hold yet.
 * While it is "saving", unacked edits go out as tentative and acks wait; "refusing", new ones are turned away.
 * Nothing that was accepted is ever given up. Rules SAV1 to SAV3.
 */

import { assertNever } from "../shared/assert.ts";
import type { SavingState } from "../shared/wire/frames.ts";

export type SavingOptions = { readonly savingAfterMs: number; readonly refusingAfterMs: number };

/** `oldestUnackedMs`: undefined when every edit is in the log. */
export function decideSaving(oldestUnackedMs: number | undefined, options: SavingOptions): SavingState {
  if (oldestUnackedMs === undefined || oldestUnackedMs <= options.savingAfterMs) return "saved";
  return oldestUnackedMs <= options.refusingAfterMs ? "saving" : "refusing";
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
