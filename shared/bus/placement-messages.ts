/** Messages between servers, placement and gateways about live processes and room owners. Rare, so JSON. */

import { z } from "zod";

import {
  type Epoch,
  type GatewayId,
  LABEL_LENGTH_MAX,
  type UnixMillis,
  parseRoomKey,
  type RoomKey,
  type Seq,
  type ServerId,
} from "../ids.ts";

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

const label = z.string().max(LABEL_LENGTH_MAX);

/** The location of a server, used to keep a room's owner and its replica apart. `pool`: empty for the general pool. */
export const ServerLabels = z.object({ host: label, zone: label, pool: label });
export type ServerLabels = z.infer<typeof ServerLabels>;

/** `used`: the used share of the server's scarcest resource. `hot`: the rooms that use most of it. */
export const ServerLoad = z.object({
  used: z.number().nonnegative(),
  hot: z.array(z.object({ room, share: z.number().nonnegative() })).max(64),
});
export type ServerLoad = z.infer<typeof ServerLoad>;

/**
 * room server -> everyone, every `everyMs`, by default 200 ms; after three missed ones the server is lost. Earlier
 * versions do not send the interval. `logObstacle`: the reason why the log currently stores no records of this server.
 * `ends`: the last heartbeat before an orderly stop; absent in the others, and in 0.2.0 and earlier.
 */
export const ServerHeartbeat = z.object({
  server: serverId,
  rooms: z.int(),
  draining: z.boolean(),
  time: date,
  everyMs: z.int().positive().optional(),
  labels: ServerLabels.optional(),
  load: ServerLoad.optional(),
  logObstacle: z.string().optional(),
  ends: z.literal(true).optional(),
});
export type ServerHeartbeat = z.infer<typeof ServerHeartbeat>;

/** gateway -> room servers: no server is subscribed to this server's subject. */
export const UnreachedServer = z.object({ server: serverId });
export type UnreachedServer = z.infer<typeof UnreachedServer>;

/** gateway -> room servers, by default every 500 ms; after 2 s of silence the gateway is lost with its members. */
export const GatewayHeartbeat = z.object({ gateway: gatewayId });
export type GatewayHeartbeat = z.infer<typeof GatewayHeartbeat>;

/**
 * document service, leaderboard -> gateways, each on its own subject: the address of its HTTP. `reachesRedis`: only
 * from a leaderboard.
 */
export const ServiceHeartbeat = z.object({ service: z.string(), url: z.url(), time: date, reachesRedis: z.boolean().optional() });
export type ServiceHeartbeat = z.infer<typeof ServiceHeartbeat>;

/** A room's last record in the log, from an owner that has stopped appending. */
export const LogEnd = z.object({ id: z.string().max(128), streamSeq: z.int().positive(), epoch, head: seq });
export type LogEnd = z.infer<typeof LogEnd>;

export function isSameEnd(a: LogEnd | undefined, b: LogEnd): boolean {
  return a?.id === b.id && a.streamSeq === b.streamSeq && a.epoch === b.epoch && a.head === b.head;
}

/**
 * The highest epoch above which a server claims a room on request: a date 14,000 years ahead. A request near 2^53 would
 * otherwise make the server write epochs that no process decodes, in this room and in all that it claims afterwards.
 */
const ABOVE_MAX = 2 ** 52;

/**
 * Asks a server to claim a room. `suspect`: the unresponsive owner that it replaces. `end`: the log's end, from an
 * owner that hands the room over. `above`: the requester knows an owner in that epoch, and accepts none in a lower one.
 */
export const ClaimRequest = z.object({
  room,
  suspect: serverId.optional(),
  end: LogEnd.optional(),
  above: epoch.transform((number) => Math.min(number, ABOVE_MAX) as Epoch).optional(),
});
export type ClaimRequest = z.infer<typeof ClaimRequest>;

export const ClaimReply = z.discriminatedUnion("kind", [
  z.object({ kind: z.literal("owned"), server: serverId, epoch }),
  z.object({ kind: z.literal("elsewhere"), server: serverId, epoch }),
  /** The log shows the deletion: the room will never have an owner again. */
  z.object({ kind: z.literal("deleted") }),
  z.object({ kind: z.literal("refused"), reason: z.string() }),
]);
export type ClaimReply = z.infer<typeof ClaimReply>;

