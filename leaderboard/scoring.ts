/**
 * What an edit is worth. Points come from the ordered log alone, by settings: no client names a number. A
 * user gets so many a minute and no more, so that holding a key down does not win; the minutes are those of
 * the log's clock, so that whoever counts the same log again comes to the same scores.
 */

import type { UnixMillis, UserId } from "../shared/ids.ts";
import type { MinuteUse } from "./board.ts";
import type { Role } from "./keys.ts";

export type ScoringOptions = {
  readonly boardEditPointsSmall: number;
  readonly boardEditPointsMedium: number;
  readonly boardEditPointsLarge: number;
  /** From how many bytes on an edit is medium, or large. */
  readonly boardEditMediumBytesMin: number;
  readonly boardEditLargeBytesMin: number;
  readonly boardPointsPerMinuteMax: number;
};

/** Something a user did. Edits are all there is so far; comments and the like will be kinds of their own. */
export type Activity = { readonly kind: "edit"; readonly user: UserId; readonly bytes: number };

/** The boards that an activity counts for. */
export const BOARDS_OF: Readonly<Record<Activity["kind"], readonly Role[]>> = { edit: ["everyone", "editors"] };

const MINUTE_MS = 60_000;

export function worthOf(activity: Activity, options: ScoringOptions): number {
  if (activity.bytes >= options.boardEditLargeBytesMin) return options.boardEditPointsLarge;
  return activity.bytes >= options.boardEditMediumBytesMin ? options.boardEditPointsMedium : options.boardEditPointsSmall;
}

/** What each user of a room has got in the minute that the room is in. */
export class MinuteCap {
  readonly #pointsMax: number;
  #minute: number;
  #points: Map<UserId, number>;

  constructor(use: MinuteUse, options: Pick<ScoringOptions, "boardPointsPerMinuteMax">) {
    this.#pointsMax = options.boardPointsPerMinuteMax;
    this.#minute = use.minute;
    this.#points = new Map(use.points);
  }

  get minute(): number {
    return this.#minute;
  }

  /** Goes on to the minute of `time`; true if it is another one. */
  advance(time: UnixMillis): boolean {
    const minute = Math.floor(time / MINUTE_MS);
    if (minute === this.#minute) return false;
    this.#minute = minute;
    this.#points = new Map();
    return true;
  }

  /** How much of it the user gets, and what the user has got in this minute then. */
  grant(user: UserId, points: number): { readonly granted: number; readonly inMinute: number } {
    const before = this.#points.get(user) ?? 0;
    const granted = Math.max(0, Math.min(points, this.#pointsMax - before)); // The setting may have been lowered since.
    this.#points.set(user, before + granted);
    return { granted, inMinute: before + granted };
  }
}
