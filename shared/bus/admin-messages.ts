/** Messages between gateways on behalf of room administrators: sanctions, kicks and member lists. Rare, so JSON. */

import { z } from "zod";

import { parseRoomKey, parseTenantId, parseUserId, type RoomKey, type TenantId, type UnixMillis, type UserId } from "../ids.ts";

const checked = <Name extends string>(parse: (text: string) => Name | undefined, what: string) =>
  z.string().transform((text, context) => {
    const name = parse(text);
    if (name === undefined) context.addIssue(`not a ${what}`);
    return name as Name;
  });
const tenant = checked<TenantId>(parseTenantId, "tenant");
const user = checked<UserId>(parseUserId, "user");
const room = checked<RoomKey>(parseRoomKey, "room key");
const date = z
  .int()
  .nonnegative()
  .transform((number) => number as UnixMillis);

/** `address`: in the form of `shared/limits/client-address.ts`. */
export const SanctionTarget = z.discriminatedUnion("kind", [
  z.object({ kind: z.literal("user"), tenant, user }),
  z.object({ kind: z.literal("address"), address: z.string().regex(/^[0-9a-f.:]{1,64}$/) }),
]);
export type SanctionTarget = z.infer<typeof SanctionTarget>;

/**
 * A restriction until a date. If two have the same target, the later one is valid. A lift is a further sanction.
 * `room`: only in that room. `read-only`: may join but not write. `by`: imposed for abuse; absent: imposed by people.
 * One sanction of each origin can exist at the same time.
 */
export const Sanction = z.object({
  target: SanctionTarget,
  room: room.optional(),
  level: z.enum(["banned", "read-only"]),
  by: z.literal("gateway").optional(),
  until: date,
  madeAt: date,
  lifted: z.boolean(),
  reason: z.string().max(200),
});
export type Sanction = z.infer<typeof Sanction>;

/** To every gateway. A kick without a room closes the connection; `user` or `connection` is required. */
export const AdminCommand = z.discriminatedUnion("kind", [
  z.object({ kind: z.literal("kick"), tenant, user: user.optional(), connection: z.string().max(128).optional(), room: room.optional() }),
  z.object({ kind: z.literal("list-members"), room }),
]);
export type AdminCommand = z.infer<typeof AdminCommand>;

export const RoomMember = z.object({ user: z.string(), name: z.string(), connection: z.string(), write: z.boolean() });
export type RoomMember = z.infer<typeof RoomMember>;

/** One gateway's reply. `isPart`: more parts follow. `gateway`: absent in replies of release 0.2.0 and earlier. */
export const AdminReply = z.object({
  kicked: z.int(),
  members: z.array(RoomMember),
  isPart: z.literal(true).optional(),
  gateway: z.string().optional(),
});
export type AdminReply = z.infer<typeof AdminReply>;
