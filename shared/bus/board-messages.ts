/** Leaderboard messages on NATS: rankings, and gateways' requests to watch them. A few per second, so JSON. */

import { z } from "zod";

import { type Epoch, parseRoomKey, parseUserId, type RoomKey, type Seq, type UserId } from "../ids.ts";

const room = z.string().transform((text, context) => {
  const key = parseRoomKey(text);
  if (key === undefined) context.addIssue("not a room key");
  return key as RoomKey;
});

/** The room, the role and the kind of window; `hour` is always the current hour. */
const board = { room, role: z.string(), window: z.string() };

/** Users whose places a gateway asks for on one board: ids of the longest take a fifth of a NATS message. */
export const SOUGHT_USERS_MAX = 1_000;

/**
 * gateway -> leaderboard: a client of this gateway watches this board; repeated every third of its validity. `isNew`:
 * the gateway has no ranking yet, so send it even if unchanged. `sought`: users who watch at this gateway and were not in
 * the last ranking. Their own places are sent with the next one. `checksum`: of the last ranking that arrived. NATS may
 * have lost a later one, which is sent again.
 */
export const BoardWatch = z.object({
  ...board,
  isNew: z.boolean(),
  sought: z.array(z.string().max(128)).max(SOUGHT_USERS_MAX).optional(),
  checksum: z.int().nonnegative().optional(),
});
export type BoardWatch = z.infer<typeof BoardWatch>;

/** The display name of a user who may write in the room, from the token. */
export const DisplayName = z.object({
  room,
  user: z.string().transform((text, context) => {
    const user = parseUserId(text);
    if (user === undefined) context.addIssue("not a user id");
    return user as UserId;
  }),
  name: z.string().min(1).max(256),
});
export type DisplayName = z.infer<typeof DisplayName>;

/** The longest names take half of a NATS message. */
export const DISPLAY_NAMES_MAX = 200;

/** gateway -> leaderboard: users who joined recently. */
export const DisplayNames = z.array(DisplayName).min(1).max(DISPLAY_NAMES_MAX);

/**
 * leaderboard -> gateways, on the room's subject: a board's first members, sent on a change. The first `shown` entries
 * are the displayed list; the rest gives those members their own ranks. `checksum`: of ranking, names, members, window and
 * own places; not of epoch and seq.
 */
export const BoardSnapshot = z.object({
  kind: z.literal("shown"),
  ...board,
  /** The current window. */
  windowId: z.string(),
  epoch: z
    .int()
    .nonnegative()
    .transform((number) => number as Epoch),
  /** The last edit of the room that the ranking counts. */
  seq: z
    .int()
    .nonnegative()
    .transform((number) => number as Seq),
  members: z.int().nonnegative(),
  shown: z.int().positive(),
  checksum: z.int().nonnegative(),
  /** In order, best first: user, score and name; an empty name is unknown. */
  ranking: z.array(z.tuple([z.string(), z.number(), z.string()])),
  /** Sought users outside the ranking: user, rank and score; 0 without points. Rank 0 with points: not known exactly. */
  own: z.array(z.tuple([z.string(), z.int().nonnegative(), z.number()])).optional(),
});
export type BoardSnapshot = z.infer<typeof BoardSnapshot>;

/**
 * `behind`: the ranking is old; an update follows when it is current, or when the leaderboard has space for the board.
 * `unavailable`: this board does not exist.
 */
export const BoardUpdate = z.discriminatedUnion("kind", [
  BoardSnapshot,
  z.object({ kind: z.literal("behind"), ...board }),
  z.object({ kind: z.literal("unavailable"), ...board }),
]);
export type BoardUpdate = z.infer<typeof BoardUpdate>;
