/**
 * What gateways tell each other on behalf of the people who run rooms: who is banned or held back, who is to go, who
 * is there. Rare, so JSON.
 */

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

/** `address`: as `shared/client-address.ts` writes it. */
export const Target = z.discriminatedUnion("kind", [
  z.object({ kind: z.literal("user"), tenant, user }),
  z.object({ kind: z.literal("address"), address: z.string().regex(/^[0-9a-f.:]{1,64}$/) }),
]);
export type Target = z.infer<typeof Target>;

/**
 * What somebody may not do until a date. Of two about the same, the one made later holds; lifting one is another.
 * `room`: there only. `read-only`: may be there, and not write. `by`: imposed for abuse; absent: by people. One of each
 * is not about the same.
 */
export const Sanction = z.object({
  target: Target,
  room: room.optional(),
  level: z.enum(["banned", "read-only"]),
  by: z.literal("gateway").optional(),
  until: date,
  madeAt: date,
  lifted: z.boolean(),
  reason: z.string().max(200),
});
export type Sanction = z.infer<typeof Sanction>;

/** To every gateway. Kick: without a room, all of the connection; `user` or `connection`, at least one of them. */
export const Order = z.discriminatedUnion("kind", [
  z.object({ kind: z.literal("kick"), tenant, user: user.optional(), connection: z.string().max(128).optional(), room: room.optional() }),
  z.object({ kind: z.literal("list-members"), room }),
]);
export type Order = z.infer<typeof Order>;

export const RoomMember = z.object({ user: z.string(), name: z.string(), connection: z.string(), write: z.boolean() });
export type RoomMember = z.infer<typeof RoomMember>;

/** One gateway's answer. `isPart`: the rest of it follows. */
export const OrderAnswer = z.object({ kicked: z.int(), members: z.array(RoomMember), isPart: z.literal(true).optional() });
export type OrderAnswer = z.infer<typeof OrderAnswer>;
