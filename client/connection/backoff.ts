/** How long to wait before trying again: exponentially longer, and spread so that a crowd does not come at once. */

export type Backoff = { readonly baseMs: number; readonly maxMs: number; readonly jitterMs: number };

/** `failures`: how many there have been in a row, from 1. `unit`: a number in [0, 1). */
export function backoffMs({ baseMs, maxMs, jitterMs }: Backoff, failures: number, unit: number): number {
  return Math.min(maxMs, baseMs * 2 ** (failures - 1)) + unit * jitterMs;
}
