/**
 * What is worth points in a room and is no edit, as the stream of activities keeps it: one message for what was told
 * at once, counted whole or not at all. A few a second, so JSON.
 */

import { z } from "zod";

import { parseUserId, type UserId } from "../ids.ts";

/** Of one message. */
export const ACTIVITY_USERS_MAX = 200;
export const ACTIVITY_TIMES_MAX = 1_000;
/** What an application calls a kind of activity. */
export const ACTIVITY_KIND = /^[a-z][a-z0-9-]{0,31}$/;

const user = z.string().transform((text, context) => {
  const id = parseUserId(text);
  if (id === undefined) context.addIssue("not a user id");
  return id as UserId;
});

/** `times`: how often the user did it. What that is worth is settled where it is counted. */
export const Deed = z.object({ user, kind: z.string().regex(ACTIVITY_KIND), times: z.int().min(1).max(ACTIVITY_TIMES_MAX).default(1) });
export type Deed = z.infer<typeof Deed>;

/** `deeds`: told by an application's backend. `present`: who may write and is in the room, told by a gateway once in a stretch of time. */
export const Activity = z.discriminatedUnion("kind", [
  z.object({ kind: z.literal("deeds"), deeds: z.array(Deed).min(1).max(ACTIVITY_USERS_MAX) }),
  z.object({ kind: z.literal("present"), users: z.array(user).min(1).max(ACTIVITY_USERS_MAX) }),
]);
export type Activity = z.infer<typeof Activity>;
