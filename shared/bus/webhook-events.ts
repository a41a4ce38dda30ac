/**
 * Events of a room for outside receivers. Queued in the stream `{env}_webhooks` until delivered, so JSON; the delivery
 * has the same content in the form of Standard Webhooks.
 */

import { z } from "zod";

const position = { epoch: z.int().nonnegative(), seq: z.int().nonnegative() };

/**
 * document.changed   edits were ordered; `seq` is the last of them, `edits` how many at least
 * document.snapshot  a snapshot covers the room up to `seq`
 * room.occupied      the first participant is in the room
 * room.vacated       the last has left
 * room.deleted       the room was deleted permanently
 */
export const WebhookEvent = z.discriminatedUnion("type", [
  z.object({ type: z.literal("document.changed"), tenant: z.string(), room: z.string(), at: z.int(), ...position, edits: z.int() }),
  z.object({ type: z.literal("document.snapshot"), tenant: z.string(), room: z.string(), at: z.int(), ...position, bytes: z.int() }),
  z.object({ type: z.literal("room.occupied"), tenant: z.string(), room: z.string(), at: z.int() }),
  z.object({ type: z.literal("room.vacated"), tenant: z.string(), room: z.string(), at: z.int() }),
  z.object({ type: z.literal("room.deleted"), tenant: z.string(), room: z.string(), at: z.int() }),
]);
export type WebhookEvent = z.output<typeof WebhookEvent>;
