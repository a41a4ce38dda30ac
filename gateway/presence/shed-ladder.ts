/**
 * The rate and depth of each lane at each shed level. Each higher level leaves out one more kind of data: first of
 * spectators, then of editors. Joins and leaves are never left out.
 */

export type LaneName = "editors" | "spectators";

/** The part of presence that a lane receives. */
export type LaneDepth = "all" | "without-viewports" | "members-only";

/** `everyMs`: the interval between two frames; 0: as often as the owner sends. */
type LaneRate = { readonly everyMs: number; readonly depth: LaneDepth };
export type LaneRates = Readonly<Record<LaneName, LaneRate>>;

const EDITORS: LaneRate = { everyMs: 0, depth: "all" };
const SPECTATORS: LaneRate = { everyMs: 200, depth: "all" };
const SPECTATORS_MEMBERS: LaneRate = { everyMs: 200, depth: "members-only" };

/** By level. */
const LADDER: readonly LaneRates[] = [
  { editors: EDITORS, spectators: SPECTATORS },
  // 1: the rates of level 0, but in small rooms too, where spectators otherwise receive presence as often as editors.
  { editors: EDITORS, spectators: SPECTATORS },
  // 2: spectators receive only joins and leaves.
  { editors: EDITORS, spectators: SPECTATORS_MEMBERS },
  // 3: nobody receives viewports.
  { editors: { everyMs: 0, depth: "without-viewports" }, spectators: SPECTATORS_MEMBERS },
  // 4 and 5: editors receive presence ten, then five times a second.
  { editors: { everyMs: 100, depth: "without-viewports" }, spectators: SPECTATORS_MEMBERS },
  { editors: { everyMs: 200, depth: "without-viewports" }, spectators: SPECTATORS_MEMBERS },
  // 6: everybody receives only joins and leaves.
  { editors: { everyMs: 200, depth: "members-only" }, spectators: SPECTATORS_MEMBERS },
];

export const SHED_LEVEL_MAX = LADDER.length - 1;

export function laneRatesOf(level: number): LaneRates {
  return LADDER[Math.min(level, SHED_LEVEL_MAX)]!;
}
