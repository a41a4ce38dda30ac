/**
 * Events of a room for outside receivers. The stream `{env}_webhooks` holds them as JSON until they are delivered. The
 * delivery has the same content in the form of Standard Webhooks.
 */

import { z } from "zod";

/** `at`: Unix time of the event in milliseconds. */
const place = { tenant: z.string(), room: z.string(), at: z.int() };
const position = { epoch: z.int().nonnegative(), seq: z.int().nonnegative() };

/**
 * document.changed   edits were ordered; `seq` is the last of them, `edits` their minimum number
 * document.snapshot  a snapshot covers the room up to `seq`
 * room.occupied      the first participant is in the room
 * room.vacated       the last has left
 * room.deleted       the room was deleted permanently
 */
export const WebhookEvent = z.discriminatedUnion("type", [
  z.object({ type: z.literal("document.changed"), ...place, ...position, edits: z.int() }),
  z.object({ type: z.literal("document.snapshot"), ...place, ...position, bytes: z.int() }),
  z.object({ type: z.literal("room.occupied"), ...place }),
  z.object({ type: z.literal("room.vacated"), ...place }),
  z.object({ type: z.literal("room.deleted"), ...place }),
]);
export type WebhookEvent = z.output<typeof WebhookEvent>;
