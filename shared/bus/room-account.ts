/** What the people who run Coroom may ask of a room's owner: how its presence stands. Asked from a terminal or a console, so JSON. */

import { z } from "zod";

import { ROOM_MODES, type RoomMode } from "../wire/frames.ts";

/** The room's key. Only its owner replies; nobody does for a room that nobody owns. */
export const RoomQuestion = z.object({ room: z.string() });
export type RoomQuestion = z.output<typeof RoomQuestion>;

/** Counts are since this server owns the room: who asks twice knows the rates. `gateways`: each one's members of the room. */
export const RoomAccount = z.object({
  server: z.string(),
  epoch: z.int(),
  mode: z.enum(Object.keys(ROOM_MODES) as [RoomMode, ...RoomMode[]]),
  shed: z.int(),
  participants: z.int(),
  presencePerSecond: z.int(),
  presenceBytes: z.int(),
  gateways: z.record(z.string(), z.int()),
  statesReceived: z.int(),
  newsTold: z.int(),
  newsBytesTold: z.int(),
});
export type RoomAccount = z.output<typeof RoomAccount>;
