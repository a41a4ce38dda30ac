/** Requests of operators and the operations console to room servers and gateways. Sent only while a person watches, so JSON. */

import { z } from "zod";

import { parseRoomKey, type RoomKey } from "../ids.ts";
import { ROOM_MODES, type RoomMode } from "../wire/frames.ts";

/** A request for the state of the presence of the room with this key. Only its owner replies, so a room without an owner gives no reply. */
export const RoomReportRequest = z.object({ room: z.string() });
export type RoomReportRequest = z.output<typeof RoomReportRequest>;

/**
 * Counts start when this server became the owner; two reports give the rates. `gateways`: members of the room at each.
 */
export const RoomReport = z.object({
  server: z.string(),
  epoch: z.int(),
  mode: z.enum(Object.keys(ROOM_MODES) as [RoomMode, ...RoomMode[]]),
  shed: z.int(),
  participants: z.int(),
  presencePerSecond: z.int(),
  presenceBytes: z.int(),
  gateways: z.record(z.string(), z.int()),
  statesReceived: z.int(),
  deltasPublished: z.int(),
  deltaBytesPublished: z.int(),
});
export type RoomReport = z.output<typeof RoomReport>;

const room = z.string().transform((text, context) => {
  const key = parseRoomKey(text);
  if (key === undefined) context.addIssue("not a room key");
  return key as RoomKey;
});

/** Rooms on one page of a list. One more is requested, to know whether another page exists. */
export const LISTED_ROOMS_MAX = 100;

/** Where a list continues: after this room with this many participants. */
export const RoomCursor = z.object({ participants: z.int().nonnegative(), room });
export type RoomCursor = z.output<typeof RoomCursor>;

/** `tenant` and `search` narrow the list; `search` is a part of the room's name, in any case. */
export const RoomListRequest = z.object({
  tenant: z.string().optional(),
  search: z.string().max(128),
  after: RoomCursor.optional(),
  limit: z
    .int()
    .positive()
    .max(LISTED_ROOMS_MAX + 1),
});
export type RoomListRequest = z.output<typeof RoomListRequest>;

/** `heldBack`: the level at which the room's owner throttles it; 0: it does not. */
export const ListedRoom = z.object({
  room,
  server: z.string(),
  epoch: z.int(),
  mode: z.enum(Object.keys(ROOM_MODES) as [RoomMode, ...RoomMode[]]),
  participants: z.int(),
  gateways: z.int(),
  editsPerSecond: z.number(),
  heldBack: z.int(),
});
export type ListedRoom = z.output<typeof ListedRoom>;

/** One server's page: the first rooms after the cursor, and the total number of matches. */
export const RoomListReply = z.object({ rooms: z.array(ListedRoom), matching: z.int() });
export type RoomListReply = z.output<typeof RoomListReply>;

/** The order of every list: most participants first, then by name. Negative: `a` comes first. */
export function compareListed(a: RoomCursor, b: RoomCursor): number {
  if (a.participants !== b.participants) return b.participants - a.participants;
  if (a.room === b.room) return 0;
  return a.room < b.room ? -1 : 1;
}

/** Asks all gateways for their state. `drain`: the gateway of this name drains first. */
export const GatewayReportRequest = z.object({ drain: z.string().optional() });
export type GatewayReportRequest = z.output<typeof GatewayReportRequest>;

/** `state`: the same as /readyz. `reachesRedis`: absent without Redis. */
export const GatewayReport = z.object({
  gateway: z.string(),
  connections: z.int(),
  rooms: z.int(),
  shedLevel: z.int(),
  state: z.enum(["ready", "draining", "degraded", "misconfigured", "slow", "log-full"]),
  reachesRedis: z.boolean().optional(),
});
export type GatewayReport = z.output<typeof GatewayReport>;
