/** What the leaderboard says on NATS about who is ahead, and how it is asked to. A few a second, so JSON. */

import { z } from "zod";

import { type Epoch, parseRoomKey, type RoomKey, type Seq } from "../ids.ts";

const room = z.string().transform((text, context) => {
  const key = parseRoomKey(text);
  if (key === undefined) context.addIssue("not a room key");
  return key as RoomKey;
});

/** gateway -> leaderboard: "somebody here looks at this board"; said again every third of the time it holds. `window` is a kind: `hour` is always the present one. */
export const BoardWatch = z.object({ room, role: z.string(), window: z.string() });
export type BoardWatch = z.infer<typeof BoardWatch>;

/**
 * leaderboard -> gateways, on the room's subject: a board's first members, sent when they changed. The first
 * `shown` of them are the list that is shown, and `checksum` is of that list; the rest is for those members' own ranks.
 */
export const BoardShown = z.object({
  room,
  role: z.string(),
  /** The kind that was asked for, and the window it is now. */
  window: z.string(),
  windowId: z.string(),
  epoch: z.int().nonnegative().transform((number) => number as Epoch),
  /** Up to which of the room's edits it counts. */
  seq: z.int().nonnegative().transform((number) => number as Seq),
  members: z.int().nonnegative(),
  shown: z.int().positive(),
  checksum: z.int().nonnegative(),
  /** In order, the first ahead: user and score. */
  ranking: z.array(z.tuple([z.string(), z.number()])),
});
export type BoardShown = z.infer<typeof BoardShown>;
