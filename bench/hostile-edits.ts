/** The edits of hostile rooms, by kind, as a hostile writer with default limits would choose them: small, and slow to merge. */

import { assertNever } from "../shared/assert.ts";
import { conflictBomb, NESTING_FUSE, nestingBomb, slowUpdates } from "../shared/testing/yjs-bombs.ts";

/**
 * `conflicts`: each edit is refused after 0.1 s of merging. `nesting`: types nested deeply, and the deletion of the
 * first, in turn. `slow`: each edit is within the limits and takes 0.1 s to merge, so the room is quarantined.
 * `no-update`: bytes that Yjs cannot decode. `http`: the conflicts, sent over HTTP.
 */
export const HOSTILE_KINDS = ["conflicts", "nesting", "slow", "no-update", "http"] as const;
export type HostileKind = (typeof HOSTILE_KINDS)[number];

/** Reaches the limit of steps. Larger bombs take the merge no longer, and more bytes. */
const CONFLICTS = 700;
const LEVELS = 5_000;
const PIECES = 5_000;

export function hostileEdits(kind: HostileKind, count: number): readonly Uint8Array[] {
  switch (kind) {
    case "conflicts":
    case "http":
      return repeated([conflictBomb(CONFLICTS)], count);
    case "nesting":
      return repeated([nestingBomb(LEVELS), NESTING_FUSE], count);
    case "slow":
      return slowUpdates(PIECES, count - 1);
    case "no-update":
      return repeated([Uint8Array.of(255, 255)], count);
    default:
      return assertNever(kind);
  }
}

function repeated(edits: readonly Uint8Array[], count: number): readonly Uint8Array[] {
  return Array.from({ length: count }, (_, index) => edits[index % edits.length]!);
}
