/**
 * A room's boards: the counted position, a batch of points, ranks, and counts of members by score band. A member outside
 * a board's exact part gets a rank range of one band, on a board of any size.
 */

import { assert } from "../../shared/assert.ts";
import type { Epoch, Seq, UnixMillis, UserId } from "../../shared/ids.ts";
import type { Cap, MemberRole } from "./keys.ts";
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
  /** The instant of the last counted edit. */
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

/**
 * How far each of the two streams is counted. `epoch`, `time`: of the last counted edit; undefined in marks of earlier
 * builds, and then the seq alone decides.
 */
export type CountedMark = Pick<CountedPosition, "seq" | "activity"> & {
  readonly epoch?: Epoch | undefined;
  readonly time?: UnixMillis | undefined;
};

/** An edit's position, and when the log took it. */
export type LoggedAt = { readonly epoch: Epoch; readonly seq: Seq; readonly time: UnixMillis };

/**
 * Whether the mark counts every edit up to there. A log that lost its end gives seqs again, under another epoch, which is
 * lower if the next owner's date is wrong. So an edit that the log took after everything that was counted is new.
 */
export function countsEdit(mark: CountedMark, { epoch, seq, time }: LoggedAt): boolean {
  if (mark.epoch !== undefined && epoch > mark.epoch) return false;
  return seq <= mark.seq && (mark.time === undefined || time <= mark.time);
}

/** Whether `mark` counts something that `other` does not. The later edit is ahead, because seqs are given again after a loss. */
export function isAhead(mark: CountedMark, other: CountedMark): boolean {
  const isLater = mark.time === undefined || other.time === undefined ? mark.seq > other.seq : isAfter(mark, other);
  return isLater || mark.activity > other.activity;
}

function isAfter(mark: CountedMark, other: CountedMark): boolean {
  return mark.time === other.time ? mark.seq > other.seq : (mark.time ?? 0) > (other.time ?? 0);
}

/** A cap's period, and the points that each user has in it. */
export type Use = { readonly period: number; readonly points: ReadonlyMap<UserId, number> };
export type Uses = Readonly<Record<Cap, Use>>;

const UNUSED: Use = { period: 0, points: new Map() };
export const NO_USES: Uses = { edits: UNUSED, deeds: UNUSED, present: UNUSED };

/** `reachedAt`: the instant at which the score was reached. */
export type Award = { readonly member: UserId; readonly points: number; readonly reachedAt: number };

export type ScoreBatch = {
  /** The mark that must be counted already, exactly. */
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

/** Known display names, by user. */
export type Names = ReadonlyMap<string, string>;

/** All boards of a room. */
export type BoardsDump = {
  readonly names: Names;
  readonly applied: CountedPosition;
  readonly uses: Uses;
  readonly boards: readonly { readonly role: MemberRole; readonly window: Window; readonly standings: readonly RankEntry[] }[];
};

/** Score bands per doubling. The Lua scripts contain the same number. */
const STEPS = 8;

/** Number of members of each band, by the band numbers of the scripts. */
export type BandCounts = ReadonlyMap<number, number>;

/** The lowest score of a band. Band numbers rise with the scores in them. */
export function bandFloor(band: number): number {
  return 2 ** Math.floor(band / STEPS) * (1 + (band % STEPS) / STEPS);
}

export function bandOf(score: number): number {
  assert(score >= 1, "a member of a board has points");
  let doubling = Math.floor(Math.log2(score));
  if (2 ** doubling > score)
    doubling -= 1; // The logarithm of a large score may be rounded up to the next whole number.
  else if (2 ** (doubling + 1) <= score) doubling += 1;
  return doubling * STEPS + Math.floor((score / 2 ** doubling - 1) * STEPS);
}

/**
 * The ranks that a member with this score may have: after all members of higher bands, somewhere in the score's own
 * band.
 */
export function ranksWithin(counts: BandCounts, score: number): { readonly first: number; readonly last: number } {
  const own = bandOf(score);
  let higher = 0;
  for (const [band, members] of counts) if (band > own) higher += members;
  return { first: higher + 1, last: higher + Math.max(1, counts.get(own) ?? 0) };
}

/** With scores 9, 9, 7: `unique` 1 2 3, `competition` 1 1 3, `dense` 1 1 2. */
export const RANKINGS = ["unique", "competition", "dense"] as const;
export type Ranking = (typeof RANKINGS)[number];

export type Ranked = { readonly rank: number; readonly user: string; readonly score: number };

/** `standings`: in order, from the first on. */
export function rankAll(standings: readonly RankEntry[], ranking: Ranking): Ranked[] {
  let rank = 0;
  return standings.map(({ member, score }, index) => {
    const isTied = index > 0 && standings[index - 1]!.score === score;
    if (ranking === "unique" || (!isTied && ranking === "competition")) rank = index + 1;
    else if (!isTied) rank += 1;
    return { rank, user: member, score };
  });
}

/**
 * Ranks consecutive places. The first has the index `first`, from 0 on, and `ahead` members have more points. Dense
 * ranks cannot be computed from these.
 */
export function rankFrom(
  { first, ahead, standings }: { first: number; ahead: number; standings: readonly RankEntry[] },
  ranking: "unique" | "competition",
): Ranked[] {
  let rank = ahead + 1;
  return standings.map(({ member, score }, index) => {
    if (ranking === "unique" || (index > 0 && standings[index - 1]!.score !== score)) rank = first + index + 1;
    return { rank, user: member, score };
  });
}

/** The member with up to `around` entries above and below; undefined if the member is not among them. */
export function neighboursOf(
  ranked: readonly Ranked[],
  user: string,
  around: number,
): { readonly own: Ranked; readonly neighbours: Ranked[] } | undefined {
  const index = ranked.findIndex((entry) => entry.user === user);
  const own = ranked[index];
  if (own === undefined) return undefined;
  return { own, neighbours: ranked.slice(Math.max(0, index - around), index + around + 1) };
}

/** The percentage of other members behind a place; 100 for a single member. */
export function percentileOf(place: number, members: number): number {
  return members <= 1 ? 100 : Math.round(((members - place) / (members - 1)) * 1_000) / 10;
}

/** A checksum of users and scores in order (FNV-1a). */
export function checksumOf(ranked: readonly Pick<Ranked, "user" | "score">[]): number {
  let hash = 0x811c9dc5;
  for (const { user, score } of ranked) {
    const text = `${user}\0${score}\0`;
    for (let index = 0; index < text.length; index++) hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
  }
  return hash >>> 0;
}
