/**
 * Activities that earn points without being edits, as stored in the activity stream. One message holds activities that
 * were announced together, and is counted completely or not at all. Sent a few times per second, so JSON.
 */

import { z } from "zod";

import { parseUserId, type UserId } from "../ids.ts";
import { ACTIVITY_KIND } from "../settings/board-settings.ts";

/** Maximum users in one message. */
export const ACTIVITY_USERS_MAX = 200;
const ACTIVITY_TIMES_MAX = 1_000;

const user = z.string().transform((text, context) => {
  const id = parseUserId(text);
  if (id === undefined) context.addIssue("not a user id");
  return id as UserId;
});

/** `times`: how often the user did it. The leaderboard decides the points. */
export const UserAction = z.object({
  user,
  kind: z.string().regex(ACTIVITY_KIND),
  times: z.int().min(1).max(ACTIVITY_TIMES_MAX).default(1),
});
export type UserAction = z.infer<typeof UserAction>;

/**
 * `deeds`: from an application's backend. `present`: users in the room who may write, sent by a gateway at intervals.
 */
export const Activity = z.discriminatedUnion("kind", [
  z.object({ kind: z.literal("deeds"), deeds: z.array(UserAction).min(1).max(ACTIVITY_USERS_MAX) }),
  z.object({ kind: z.literal("present"), users: z.array(user).min(1).max(ACTIVITY_USERS_MAX) }),
]);
export type Activity = z.infer<typeof Activity>;
