/**
 * A room's board as it is shown: who is ahead, by points. Everybody who watches the same board gets the same bytes;
 * the one thing that differs, the receiver's own rank, is a frame of its own.
 */

import type { UserId } from "../ids.ts";
import { checked, type Format, fields, list, number, refuseUnless, text, userId } from "./formats.ts";

/** Whose board: of all who did something, or of those who did one kind of thing. */
export const BOARD_ROLES = { everyone: 1, editors: 2, commenters: 3 } as const;
export type BoardRole = keyof typeof BOARD_ROLES;

/** The present hour, day, ISO week, month and year, in UTC, or all of it. */
export const BOARD_WINDOWS = { hour: 1, day: 2, week: 3, month: 4, year: 5, all: 6 } as const;
export type BoardWindow = keyof typeof BOARD_WINDOWS;

/**
 * live         as of the edit that it names, and told again when it changes
 * behind       no leaderboard counts the room right now: it is as it was, or empty where nothing was known
 * unavailable  it will not come: this board is not kept here, or the connection watches too many
 */
export const BOARD_STATES = { live: 0, behind: 1, unavailable: 2 } as const;
export type BoardState = keyof typeof BOARD_STATES;

export type BoardPlace = { readonly user: UserId; readonly name: string; readonly score: number };

/** Which board of a room. */
export type BoardName = { readonly role: BoardRole; readonly window: BoardWindow };

const NAME_LENGTH_MAX = 256;
const PLACE_BYTES_MIN = 4;

const place: Format<BoardPlace> = checked(fields({ user: userId, name: text, score: number }), ({ name }) =>
  refuseUnless(name.length <= NAME_LENGTH_MAX, "a name too long"),
);

/** From the first on: nobody has more points than whoever is before. */
export const ranking: Format<readonly BoardPlace[]> = checked(list(PLACE_BYTES_MIN, place), (places) =>
  refuseUnless(
    places.every(({ score }, index) => index === 0 || score <= places[index - 1]!.score),
    "a ranking out of order",
  ),
);
