/** Ranks, pages, neighbours and percentiles of entries in order. */

import type { RankEntry } from "./board.ts";

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
