/**
 * The instant at which a score was reached, as one whole number below 2^53: milliseconds of the log's clock, then the
 * order within the millisecond. An instant depends only on its own stream, so a room's two streams may be counted in
 * any order, and again, with the same boards. Instants of edits are even, those of other activities odd.
 */

import type { UnixMillis } from "../../shared/ids.ts";

export const SOURCES = ["edits", "activities"] as const;
export type Source = (typeof SOURCES)[number];

/** With more entries than half of this in one millisecond, a room's instants run ahead of the clock. */
const PER_MS = 2 ** 11;

/** The instant after `last` of the same source. Instants never go back, even if the clock does. */
export function instantAfter(last: number, time: UnixMillis, source: Source): number {
  const parity = source === "edits" ? 0 : 1;
  return Math.max(time * PER_MS, Math.floor(last / 2) * 2 + 2) + parity;
}

export function timeOf(instant: number): UnixMillis {
  return Math.floor(instant / PER_MS) as UnixMillis;
}
