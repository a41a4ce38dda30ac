/**
 * Scores by size, eight bands to each doubling. How many members are in each is kept beside a board, so that
 * somebody outside its exact part can be told a rank to within their own band, of a board of any size.
 */

import { assert } from "../../shared/assert.ts";

/** Bands per doubling; the scripts know the same number. */
const STEPS = 8;

/** How many members each band has; the scripts number them. */
export type BandCounts = ReadonlyMap<number, number>;

/** The least score that belongs to a band. Band numbers rise with the scores in them. */
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

/** Where someone with this score can be: behind all in higher bands, somewhere within their own. */
export function ranksWithin(counts: BandCounts, score: number): { readonly first: number; readonly last: number } {
  const own = bandOf(score);
  let higher = 0;
  for (const [band, members] of counts) if (band > own) higher += members;
  return { first: higher + 1, last: higher + Math.max(1, counts.get(own) ?? 0) };
}
