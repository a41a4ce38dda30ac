/** What rooms and tenants store. The document services measure it; gateways refuse edits where a limit is reached. Rare, so JSON. */

import { z } from "zod";

import { parseRoomKey, parseTenantId, type RoomKey, type TenantId } from "../ids.ts";

const room = z
  .string()
  .refine((text) => parseRoomKey(text) !== undefined)
  .transform((text) => text as RoomKey);
const tenant = z
  .string()
  .refine((text) => parseTenantId(text) !== undefined)
  .transform((text) => text as TenantId);
const bytes = z.number().nonnegative();

/** document service -> document services: the bytes of each tenant in a partition. */
export const TenantCounts = z.object({ partition: z.int().nonnegative(), tenants: z.array(z.tuple([tenant, bytes])) });
export type TenantCounts = z.output<typeof TenantCounts>;

/**
 * document service -> gateways and document services: what has reached its limit; everything in each message. `tenants`: absent
 * if the sender does not know them, so that the last ones hold.
 */
export const FullStorage = z.object({
  partition: z.int().nonnegative(),
  roomBytesMax: bytes,
  rooms: z.array(z.tuple([room, bytes])),
  tenants: z.array(z.object({ tenant, bytes, max: bytes })).optional(),
});
export type FullStorage = z.output<typeof FullStorage>;

/** operator -> document services: what a room stores. Only the service that reads the room's partition answers. */
export const StorageQuestion = z.object({ room });
export const StorageAnswer = z.object({
  snapshots: bytes,
  history: bytes,
  log: bytes,
  roomBytesMax: bytes,
  tenantBytes: bytes,
  tenantBytesMax: bytes,
});
export type StorageAnswer = z.output<typeof StorageAnswer>;
