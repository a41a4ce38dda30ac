/**
 * Scores in bands by size, eight bands for each doubling. A board keeps how many members each band has, so a member
 * outside its exact part gets a rank range of one band, on a board of any size.
 */

import { assert } from "../../shared/assert.ts";

/** Bands per doubling; the scripts know the same number. */
const STEPS = 8;

/** How many members each band has, by the scripts' band numbers. */
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
