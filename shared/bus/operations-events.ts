/**
 * What the people who run Coroom are told of as it happens: rare, so JSON. Each is published once, kept for a while by
 * the stream `{env}_ops`, and shown by `coroom ops watch`.
 */

import { z } from "zod";

import { parseRoomKey, type RoomKey } from "../ids.ts";

const room = z.string().transform((text, context) => {
  const key = parseRoomKey(text);
  if (key === undefined) context.addIssue("not a room key");
  return key as RoomKey;
});

const Reports = z.discriminatedUnion("kind", [
  /** `by` is the room's owner from here on. `from`: the earlier owner, where that one had not let the room go. */
  z.object({ kind: z.literal("room_claimed"), room, epoch: z.int(), from: z.string().optional() }),
  /** `why`: released, handed-over, fenced, failed or deleted. */
  z.object({ kind: z.literal("room_ended"), room, why: z.string(), reason: z.string() }),
  /** Placement has had it done. `action`: promote, move, follow or unfollow; `server`: who takes the room, or its warm copy. */
  z.object({ kind: z.literal("room_placed"), room, action: z.string(), server: z.string(), reason: z.string() }),
  /** A placement process leads from here on. */
  z.object({ kind: z.literal("placement_leads"), generation: z.int() }),
  /** A room's presence travels otherwise. `cause`: the room grew or shrank, or a new owner found it so. */
  z.object({
    kind: z.literal("mode_transition"),
    room,
    from: z.string(),
    to: z.string(),
    participants: z.int(),
    cause: z.enum(["grew", "shrank", "new-owner"]),
    epoch: z.int(),
  }),
  /** A room tells less, or more again: how far it is held back, what it cost in the last second, how late the server was. */
  z.object({ kind: z.literal("room_budget"), room, from: z.int(), to: z.int(), cost: z.number(), delayMs: z.number() }),
  /** Events could not be delivered: the first of a minute. `endpoint`: the tenant whose it is, or all-tenants. */
  z.object({ kind: z.literal("webhook_given_up"), endpoint: z.string(), id: z.string(), reason: z.string() }),
  /** A gateway leaves out more, or less again: how far down the drop order, and what it measured. */
  z.object({
    kind: z.literal("shed_level"),
    from: z.int(),
    to: z.int(),
    cause: z.string(),
    delayMs: z.number(),
    outboundBytes: z.number(),
    natsLagMs: z.number(),
  }),
]);

/** What happened. */
export type OperationsReport = z.output<typeof Reports>;

/** `at`: milliseconds since the Unix epoch; `by`: the server or gateway that says so. */
export const OperationsEvent = z.intersection(Reports, z.object({ at: z.int(), by: z.string() }));
export type OperationsEvent = z.output<typeof OperationsEvent>;
