/**
 * What an activity is worth. Points come from what the server side has stored, by settings: no client names a number.
 * A user gets so many in a stretch of time and no more, so that holding a key down does not win; stretches are those
 * of the stream's clock, so that whoever counts the same stream again comes to the same scores.
 */

import type { Deed } from "../../shared/bus/activity.ts";
import type { UnixMillis, UserId } from "../../shared/ids.ts";
import type { BoardKind } from "../../shared/board-settings.ts";
import type { Use } from "../boards/board.ts";
import type { Cap, Role } from "../boards/keys.ts";

export type ScoringOptions = {
  readonly boardEditPointsSmall: number;
  readonly boardEditPointsMedium: number;
  readonly boardEditPointsLarge: number;
  /** From how many bytes on an edit is medium, or large. */
  readonly boardEditMediumBytesMin: number;
  readonly boardEditLargeBytesMin: number;
  readonly boardPointsPerMinuteMax: number;
  readonly boardKinds: readonly BoardKind[];
  readonly boardKindPointsPerMinuteMax: number;
  readonly boardSessionPoints: number;
  readonly boardSessionMs: number;
};

export const EDIT_ROLES: readonly Role[] = ["everyone", "editors"];
export const PRESENT_ROLES: readonly Role[] = ["everyone"];

const MINUTE_MS = 60_000;

export function worthOfEdit(bytes: number, options: ScoringOptions): number {
  if (bytes >= options.boardEditLargeBytesMin) return options.boardEditPointsLarge;
  return bytes >= options.boardEditMediumBytesMin ? options.boardEditPointsMedium : options.boardEditPointsSmall;
}

/** A kind that is not set, or is no more, is worth nothing. */
export function worthOfDeed(
  { kind, times }: Deed,
  { boardKinds }: ScoringOptions,
): { readonly points: number; readonly roles: readonly Role[] } {
  const known = boardKinds.find(({ name }) => name === kind);
  if (known === undefined) return { points: 0, roles: [] };
  return { points: known.points * times, roles: known.role === "everyone" ? ["everyone"] : ["everyone", known.role] };
}

export function capOf(cap: Cap, use: Use, options: ScoringOptions): PeriodCap {
  switch (cap) {
    case "edits":
      return new PeriodCap(use, { periodMs: MINUTE_MS, pointsMax: options.boardPointsPerMinuteMax });
    case "deeds":
      return new PeriodCap(use, { periodMs: MINUTE_MS, pointsMax: options.boardKindPointsPerMinuteMax });
    case "present":
      return new PeriodCap(use, { periodMs: options.boardSessionMs, pointsMax: options.boardSessionPoints });
  }
}

/** What each user of a room has got in the stretch of time that the room is in. */
export class PeriodCap {
  readonly #periodMs: number;
  readonly #pointsMax: number;
  #period: number;
  #points: Map<UserId, number>;

  constructor(use: Use, { periodMs, pointsMax }: { periodMs: number; pointsMax: number }) {
    this.#periodMs = periodMs;
    this.#pointsMax = pointsMax;
    this.#period = use.period;
    this.#points = new Map(use.points);
  }

  get period(): number {
    return this.#period;
  }

  /** Goes on to the stretch of `time`; true if it is another one. */
  advance(time: UnixMillis): boolean {
    const period = Math.floor(time / this.#periodMs);
    if (period === this.#period) return false;
    this.#period = period;
    this.#points = new Map();
    return true;
  }

  /** How much of it the user gets, and what the user has got in this stretch then. */
  grant(user: UserId, points: number): { readonly granted: number; readonly used: number } {
    const before = this.#points.get(user) ?? 0;
    const granted = Math.max(0, Math.min(points, this.#pointsMax - before)); // The setting may have been lowered since.
    this.#points.set(user, before + granted);
    return { granted, used: before + granted };
  }
}
