/**
 * The member who reached a score first is ahead. Redis orders members of equal score by their bytes, so a member of the
 * hot set is its stamp followed by its name; stamps fall as the instants of the scores rise. Nine characters of 64 in
 * ASCII order hold 54 bits: every possible instant.
 */

import { assert } from "../../shared/assert.ts";

const ALPHABET = "-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz";
export const STAMP_LENGTH = 9;
const LATEST = 2 ** 53;

export function stampOf(reachedAt: number): string {
  assert(Number.isSafeInteger(reachedAt) && reachedAt >= 0, "a score is reached at a seq");
  let rest = LATEST - reachedAt;
  let stamp = "";
  for (let place = 0; place < STAMP_LENGTH; place++) {
    stamp = ALPHABET[rest % 64]! + stamp;
    rest = Math.floor(rest / 64);
  }
  return stamp;
}

/** The instant that a stamp was made of. */
export function reachedAtOf(stamp: string): number {
  let rest = 0;
  for (let place = 0; place < STAMP_LENGTH; place++) rest = rest * 64 + ALPHABET.indexOf(stamp[place]!);
  return LATEST - rest;
}
