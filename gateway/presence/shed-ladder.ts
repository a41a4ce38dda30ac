/**
 * The rate and depth of each lane at each shed level. Each higher level leaves out more: first of spectators, then of
 * editors. Joins and leaves are never left out. No level stops presence: an overload may last for hours, and a cursor or
 * a participant without a state would be wrong for that long.
 */

export type LaneName = "editors" | "spectators";

/** The part of presence that a lane receives. */
export type LaneDepth = "all" | "without-viewports";

/** `everyMs`: the interval between two frames with states; 0: as often as the owner sends. */
type LaneRate = { readonly everyMs: number; readonly depth: LaneDepth };
export type LaneRates = Readonly<Record<LaneName, LaneRate>>;

/** The longest interval: a tenth of the frames of the level before, and still fresh for a person. */
const SLOWEST_MS = 2_000;

const EDITORS: LaneRate = { everyMs: 0, depth: "all" };
const SPECTATORS: LaneRate = { everyMs: 200, depth: "all" };
const SLOW_SPECTATORS: LaneRate = { everyMs: SLOWEST_MS, depth: "without-viewports" };

/** By level. */
const LADDER: readonly LaneRates[] = [
  { editors: EDITORS, spectators: SPECTATORS },
  // 1: the rates of level 0, but in small rooms too, where spectators otherwise receive presence as often as editors.
  { editors: EDITORS, spectators: SPECTATORS },
  // 2: spectators receive presence every two seconds.
  { editors: EDITORS, spectators: { everyMs: SLOWEST_MS, depth: "all" } },
  // 3: nobody receives viewports.
  { editors: { everyMs: 0, depth: "without-viewports" }, spectators: SLOW_SPECTATORS },
  // 4 and 5: editors receive presence ten, then five times a second.
  { editors: { everyMs: 100, depth: "without-viewports" }, spectators: SLOW_SPECTATORS },
  { editors: { everyMs: 200, depth: "without-viewports" }, spectators: SLOW_SPECTATORS },
  // 6: everybody receives presence every two seconds.
  { editors: { everyMs: SLOWEST_MS, depth: "without-viewports" }, spectators: SLOW_SPECTATORS },
];

export const SHED_LEVEL_MAX = LADDER.length - 1;

export function laneRatesOf(level: number): LaneRates {
  return LADDER[Math.min(level, SHED_LEVEL_MAX)]!;
}
