/**
 * A room's boards as they are written down: each member's name once, however many windows it is in. Read back
 * only after the whole was found to be well formed.
 */

import { z } from "zod";

import type { Epoch, Seq, UnixMillis, UserId } from "../shared/ids.ts";
import type { BoardsDump } from "./board.ts";
import { ROLES } from "./keys.ts";
import { parseWindow } from "./windows.ts";

const whole = z.int().nonnegative();
/** Scores reach 2^53, one past what `int` takes. */
const score = z.number().positive();

export const WrittenApplied = z.object({
  epoch: whole.transform((number) => number as Epoch),
  seq: whole.transform((number) => number as Seq),
  streamSeq: whole,
  time: whole.transform((number) => number as UnixMillis),
  missing: whole,
});

const WrittenBoards = z.object({
  applied: WrittenApplied,
  minute: z.object({ minute: whole, points: z.array(z.tuple([z.string(), whole])) }),
  names: z.array(z.tuple([z.string(), z.string()])).default([]),
  members: z.array(z.string()),
  /** Of each member its number, score, and seq at which that was reached. */
  boards: z.array(z.object({ role: z.enum(ROLES), window: z.string(), standings: z.array(z.tuple([whole, score, whole])) })),
});
export type WrittenBoards = z.infer<typeof WrittenBoards>;

export function writeBoards({ applied, minute, names, boards }: BoardsDump): WrittenBoards {
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
  return { applied, minute: { minute: minute.minute, points: [...minute.points] }, names: [...names], members: [...numbers.keys()], boards: written };
}

/** Undefined for what is no checkpoint. */
export function readBoards(json: unknown): BoardsDump | undefined {
  const { data } = WrittenBoards.safeParse(json);
  if (data === undefined) return undefined;
  const boards: BoardsDump["boards"][number][] = [];
  for (const { role, window: id, standings } of data.boards) {
    const window = parseWindow(id);
    if (window === undefined || standings.some(([number]) => number >= data.members.length)) return undefined;
    boards.push({ role, window, standings: standings.map(([number, points, reachedAt]) => ({ member: data.members[number]!, score: points, reachedAt })) });
  }
  return { applied: data.applied, minute: { minute: data.minute.minute, points: new Map(data.minute.points as [UserId, number][]) }, names: new Map(data.names), boards };
}
