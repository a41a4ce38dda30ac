/**
 * The boards as anyone would work them out from the whole log with a pencil: no batches, no Redis, nothing
 * kept but lists. The real ones must equal it.
 */

import type { UnixMillis, UserId } from "../../shared/ids.ts";
import type { Standing } from "../board.ts";
import { type ScoringOptions, worthOf } from "../scoring.ts";

/** One edit as the log has it; `seq` from 1 without a gap, `time` never less than the one before. */
export type LoggedEdit = { readonly user: UserId; readonly bytes: number; readonly time: UnixMillis };

/** Window id -> everyone with points in it, the first ahead. */
export function referenceBoards(edits: readonly LoggedEdit[], options: ScoringOptions): Map<string, Standing[]> {
  const boards = new Map<string, Map<string, Standing>>();
  const minutes = new Map<string, number>();
  for (const [index, { user, bytes, time }] of edits.entries()) {
    const minute = `${Math.floor(time / 60_000)} ${user}`;
    const used = minutes.get(minute) ?? 0;
    const points = Math.min(worthOf({ kind: "edit", user, bytes }, options), options.boardPointsPerMinuteMax - used);
    minutes.set(minute, used + points);
    if (points === 0) continue;
    for (const id of windowIds(time)) {
      const board = boards.get(id) ?? new Map<string, Standing>();
      boards.set(id, board);
      board.set(user, { member: user, score: (board.get(user)?.score ?? 0) + points, reachedAt: index + 1 });
    }
  }
  return new Map([...boards].map(([id, board]) => [id, [...board.values()].sort((a, b) => b.score - a.score || a.reachedAt - b.reachedAt)]));
}

function windowIds(time: UnixMillis): string[] {
  const iso = new Date(time).toISOString();
  return [iso.slice(0, 13), iso.slice(0, 10), isoWeek(time), iso.slice(0, 7), iso.slice(0, 4), "all"];
}

/** By walking to the week's Thursday and counting Thursdays since New Year. */
function isoWeek(time: UnixMillis): string {
  const date = new Date(time);
  while (date.getUTCDay() !== 4) date.setUTCDate(date.getUTCDate() + ([5, 6, 0].includes(date.getUTCDay()) ? -1 : 1));
  const year = date.getUTCFullYear();
  let week = 0;
  for (; date.getUTCFullYear() === year; date.setUTCDate(date.getUTCDate() - 7)) week += 1;
  return `${year}-W${String(week).padStart(2, "0")}`;
}
