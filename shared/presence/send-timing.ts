/**
 * When presence is sent. A room server has a tick of 50 ms, in which it sends the deltas of its rooms. Rooms share one
 * moment of the tick, or are spread over several slots when they are many. A gateway sends what its members show just
 * before the moment of the room's slot, so that no state waits for a whole tick: with members at 0 ms and 30 ms of a
 * tick, both are in the delta at 50 ms.
 */

import type { Millis } from "../ids.ts";

/**
 * A pair of a gateway and a room server. `sendAtMs`: the moment of the tick, on the gateway's clock, at which it sends the
 * rooms of the first slot.
 */
export type SendTiming = { readonly tickMs: number; readonly slots: number; readonly sendAtMs: number };

/** Maximum number of slots: a pair exchanges at most so many messages per tick and direction. */
export const SLOTS_MAX = 5;
/** Rooms whose deltas are sent at one moment. More would delay edits of the same process. */
const ROOMS_PER_SLOT = 200;

export function slotsFor(rooms: number): number {
  return Math.min(SLOTS_MAX, Math.max(1, Math.ceil(rooms / ROOMS_PER_SLOT)));
}

/** The first moment at or after `at` of those that are `tickMs` apart, one of them at `phaseMs`. */
export function nextMoment(at: number, tickMs: number, phaseMs: number): Millis {
  return (phaseMs + Math.ceil((at - phaseMs) / tickMs) * tickMs) as Millis;
}

/** `place`: a fixed number of the room, which distributes the rooms evenly over the slots. */
export function phaseOf(place: number, tickMs: number, slots: number): number {
  return ((place % slots) * tickMs) / slots;
}
