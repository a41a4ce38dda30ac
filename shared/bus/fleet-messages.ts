/** What a gateway asks of all room servers and gateways for the operations console. Asked while somebody looks, so JSON. */

import { z } from "zod";

import { parseRoomKey, type RoomKey } from "../ids.ts";
import { ROOM_MODES, type RoomMode } from "../wire/frames.ts";

const room = z.string().transform((text, context) => {
  const key = parseRoomKey(text);
  if (key === undefined) context.addIssue("not a room key");
  return key as RoomKey;
});

/** Rooms on one page of a list. One more is asked for, to know whether there is a next. */
export const LISTED_ROOMS_MAX = 100;

/** Where a list goes on: behind this room, which had so many participants. */
export const RoomCursor = z.object({ participants: z.int().nonnegative(), room });
export type RoomCursor = z.output<typeof RoomCursor>;

/** `tenant`, `search`: of these only; `search` is part of the room's name, whatever its case. */
export const RoomListQuestion = z.object({
  tenant: z.string().optional(),
  search: z.string().max(128),
  after: RoomCursor.optional(),
  limit: z
    .int()
    .positive()
    .max(LISTED_ROOMS_MAX + 1),
});
export type RoomListQuestion = z.output<typeof RoomListQuestion>;

/** `heldBack`: how far the room's owner holds it back, 0 for not at all. */
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

/** Of one server: the first behind the cursor, and how many there are in all that fit the question. */
export const RoomListAnswer = z.object({ rooms: z.array(ListedRoom), matching: z.int() });
export type RoomListAnswer = z.output<typeof RoomListAnswer>;

/** The order of every list: most participants first, then by name. Negative: `a` comes first. */
export function compareListed(a: RoomCursor, b: RoomCursor): number {
  if (a.participants !== b.participants) return b.participants - a.participants;
  if (a.room === b.room) return 0;
  return a.room < b.room ? -1 : 1;
}

/** "How are you?", to all gateways. `drain`: the one of this name is to drain first. */
export const GatewayQuestion = z.object({ drain: z.string().optional() });
export type GatewayQuestion = z.output<typeof GatewayQuestion>;

/** `state`: as its /readyz says. `reachesRedis`: absent where it is given none. */
export const GatewayAccount = z.object({
  gateway: z.string(),
  connections: z.int(),
  rooms: z.int(),
  shedLevel: z.int(),
  state: z.enum(["ready", "draining", "degraded", "misconfigured", "slow"]),
  reachesRedis: z.boolean().optional(),
});
export type GatewayAccount = z.output<typeof GatewayAccount>;
