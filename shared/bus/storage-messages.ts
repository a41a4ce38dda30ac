/** What rooms and tenants store. The document services measure it; gateways refuse edits where a limit is reached. Rare, so JSON. */

import { z } from "zod";

import { parseRoomKey, parseTenantId, type RoomKey, type TenantId } from "../ids.ts";
import { parseDay, type UsageDay } from "../time/usage-day.ts";

const room = z
  .string()
  .refine((text) => parseRoomKey(text) !== undefined)
  .transform((text) => text as RoomKey);
const tenant = z
  .string()
  .refine((text) => parseTenantId(text) !== undefined)
  .transform((text) => text as TenantId);
const day = z
  .string()
  .refine((text) => parseDay(text) !== undefined)
  .transform((text) => text as UsageDay);
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

/** Fields of a day of usage in Redis: tenants, and the last batch of each gateway. About 100 bytes each. */
export const USAGE_FIELDS_MAX = 20_000;
/** Tenants in one message, and so in one call of Redis, which must not block it for longer than a few milliseconds. */
export const PEAK_TENANTS_MAX = 500;

/**
 * document service -> one gateway with Redis: the highest bytes that tenants have stored on a day (UTC), as measured so far.
 * A day with many tenants takes several messages. Any message may be lost or repeated: a later one holds the same or more.
 */
export const StoragePeaks = z.object({ day, tenants: z.array(z.tuple([tenant, bytes])) });
export type StoragePeaks = z.output<typeof StoragePeaks>;

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
