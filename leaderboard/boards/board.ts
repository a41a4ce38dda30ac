/** What a room's boards are made of: how far they are counted, what a batch adds, and who stands where. */

import type { Epoch, Seq, UnixMillis, UserId } from "../../shared/ids.ts";
import type { Cap, Role } from "./keys.ts";
import type { BandCounts } from "./bands.ts";
import type { Window } from "./windows.ts";

/** No score is higher: past it a double skips numbers. */
export const SCORE_MAX = 2 ** 53;

/** How far a room's log and its stream of other activities are counted. Stored with the boards, in the same atomic step. */
export type Applied = {
  readonly epoch: Epoch;
  readonly seq: Seq;
  readonly streamSeq: number;
  /** Of the last edit counted, on the log's clock; it never goes back, so that no edit counts into a window that closed. */
  readonly time: UnixMillis;
  /** Edits that the log had lost before they were counted. */
  readonly missing: number;
  /** Of the last edit counted. */
  readonly instant: number;
  /** The stream sequence of the last message of activities counted. */
  readonly activity: number;
  readonly activityInstant: number;
};

export const NOTHING_APPLIED: Applied = {
  epoch: 0 as Epoch,
  seq: 0 as Seq,
  streamSeq: 0,
  time: 0 as UnixMillis,
  missing: 0,
  instant: 0,
  activity: 0,
  activityInstant: 0,
};

/** The two that only rise, each for its own stream. */
export type Mark = Pick<Applied, "seq" | "activity">;

/** Whether `mark` counts something that `other` does not. */
export function isAhead(mark: Mark, other: Mark): boolean {
  return mark.seq > other.seq || mark.activity > other.activity;
}

/** A stretch of time that the room is in, and what each user has got in it. */
export type Use = { readonly period: number; readonly points: ReadonlyMap<UserId, number> };
export type Uses = Readonly<Record<Cap, Use>>;

const UNUSED: Use = { period: 0, points: new Map() };
export const NO_USES: Uses = { edits: UNUSED, deeds: UNUSED, present: UNUSED };

/** `reachedAt`: the instant of what brought the score to where it is. */
export type Award = { readonly member: UserId; readonly points: number; readonly reachedAt: number };

export type Batch = {
  /** What must have been applied before, no more and no less. */
  readonly after: Mark;
  readonly applied: Applied;
  readonly uses: Readonly<Record<Cap, Use & { readonly hasBegun: boolean }>>;
  /** All of a batch lies in the same ones. */
  readonly windows: readonly Window[];
  readonly awards: ReadonlyMap<Role, readonly Award[]>;
};

export type Standing = { readonly member: string; readonly score: number; readonly reachedAt: number };

/** The first is ahead: more points, or the same and there before. Within a room no two instants are the same. */
export function byRank(a: Standing, b: Standing): number {
  return b.score - a.score || a.reachedAt - b.reachedAt;
}

/**
 * What Redis answers about a board in one step. `hot`: its first members in order. `isOrdered`: those behind them can
 * be asked for in order too.
 */
export type BoardState = {
  readonly applied: Applied | undefined;
  readonly hot: readonly Standing[];
  readonly members: number;
  readonly points: number;
  readonly bands: BandCounts;
  readonly isOrdered: boolean;
};

/** How users are called, as far as it is known. */
export type Names = ReadonlyMap<string, string>;

/** All of a room's boards, whole. */
export type BoardsDump = {
  readonly names: Names;
  readonly applied: Applied;
  readonly uses: Uses;
  readonly boards: readonly { readonly role: Role; readonly window: Window; readonly standings: readonly Standing[] }[];
};
