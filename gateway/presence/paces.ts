/** What is told to whom of a room's presence at each level of pressure: the drop order, spectators first. */

import type { Pace, Paces } from "./lanes.ts";

const ROOM_PACE: Pace = { everyMs: 0, depth: "all" };
const SPECTATORS_PACE: Pace = { everyMs: 200, depth: "all" };
const SPECTATORS_MEMBERS: Pace = { everyMs: 200, depth: "members-only" };

/** What is told to whom, by level: each leaves out one thing more. */
const LADDER: readonly Paces[] = [
  { editors: ROOM_PACE, spectators: SPECTATORS_PACE },
  // 1: spectators five times a second, in small rooms too. The same as above: only there all are told at the room's pace.
  { editors: ROOM_PACE, spectators: SPECTATORS_PACE },
  // 2: spectators are told who comes and goes.
  { editors: ROOM_PACE, spectators: SPECTATORS_MEMBERS },
  // 3: nobody is told where others look.
  { editors: { everyMs: 0, depth: "without-viewports" }, spectators: SPECTATORS_MEMBERS },
  // 4 and 5: editors ten, then five times a second.
  { editors: { everyMs: 100, depth: "without-viewports" }, spectators: SPECTATORS_MEMBERS },
  { editors: { everyMs: 200, depth: "without-viewports" }, spectators: SPECTATORS_MEMBERS },
  // 6: everybody is told who comes and goes.
  { editors: { everyMs: 200, depth: "members-only" }, spectators: SPECTATORS_MEMBERS },
];

export const SHED_LEVEL_MAX = LADDER.length - 1;

export function pacesOf(level: number): Paces {
  return LADDER[Math.min(level, SHED_LEVEL_MAX)]!;
}
