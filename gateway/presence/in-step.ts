/**
 * Quiet rooms are looked after in step: what is due some time soon waits for the next quarter of a second, with that of
 * all other rooms. Each at its own moment, a few dozen quiet rooms kept a gateway awake that had nothing to do.
 */

import type { Millis } from "../../shared/ids.ts";

const STEP_MS = 250;

/** At that time or a moment later. */
export function inStep(at: number): Millis {
  return (Math.ceil(at / STEP_MS) * STEP_MS) as Millis;
}
