/** What a room's boards are made of: how far they are counted, what a batch adds, and who stands where. */

import type { Epoch, Seq, UnixMillis, UserId } from "../../shared/ids.ts";
import type { Cap, MemberRole } from "./keys.ts";
import type { BandCounts } from "./bands.ts";
import type { Window } from "./windows.ts";

/** The highest score: above it, a double skips numbers. */
export const SCORE_MAX = 2 ** 53;

/**
 * How far a room's log and its stream of other activities are counted. It is stored with the boards, in the same atomic
 * step.
 */
export type CountedPosition = {
  readonly epoch: Epoch;
  readonly seq: Seq;
  readonly streamSeq: number;
  /**
   * The time of the last counted edit, on the log's clock. It never goes back, so no edit counts into a closed window.
   */
  readonly time: UnixMillis;
  /** Edits that the log had lost before they were counted. */
  readonly missing: number;
  /** Of the last edit counted. */
  readonly instant: number;
  /** The stream sequence of the last message of activities counted. */
  readonly activity: number;
  readonly activityInstant: number;
};

export const NOTHING_APPLIED: CountedPosition = {
  epoch: 0 as Epoch,
  seq: 0 as Seq,
  streamSeq: 0,
  time: 0 as UnixMillis,
  missing: 0,
  instant: 0,
  activity: 0,
  activityInstant: 0,
};

/** The two numbers that only rise, one for each stream. */
export type CountedMark = Pick<CountedPosition, "seq" | "activity">;

/** Whether `mark` counts something that `other` does not. */
export function isAhead(mark: CountedMark, other: CountedMark): boolean {
  return mark.seq > other.seq || mark.activity > other.activity;
}

/** A cap's period, and the points that each user has in it. */
export type Use = { readonly period: number; readonly points: ReadonlyMap<UserId, number> };
export type Uses = Readonly<Record<Cap, Use>>;

const UNUSED: Use = { period: 0, points: new Map() };
export const NO_USES: Uses = { edits: UNUSED, deeds: UNUSED, present: UNUSED };

/** `reachedAt`: the instant at which the score was reached. */
export type Award = { readonly member: UserId; readonly points: number; readonly reachedAt: number };

export type ScoreBatch = {
  /** What must have been applied before, neither more nor less. */
  readonly after: CountedMark;
  readonly applied: CountedPosition;
  readonly uses: Readonly<Record<Cap, Use & { readonly hasBegun: boolean }>>;
  /** The whole batch lies in these windows. */
  readonly windows: readonly Window[];
  readonly awards: ReadonlyMap<MemberRole, readonly Award[]>;
};

export type RankEntry = { readonly member: string; readonly score: number; readonly reachedAt: number };

/** Sorts the leader first: more points, or the same points reached earlier. Within a room no two instants are equal. */
export function byRank(a: RankEntry, b: RankEntry): number {
  return b.score - a.score || a.reachedAt - b.reachedAt;
}

/**
 * A board as Redis returns it in one step. `hot`: its first members in order. `isOrdered`: the others can be read in
 * order too.
 */
export type BoardContents = {
  readonly applied: CountedPosition | undefined;
  readonly hot: readonly RankEntry[];
  readonly members: number;
  readonly points: number;
  readonly bands: BandCounts;
  readonly isOrdered: boolean;
};

/** Display names, as far as they are known. */
export type Names = ReadonlyMap<string, string>;

/** All boards of a room. */
export type BoardsDump = {
  readonly names: Names;
  readonly applied: CountedPosition;
  readonly uses: Uses;
  readonly boards: readonly { readonly role: MemberRole; readonly window: Window; readonly standings: readonly RankEntry[] }[];
};
