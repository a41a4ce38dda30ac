/** The room's board in the page's words: who is ahead, and what is to be said where nobody is. */

import type { Board, BoardWindow, RankedUser } from "@coroom/client";

import { colourOf } from "./person.ts";

export type Row = {
  readonly user: string;
  readonly rank: number;
  readonly name: string;
  readonly colour: number;
  readonly score: string;
  /** Of the leader's, 0 to 1. */ readonly share: number;
  readonly self: boolean;
};
export type Shown = Pick<Board, "state" | "ranking" | "own" | "members">;

export const SHOWN = 6;
export const WINDOWS: readonly { readonly window: BoardWindow; readonly label: string; readonly when: string }[] = [
  { window: "hour", label: "Hour", when: "this hour" },
  { window: "day", label: "Day", when: "today" },
  { window: "all", label: "Ever", when: "so far" },
];

export function rowsOf(ranking: readonly RankedUser[], user: string): Row[] {
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

/** Empty: there is nothing to add to what is shown. */
export function boardRemark({ state, ranking, own, members }: Shown, window: BoardWindow): string {
  switch (state) {
    case "waiting":
      return ranking.length === 0 ? "Counting…" : "";
    case "behind":
      return "Counting is behind; this is from before.";
    case "unavailable":
      return "Nobody counts on this server.";
    case "live":
      if (ranking.length === 0)
        return `Nobody has written anything ${WINDOWS.find((known) => known.window === window)?.when ?? "in this time"} yet.`;
      return own !== undefined && own.rank > ranking.length
        ? `You are number ${own.rank.toLocaleString("en")} of ${members.toLocaleString("en")}, with ${own.score.toLocaleString("en")}.`
        : "";
  }
}
