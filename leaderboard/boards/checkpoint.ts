/**
 * The stored form of a room's boards. Each member's name is stored once, even if the member is in many windows. The
 * form is parsed completely before any part of it is used.
 */

import { z } from "zod";

import type { Epoch, Seq, UnixMillis, UserId } from "../../shared/ids.ts";
import type { BoardsDump, Use } from "./board.ts";
import { ROLES } from "./keys.ts";
import { parseWindow } from "./windows.ts";

const count = z.int().nonnegative();
/** Scores reach 2^53, one more than `int` accepts. */
const score = z.number().positive();

export const WrittenApplied = z.object({
  epoch: count.transform((number) => number as Epoch),
  seq: count.transform((number) => number as Seq),
  streamSeq: count,
  time: count.transform((number) => number as UnixMillis),
  missing: count,
  instant: count.default(0),
  activity: count.default(0),
  activityInstant: count.default(0),
});

const WrittenUse = z.object({ period: count, points: z.array(z.tuple([z.string(), count])) }).default({ period: 0, points: [] });

export const WrittenBoards = z.object({
  applied: WrittenApplied,
  uses: z.object({ edits: WrittenUse, deeds: WrittenUse, present: WrittenUse }).prefault({}),
  names: z.array(z.tuple([z.string(), z.string()])).default([]),
  members: z.array(z.string()),
  /** For each member its number, its score, and the instant at which the score was reached. */
  boards: z.array(z.object({ role: z.enum(ROLES), window: z.string(), standings: z.array(z.tuple([count, score, count])) })),
});
export type WrittenBoards = z.infer<typeof WrittenBoards>;

export function writeBoards({ applied, uses, names, boards }: BoardsDump): WrittenBoards {
  const numbers = new Map<string, number>();
  const numberOf = (member: string): number => {
    const number = numbers.get(member) ?? numbers.size;
    numbers.set(member, number);
    return number;
  };
  const written = boards.map(({ role, window, standings }) => ({
    role,
    window: window.id,
    standings: standings.map(({ member, score, reachedAt }): [number, number, number] => [numberOf(member), score, reachedAt]),
  }));
  const { edits, deeds, present } = uses;
  return {
    applied,
    uses: { edits: writtenUse(edits), deeds: writtenUse(deeds), present: writtenUse(present) },
    names: [...names],
    members: [...numbers.keys()],
    boards: written,
  };
}

/** Undefined if it is not a checkpoint. */
export function readBoards(json: unknown): BoardsDump | undefined {
  const { data } = WrittenBoards.safeParse(json);
  if (data === undefined) return undefined;
  const boards: BoardsDump["boards"][number][] = [];
  for (const { role, window: id, standings } of data.boards) {
    const window = parseWindow(id);
    if (window === undefined || standings.some(([number]) => number >= data.members.length)) return undefined;
    boards.push({
      role,
      window,
      standings: standings.map(([number, points, reachedAt]) => ({ member: data.members[number]!, score: points, reachedAt })),
    });
  }
  const { edits, deeds, present } = data.uses;
  return {
    applied: data.applied,
    uses: { edits: useOf(edits), deeds: useOf(deeds), present: useOf(present) },
    names: new Map(data.names),
    boards,
  };
}

function writtenUse({ period, points }: Use): z.infer<typeof WrittenUse> {
  return { period, points: [...points] };
}

function useOf({ period, points }: z.infer<typeof WrittenUse>): Use {
  return { period, points: new Map(points as [UserId, number][]) };
}