/** Asks which server should own a room. `suspects`: servers that did not answer the requester. */
export const LocateRequest = z.object({ room, suspects: z.array(serverId).max(64) });
export type LocateRequest = z.infer<typeof LocateRequest>;

export const LocateReply = z.discriminatedUnion("kind", [
  z.object({ kind: z.literal("server"), server: serverId }),
  z.object({ kind: z.literal("none"), reason: z.string() }),
]);
export type LocateReply = z.infer<typeof LocateReply>;

/**
 * A command to a room server. `generation`: of its plan; a server refuses a command with a lower one than it
 * received in the last minute. 0: from an operator or another room server.
 */
export const ServerCommand = z.discriminatedUnion("kind", [
  /** Keep a replica of another server's room; answered once it is complete. */
  z.object({ kind: z.literal("follow"), room, generation: z.int().nonnegative() }),
  z.object({ kind: z.literal("unfollow"), room, generation: z.int().nonnegative() }),
  /** Subscribe to a room that is about to be handed over to this server; answered once subscribed. */
  z.object({ kind: z.literal("expect"), room, generation: z.int().nonnegative() }),
  /** Hand a room over to another server; answered once that server owns it. */
  z.object({ kind: z.literal("hand-over"), room, to: serverId, generation: z.int().nonnegative() }),
  /** Refuse new rooms and hand over all; answered at once. */
  z.object({ kind: z.literal("drain") }),
  /** Answered at once, which shows that the server is alive. */
  z.object({ kind: z.literal("show-presence") }),
]);
export type ServerCommand = z.infer<typeof ServerCommand>;

export const ServerCommandReply = z.discriminatedUnion("kind", [
  z.object({ kind: z.literal("done") }),
  z.object({ kind: z.literal("refused"), reason: z.string() }),
]);
export type ServerCommandReply = z.infer<typeof ServerCommandReply>;

/**
 * Time limits of the steps of a handover, which follow each other. `follow` is long, because the target needs time for a
 * replica of a busy room. `stopAppends` and `claim` are short, because the room's edits wait meanwhile.
 */
export const HANDOVER_STEPS_MS_MAX = { follow: 10_000, expect: 2_000, stopAppends: 1_000, claim: 1_000 } as const;
const COMMAND_ON_ITS_WAY_MS = 1_000;
/** Time limit for the reply to a command: a handover that uses the time of all its steps still succeeds. */
export const SERVER_COMMAND_MS_MAX = Object.values(HANDOVER_STEPS_MS_MAX).reduce((sum, stepMs) => sum + stepMs, 0) + COMMAND_ON_ITS_WAY_MS;

/** A room's entry in the rooms bucket: a hint that speeds up the search for the owner. */
export const RoomEntry = z.object({ owner: serverId, epoch });
export type RoomEntry = z.infer<typeof RoomEntry>;

/**
 * A room's entry in the plan bucket. `reason`: the reason of its last step. `ownerReason`: the reason of the step that
 * gave it its owner. `at`: the time of the plan.
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

/**
 * The reason why `owner` has the room, according to its plan. A server with a replica takes over the room of a lost
 * server without a command.
 */
export function ownerReasonIn(planned: Pick<PlannedRoom, "owner" | "replica" | "ownerReason">, owner: ServerId): string | undefined {
  if (planned.owner === owner) return planned.ownerReason;
  return planned.replica === owner ? `${planned.owner} was gone; ${owner} had a replica` : undefined;
}

/** A room's entry in the pins bucket: the pool or host that an operator assigned. */
export const RoomPin = z.object({ pool: label.optional(), host: label.optional() });
export type RoomPin = z.infer<typeof RoomPin>;

/** The outcome of a command to hand a room over. If the room was already at the target, `from` is that server. */
export type MoveOutcome =
  | { readonly kind: "moved"; readonly from: ServerId }
  | { readonly kind: "open-nowhere" }
  | { readonly kind: "refused"; readonly reason: string }
  | { readonly kind: "silent"; readonly server: ServerId };
