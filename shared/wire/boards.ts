/**
 * A room's board as it is shown: who is ahead, by points. Everybody who watches the same board gets the same bytes;
 * the one thing that differs, the receiver's own rank, is a frame of its own.
 */

import type { Decoder } from "lib0/decoding";
import * as encoding from "lib0/encoding";

import type { UserId } from "../ids.ts";
import { readList, readName, readNumber, readText, readUserId } from "./fields.ts";

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

const NAME_LENGTH_MAX = 256;
const PLACE_BYTES_MIN = 4;

/** Which board of a room. */
export type BoardName = { readonly role: BoardRole; readonly window: BoardWindow };

export function writeBoardName(out: encoding.Encoder, { role, window }: BoardName): void {
  encoding.writeUint8(out, BOARD_ROLES[role]);
  encoding.writeUint8(out, BOARD_WINDOWS[window]);
}

export function readBoardName(input: Decoder): BoardName {
  return { role: readName(input, BOARD_ROLES), window: readName(input, BOARD_WINDOWS) };
}

export function writeRanking(out: encoding.Encoder, ranking: readonly BoardPlace[]): void {
  encoding.writeVarUint(out, ranking.length);
  for (const { user, name, score } of ranking) {
    encoding.writeVarString(out, user);
    encoding.writeVarString(out, name);
    encoding.writeVarUint(out, score);
  }
}

/** From the first on: nobody has more points than whoever is before. */
export function readRanking(input: Decoder): BoardPlace[] {
  let above = Number.MAX_SAFE_INTEGER;
  return readList(input, PLACE_BYTES_MIN, (place) => {
    const read = { user: readUserId(place), name: readText(place), score: readNumber(place) };
    if (read.name.length > NAME_LENGTH_MAX) throw new RangeError("a name too long");
    if (read.score > above) throw new RangeError("a ranking out of order");
    above = read.score;
    return read;
  });
}
