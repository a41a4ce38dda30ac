/**
 * Points of an activity. They are computed from stored data and settings, never from a number that a client sends. A
 * user gets a limited number of points in a period of the stream's clock, so a key held down does not win. A repeated
 * count of the same stream gives the same scores.
 */

import type { UserAction } from "../../shared/bus/activity.ts";
import type { UnixMillis, UserId } from "../../shared/ids.ts";
import type { BoardKind } from "../../shared/settings/board-settings.ts";
import type { Use } from "../boards/board.ts";
import type { Cap, MemberRole } from "../boards/keys.ts";
import { isEmptyUpdate } from "./empty-update.ts";

export type ScoringOptions = {
  readonly boardEditPointsSmall: number;
  readonly boardEditPointsMedium: number;
  readonly boardEditPointsLarge: number;
  /** The sizes in bytes from which an edit is medium, or large. */
  readonly boardEditMediumBytesMin: number;
  readonly boardEditLargeBytesMin: number;
  readonly boardPointsPerMinuteMax: number;
  readonly boardKinds: readonly BoardKind[];
  readonly boardKindPointsPerMinuteMax: number;
  readonly boardSessionPoints: number;
  readonly boardSessionMs: number;
};

export const EDIT_ROLES: readonly MemberRole[] = ["everyone", "editors"];
export const PRESENT_ROLES: readonly MemberRole[] = ["everyone"];

const MINUTE_MS = 60_000;

export function pointsOfEdit(payload: Uint8Array, options: ScoringOptions): number {
  const bytes = payload.byteLength;
  if (isEmptyUpdate(payload)) return 0;
  if (bytes >= options.boardEditLargeBytesMin) return options.boardEditPointsLarge;
  return bytes >= options.boardEditMediumBytesMin ? options.boardEditPointsMedium : options.boardEditPointsSmall;
}

/** A kind that no setting names has no points. */
export function pointsOfAction(
  { kind, times }: UserAction,
  { boardKinds }: ScoringOptions,
): { readonly points: number; readonly roles: readonly MemberRole[] } {
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

/** The points that each user of a room has in the current period. */
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

  /** Moves to the period of `time`. Returns whether it is another period. */
  advance(time: UnixMillis): boolean {
    const period = Math.floor(time / this.#periodMs);
    if (period === this.#period) return false;
    this.#period = period;
    this.#points = new Map();
    return true;
  }

  /** Returns how many of the points the user gets, and the user's points in this period. */
  grant(user: UserId, points: number): { readonly granted: number; readonly used: number } {
    const before = this.#points.get(user) ?? 0;
    const granted = Math.max(0, Math.min(points, this.#pointsMax - before)); // The setting may have been lowered meanwhile.
    this.#points.set(user, before + granted);
    return { granted, used: before + granted };
  }
}
