/**
 * Decides when presence is sent. A room server has a tick of 50 ms, in which it sends the deltas of its rooms. Few
 * rooms are sent at the same time of the tick; many rooms are spread over several slots. A gateway sends its members'
 * presence just before the slot of the room, so that no state waits for a complete tick. For example, presence from 0
 * ms and 30 ms of a tick is in the delta at 50 ms.
 */

import type { Millis } from "../ids.ts";

/**
 * The timing of a pair of a gateway and a room server. `sendAtMs`: the time of the tick, on the gateway's clock, at
 * which it sends the rooms of the first slot.
 */
export type SendTiming = { readonly tickMs: number; readonly slots: number; readonly sendAtMs: number };

/** Maximum number of slots, and so of messages of a pair per tick and direction. */
export const SLOTS_MAX = 5;
/** Number of rooms whose deltas are sent at one time. More rooms would delay edits of the same process. */
const ROOMS_PER_SLOT = 200;

export function slotsFor(rooms: number): number {
  return Math.min(SLOTS_MAX, Math.max(1, Math.ceil(rooms / ROOMS_PER_SLOT)));
}

/** The first time at or after `at` in a series with the interval `tickMs` that includes `phaseMs`. */
export function nextMoment(at: number, tickMs: number, phaseMs: number): Millis {
  return (phaseMs + Math.ceil((at - phaseMs) / tickMs) * tickMs) as Millis;
}

/** `place`: a fixed number of the room, which distributes the rooms evenly over the slots. */
export function phaseOf(place: number, tickMs: number, slots: number): number {
  return ((place % slots) * tickMs) / slots;
}
