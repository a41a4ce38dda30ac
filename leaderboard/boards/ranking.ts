/** Ranks, pages, neighbours and shares, from standings in order. */

import type { Standing } from "./board.ts";

/** With scores 9, 9, 7: `unique` 1 2 3, `competition` 1 1 3, `dense` 1 1 2. */
export const RANKINGS = ["unique", "competition", "dense"] as const;
export type Ranking = (typeof RANKINGS)[number];

export type Ranked = { readonly rank: number; readonly user: string; readonly score: number };

/** `standings` from the first on, in order. */
export function rankAll(standings: readonly Standing[], ranking: Ranking): Ranked[] {
  let rank = 0;
  return standings.map(({ member, score }, index) => {
    const isTied = index > 0 && standings[index - 1]!.score === score;
    if (ranking === "unique" || (!isTied && ranking === "competition")) rank = index + 1;
    else if (!isTied) rank += 1;
    return { rank, user: member, score };
  });
}

/** Of places in a row whose first stands at `first`, from 0 on, behind `ahead` with more points. Dense ranks cannot be told from these. */
export function rankFrom(
  { first, ahead, standings }: { first: number; ahead: number; standings: readonly Standing[] },
  ranking: "unique" | "competition",
): Ranked[] {
  let rank = ahead + 1;
  return standings.map(({ member, score }, index) => {
    if (ranking === "unique" || (index > 0 && standings[index - 1]!.score !== score)) rank = first + index + 1;
    return { rank, user: member, score };
  });
}

/** The member with up to `around` above and below; undefined where the member is not among them. */
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

/** How many of a hundred others stand behind a place; 100 for somebody alone. */
export function percentileOf(place: number, members: number): number {
  return members <= 1 ? 100 : Math.round(((members - place) / (members - 1)) * 1_000) / 10;
}

/** The same for the same list in the same order, and for hardly any other (FNV-1a). */
export function checksumOf(ranked: readonly Pick<Ranked, "user" | "score">[]): number {
  let hash = 0x811c9dc5;
  for (const { user, score } of ranked) {
    const text = `${user}\0${score}\0`;
    for (let index = 0; index < text.length; index++) hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
  }
  return hash >>> 0;
}
