/**
 * A room's boards: the counted position, a batch of points, ranks, and counts of members by score band. A member outside
 * a board's exact part gets a rank range of one band, on a board of any size.
 */

import { assert } from "../../shared/assert.ts";
import { fnv1a } from "../../shared/collections/hash.ts";
import type { Epoch, Seq, UnixMillis, UserId } from "../../shared/ids.ts";
import type { Cap, MemberRole } from "./keys.ts";
import type { Window } from "./windows.ts";

/** The highest score. Above it, a double cannot represent every whole number. */
export const SCORE_MAX = 2 ** 53;

/**
 * The position up to which a room's log and its stream of other activities are counted. It is stored with the boards,
 * in the same atomic step.
 */
export type CountedPosition = {
  readonly epoch: Epoch;
  readonly seq: Seq;
  readonly streamSeq: number;
  /** The time of the last counted edit, on the log's clock. It never decreases, so no edit counts into a closed window. */
  readonly time: UnixMillis;
  /** Number of edits that the log had lost before they were counted. */
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
 * The positions up to which the two streams are counted. `epoch`, `time`: those of the last counted edit. Marks of
 * earlier builds lack them, and then only the seq decides.
 */
export type CountedMark = Pick<CountedPosition, "seq" | "activity"> & {
  readonly epoch?: Epoch | undefined;
  readonly time?: UnixMillis | undefined;
};

/** An edit's position, and the time at which the log stored it. */
type LoggedAt = { readonly epoch: Epoch; readonly seq: Seq; readonly time: UnixMillis };

/**
 * Whether the mark counts every edit up to this one. A log that lost its end gives seqs again, with another epoch,
 * which is lower if the next owner's date is wrong. So an edit that the log stored after all counted edits is new.
 */
export function countsEdit(mark: CountedMark, { epoch, seq, time }: LoggedAt): boolean {
  if (mark.epoch !== undefined && epoch > mark.epoch) return false;
  return seq <= mark.seq && (mark.time === undefined || time <= mark.time);
}

/**
 * Whether `mark` counts an edit that `other` does not. The time of the last edit decides, because a log gives seqs
 * again after a loss.
 */
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
  /**
   * The batch is applied only if the stored mark equals this one. The time of the last edit too, because log and Redis may
   * both lose their ends, and then the same seq names another edit.
   */
  readonly after: Pick<CountedPosition, "seq" | "activity" | "time">;
  readonly applied: CountedPosition;
  readonly uses: Readonly<Record<Cap, Use & { readonly hasBegun: boolean }>>;
  /** All entries of the batch are in these windows. */
  readonly windows: readonly Window[];
  readonly awards: ReadonlyMap<MemberRole, readonly Award[]>;
};

export type RankEntry = { readonly member: string; readonly score: number; readonly reachedAt: number };

/**
 * Sorts the leader first: the member with more points, or with the same points reached earlier. Within a room no two
 * instants are equal. Instants of two rooms may be equal: then the names decide, as in Redis.
 */
export function byRank(a: RankEntry, b: RankEntry): number {
  return b.score - a.score || a.reachedAt - b.reachedAt || (a.member < b.member ? 1 : -1);
}

/**
 * A board as Redis returns it in one step. `hot`: its first members in order. `isOrdered`: the other members can also
 * be read in order.
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

/** Number of score bands per doubling of the score. The Lua scripts contain the same number. */
const STEPS = 8;

/** Number of members of each band, by the band numbers of the scripts. */
type BandCounts = ReadonlyMap<number, number>;

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

/** `standings`: the entries in order, starting with the first place. */
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
 * Ranks consecutive places. The first has the index `first`, counted from 0, and `ahead` members have more points.
 * Dense ranks cannot be computed from these numbers.
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

/** The percentage of the other members that are behind this place; 100 for a single member. */
export function percentileOf(place: number, members: number): number {
  return members <= 1 ? 100 : Math.round(((members - place) / (members - 1)) * 1_000) / 10;
}

/** A checksum of users and scores in order (FNV-1a). */
export function checksumOf(ranked: readonly Pick<Ranked, "user" | "score">[]): number {
  return fnv1a(ranked.map(({ user, score }) => `${user}\0${score}\0`).join(""));
}
