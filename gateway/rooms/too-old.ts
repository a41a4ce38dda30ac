/** What the owner said last of a place that is too far behind: a crowd that comes back comes from there, and need not ask it one by one. */

import type { Millis, Position } from "../../shared/ids.ts";

/** A lost snapshot, or a log that was put back, heals by itself after so long. */
const KNOWN_MS = 2_000;

export class TooOld {
  #known: { readonly position: Position; readonly until: Millis } | undefined;

  /** `position`: what was asked from. */
  receive(position: Position, now: Millis): void {
    this.#known = { position, until: (now + KNOWN_MS) as Millis };
  }

  /** Another owner judges anew. */
  forget(): void {
    this.#known = undefined;
  }

  /** Whether whoever joins from there needs a snapshot. */
  covers({ epoch, seq }: Position, now: Millis): boolean {
    const known = this.#known;
    return known !== undefined && now < known.until && seq === known.position.seq && epoch === known.position.epoch;
  }
}
