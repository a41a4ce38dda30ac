/** Texts and rows of the room's leaderboard. */

import type { Board, BoardWindow, RankedUser } from "@coroom/client/leaderboard";

import { colourOf } from "./person.ts";

export type BoardRow = {
  readonly user: string;
  readonly rank: number;
  readonly name: string;
  readonly colour: number;
  readonly score: string;
  /** Share of the leader's score, 0 to 1. */ readonly share: number;
  readonly self: boolean;
};
export type ShownBoard = Pick<Board, "state" | "ranking" | "own" | "members">;

export const BOARD_ROWS_MAX = 6;
export const WINDOWS: readonly { readonly window: BoardWindow; readonly label: string; readonly when: string }[] = [
  { window: "hour", label: "Hour", when: "this hour" },
  { window: "day", label: "Day", when: "today" },
  { window: "all", label: "All time", when: "in this room" },
];

export function rowsOf(ranking: readonly RankedUser[], user: string): BoardRow[] {
  const top = ranking[0]?.score ?? 0;
  return ranking.map(({ rank, user: id, name, score }) => ({
    user: id,
    rank,
    name,
    colour: colourOf(name),
    score: score.toLocaleString("en"),
    share: top === 0 ? 0 : score / top,
    self: id === user,
  }));
}

/** Returns an empty text when the rows need no explanation. */
export function boardRemark({ state, ranking, own, members }: ShownBoard, window: BoardWindow): string {
  switch (state) {
    case "waiting":
      return ranking.length === 0 ? "Loading the ranking…" : "";
    case "behind":
      return "The ranking is out of date. It updates when the server has caught up.";
    case "unavailable":
      return "This server has no leaderboard.";
    case "live":
      if (ranking.length === 0) return `No edits ${WINDOWS.find((known) => known.window === window)?.when ?? "in this time"} yet.`;
      return own !== undefined && own.rank > ranking.length
        ? `You are number ${own.rank.toLocaleString("en")} of ${members.toLocaleString("en")}, with a score of ${own.score.toLocaleString("en")}.`
        : "";
  }
}
