/** Texts and rows of the room's leaderboard. */

import type { Board, BoardWindow, PastWindow, RankedUser } from "@coroom/client/leaderboard";

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
/** `read`: a window that has ended. `unread`: it could not be read. */
export type ShownBoard = Pick<Board, "ranking" | "own" | "members"> & { readonly state: Board["state"] | "read" | "unread" };
export type ShownWindow = BoardWindow | PastWindow;

export const BOARD_ROWS_MAX = 6;
export const WINDOWS: readonly { readonly window: ShownWindow; readonly label: string; readonly when: string }[] = [
  { window: "hour", label: "Hour", when: "this hour" },
  { window: "day", label: "Day", when: "today" },
  { window: "last-week", label: "Last week", when: "last week" },
  { window: "all", label: "All time", when: "in this room" },
];

export function isPast(window: ShownWindow): window is PastWindow {
  return window.startsWith("last-");
}

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
export function boardRemark({ state, ranking, own, members }: ShownBoard, window: ShownWindow): string {
  switch (state) {
    case "waiting":
      return ranking.length === 0 ? "Loading the ranking…" : "";
    case "behind":
      return "The ranking is out of date. It updates when the server has caught up.";
    case "unavailable":
      return "This server has no leaderboard.";
    case "unread":
      return "This ranking could not be loaded. The page tries again every minute.";
    case "live":
    case "read":
      if (ranking.length === 0) return `No edits ${whenOf(window)}${state === "live" ? " yet" : ""}.`;
      return own !== undefined && own.rank > ranking.length
        ? `You are number ${own.rank.toLocaleString("en")} of ${members.toLocaleString("en")}, with a score of ${own.score.toLocaleString("en")}.`
        : "";
  }
}

function whenOf(window: ShownWindow): string {
  return WINDOWS.find((known) => known.window === window)?.when ?? "in this time";
}
