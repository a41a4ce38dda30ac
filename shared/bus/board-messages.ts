/** What the leaderboard says on NATS about who is ahead, and how it is asked to. A few a second, so JSON. */

import { z } from "zod";

import { type Epoch, parseRoomKey, parseUserId, type RoomKey, type Seq, type UserId } from "../ids.ts";

const room = z.string().transform((text, context) => {
  const key = parseRoomKey(text);
  if (key === undefined) context.addIssue("not a room key");
  return key as RoomKey;
});

/** Whose board of the room it is, and the kind of window: `hour` is always the present one. */
const board = { room, role: z.string(), window: z.string() };

/**
 * gateway -> leaderboard: "somebody here looks at this board"; said again every third of the time it holds. `isNew`:
 * nothing is known of it here, so it is to be said whether it changed or not.
 */
export const BoardWatch = z.object({ ...board, isNew: z.boolean() });
export type BoardWatch = z.infer<typeof BoardWatch>;

/** How a user who may write in the room is called, by its token. */
export const BoardName = z.object({
  room,
  user: z.string().transform((text, context) => {
    const user = parseUserId(text);
    if (user === undefined) context.addIssue("not a user id");
    return user as UserId;
  }),
  name: z.string().min(1).max(256),
});
export type BoardName = z.infer<typeof BoardName>;

/** The longest come to half of what NATS takes as one message. */
export const BOARD_NAMES_MAX = 200;

/** gateway -> leaderboard: who was let in lately. */
export const BoardNames = z.array(BoardName).min(1).max(BOARD_NAMES_MAX);

/**
 * leaderboard -> gateways, on the room's subject: a board's first members, sent when they changed. The first
 * `shown` of them are the list that is shown, and `checksum` is of that list; the rest is for those members' own ranks.
 */
export const BoardShown = z.object({
  kind: z.literal("shown"),
  ...board,
  /** The window that it is now. */
  windowId: z.string(),
  epoch: z
    .int()
    .nonnegative()
    .transform((number) => number as Epoch),
  /** Up to which of the room's edits it counts. */
  seq: z
    .int()
    .nonnegative()
    .transform((number) => number as Seq),
  members: z.int().nonnegative(),
  shown: z.int().positive(),
  checksum: z.int().nonnegative(),
  /** In order, the first ahead: user, score, and name; an empty one is not known. */
  ranking: z.array(z.tuple([z.string(), z.number(), z.string()])),
});
export type BoardShown = z.infer<typeof BoardShown>;

/** `behind`: what was shown is old, and is told again once it is not. `unavailable`: this board is not kept. */
export const BoardNews = z.discriminatedUnion("kind", [
  BoardShown,
  z.object({ kind: z.literal("behind"), ...board }),
  z.object({ kind: z.literal("unavailable"), ...board }),
]);
export type BoardNews = z.infer<typeof BoardNews>;
