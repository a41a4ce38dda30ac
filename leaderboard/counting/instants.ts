/**
 * When a score was reached, as one whole number below 2^53: milliseconds on the log's clock, and within one the order
 * in which things happened. It depends on nothing but the stream it comes from, so a room's two streams can be
 * counted in any order, and counted again, with the same boards as outcome. No two instants of a room are the same:
 * those of edits are even, those of other activities odd.
 */

import type { UnixMillis } from "../../shared/ids.ts";

export const SOURCES = ["edits", "activities"] as const;
export type Source = (typeof SOURCES)[number];

/** Past half as many in one millisecond, a room's instants run ahead of the clock. */
const PER_MS = 2 ** 11;

/** The one after `last` of the same source. It never goes back, though the clock may. */
export function instantAfter(last: number, time: UnixMillis, source: Source): number {
  const parity = source === "edits" ? 0 : 1;
  return Math.max(time * PER_MS, Math.floor(last / 2) * 2 + 2) + parity;
}

export function timeOf(instant: number): UnixMillis {
  return Math.floor(instant / PER_MS) as UnixMillis;
}
