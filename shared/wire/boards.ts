/** A room's board: a ranking by points. All watchers of a board receive the same bytes. The receiver's own rank is a separate frame. */

import type { UserId } from "../ids.ts";
import { checked, type Format, fields, list, number, refuseUnless, text, userId } from "./fields.ts";

/** The group of participants that a board ranks: all, or those with one kind of contribution. */
export const BOARD_ROLES = { everyone: 1, editors: 2, commenters: 3 } as const;
/** Whom a board ranks: everyone, or those with contributions of one kind. */
export type BoardRole = keyof typeof BOARD_ROLES;

/** The current hour, day, ISO week, month or year, in UTC, or all time. */
export const BOARD_WINDOWS = { hour: 1, day: 2, week: 3, month: 4, year: 5, all: 6 } as const;
/** The time that a board counts: the current hour, day, ISO week, month or year in UTC, or all time. */
export type BoardWindow = keyof typeof BOARD_WINDOWS;

/**
 * `live`: counts the edits up to the position given; sent again on a change. `behind`: no leaderboard counts the room
 * now, or the one that counts it watches as many boards as it may: the last ranking, or empty if none is known; `live`
 * follows. `unavailable`: no updates follow: this board is not kept, or the connection watches too many.
 */
export const BOARD_STATES = { live: 0, behind: 1, unavailable: 2 } as const;
export type BoardState = keyof typeof BOARD_STATES;

export type BoardPlace = { readonly user: UserId; readonly name: string; readonly score: number };

/** Names one board of a room. */
export type BoardName = { readonly role: BoardRole; readonly window: BoardWindow };

const NAME_LENGTH_MAX = 256;
const PLACE_BYTES_MIN = 4;

const place: Format<BoardPlace> = checked(fields({ user: userId, name: text, score: number }), ({ name }) =>
  refuseUnless(name.length <= NAME_LENGTH_MAX, "a name too long"),
);

/** Best first, by descending score. */
export const ranking: Format<readonly BoardPlace[]> = checked(list(PLACE_BYTES_MIN, place), (places) =>
  refuseUnless(
    places.every(({ score }, index) => index === 0 || score <= places[index - 1]!.score),
    "a ranking out of order",
  ),
);
