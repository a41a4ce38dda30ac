/** What servers, placement and gateways say about who is there and who owns what. Rare, so JSON. */

import { z } from "zod";

import { type Epoch, type GatewayId, type UnixMillis, parseRoomKey, type RoomKey, type Seq, type ServerId } from "../ids.ts";

const serverId = z
  .string()
  .regex(/^[A-Za-z0-9_-]{1,64}$/)
  .transform((text) => text as ServerId);
const gatewayId = z
  .string()
  .regex(/^[A-Za-z0-9_-]{1,64}$/)
  .transform((text) => text as GatewayId);
const room = z.string().transform((text, context) => {
  const key = parseRoomKey(text);
  if (key === undefined) context.addIssue("not a room key");
  return key as RoomKey;
});
const epoch = z
  .int()
  .nonnegative()
  .transform((number) => number as Epoch);
const seq = z
  .int()
  .nonnegative()
  .transform((number) => number as Seq);
const date = z.number().transform((number) => number as UnixMillis);

const label = z.string().max(64);

/** Where a server runs, for keeping a room's owner and its warm copy apart. `pool`: empty for the general one. */
export const ServerLabels = z.object({ host: label, zone: label, pool: label });
export type ServerLabels = z.infer<typeof ServerLabels>;

/** `used`: the share of the server's budget that is in use, by what is scarcest. `hot`: the rooms that take most of it. */
export const ServerLoad = z.object({
  used: z.number().nonnegative(),
  hot: z.array(z.object({ room, share: z.number().nonnegative() })).max(64),
});
export type ServerLoad = z.infer<typeof ServerLoad>;

/**
 * room server -> everyone, each `everyMs`, by default 200 ms; three missed ones mean it is gone. Those of earlier
 * versions do not say how often.
 */
export const ServerHeartbeat = z.object({
  server: serverId,
  rooms: z.int(),
  draining: z.boolean(),
  time: date,
  everyMs: z.int().positive().optional(),
  labels: ServerLabels.optional(),
  load: ServerLoad.optional(),
});
export type ServerHeartbeat = z.infer<typeof ServerHeartbeat>;

/** gateway -> room servers: nobody listens where this one should. */
export const UnreachedServer = z.object({ server: serverId });
export type UnreachedServer = z.infer<typeof UnreachedServer>;

/** gateway -> room servers, by default every 500 ms; after 2 s of silence it is gone, and its members with it. */
export const GatewayHeartbeat = z.object({ gateway: gatewayId });
export type GatewayHeartbeat = z.infer<typeof GatewayHeartbeat>;

/** document service, leaderboard -> gateways, each on a subject of its own: where its HTTP answers. `reachesRedis`: of a leaderboard. */
export const ServiceHeartbeat = z.object({ service: z.string(), url: z.url(), time: date, reachesRedis: z.boolean().optional() });
export type ServiceHeartbeat = z.infer<typeof ServiceHeartbeat>;

/** A room's last record in the log, by an owner that has stopped writing. */
export const LogEnd = z.object({ id: z.string().max(128), streamSeq: z.int().positive(), epoch, head: seq });
export type LogEnd = z.infer<typeof LogEnd>;

/**
 * "Take this room." `suspect`: the owner that does not answer, to be taken over from. `end`: of an owner that hands
 * the room over. `above`: the asker has heard of an owner in that epoch, and believes none below.
 */
export const ClaimRequest = z.object({ room, suspect: serverId.optional(), end: LogEnd.optional(), above: epoch.optional() });
export type ClaimRequest = z.infer<typeof ClaimRequest>;

export const ClaimReply = z.discriminatedUnion("kind", [
  z.object({ kind: z.literal("owned"), server: serverId, epoch }),
  z.object({ kind: z.literal("elsewhere"), server: serverId, epoch }),
  /** Its log says so: nobody ever owns it again. */
  z.object({ kind: z.literal("deleted") }),
  z.object({ kind: z.literal("refused"), reason: z.string() }),
]);
export type ClaimReply = z.infer<typeof ClaimReply>;

/** "Who should own this room?" `suspects`: servers that the asker got no answer from. */
export const LocateRequest = z.object({ room, suspects: z.array(serverId).max(64) });
export type LocateRequest = z.infer<typeof LocateRequest>;

export const LocateReply = z.discriminatedUnion("kind", [
  z.object({ kind: z.literal("server"), server: serverId }),
  z.object({ kind: z.literal("none"), reason: z.string() }),
]);
export type LocateReply = z.infer<typeof LocateReply>;

/**
 * What a room server is told to do. `generation`: of the plan it comes from; a server refuses what is older than it has
 * heard of. 0: no plan, but an operator, or another room server.
 */
export const ServerOrder = z.discriminatedUnion("kind", [
  /** Keep a warm copy of a room that another owns; answered once it is warm. */
  z.object({ kind: z.literal("follow"), room, generation: z.int().nonnegative() }),
  z.object({ kind: z.literal("unfollow"), room, generation: z.int().nonnegative() }),
  /** Hear a room's edits already, which is about to be handed over to this server; answered once it does. */
  z.object({ kind: z.literal("expect"), room, generation: z.int().nonnegative() }),
  /** Hand a room over to another server; answered once that owns it. */
  z.object({ kind: z.literal("hand-over"), room, to: serverId, generation: z.int().nonnegative() }),
  /** Take no new rooms and hand all over; answered at once. */
  z.object({ kind: z.literal("drain") }),
  /** Answered at once: somebody wants to know whether it is there. */
  z.object({ kind: z.literal("show-presence") }),
]);
export type ServerOrder = z.infer<typeof ServerOrder>;

export const OrderReply = z.discriminatedUnion("kind", [
  z.object({ kind: z.literal("done") }),
  z.object({ kind: z.literal("refused"), reason: z.string() }),
]);
export type OrderReply = z.infer<typeof OrderReply>;

/** The entry of a room in the rooms bucket: a hint that makes finding the owner fast. */
export const RoomEntry = z.object({ owner: serverId, epoch });
export type RoomEntry = z.infer<typeof RoomEntry>;

/**
 * The entry of a room in the plan bucket: what placement wants, and why. `reason`: of its last step; `ownerReason`:
 * of that which gave it its owner. `at`: when it was planned.
 */
export const PlannedRoom = z.object({
  owner: serverId,
  replica: serverId.optional(),
  reason: z.string(),
  ownerReason: z.string().optional(),
  generation: z.int().positive(),
  at: date,
});
export type PlannedRoom = z.infer<typeof PlannedRoom>;

/** Why `owner` has the room, as far as its plan tells. Whoever kept the warm copy takes the room of a server that is gone unasked. */
export function ownerReasonIn(planned: Pick<PlannedRoom, "owner" | "replica" | "ownerReason">, owner: ServerId): string | undefined {
  if (planned.owner === owner) return planned.ownerReason;
  return planned.replica === owner ? `${planned.owner} was gone; ${owner} had a warm copy` : undefined;
}

/** The entry of a room in the pins bucket: where an operator wants it. */
export const RoomPin = z.object({ pool: label.optional(), host: label.optional() });
export type RoomPin = z.infer<typeof RoomPin>;
