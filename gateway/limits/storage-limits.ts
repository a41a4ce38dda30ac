/**
 * Rooms and tenants that store as much as they may. Document services report them by partition, everything in each report;
 * the last report of a partition holds until the next one. Members of such a room may only read.
 */

import type { FullStorage } from "../../shared/bus/storage-messages.ts";
import { type RoomKey, roomOf, tenantOf, type TenantId } from "../../shared/ids.ts";
import type { Restriction } from "../sessions/identity.ts";

/** What may be different now. */
export type StorageChange = { readonly rooms: ReadonlySet<RoomKey>; readonly tenants: ReadonlySet<TenantId> };
type Reached = { readonly bytes: number; readonly max: number };
type OfPartition = { readonly max: number; readonly rooms: ReadonlyMap<RoomKey, number> };

/** A deployment has fewer partitions. */
const PARTITIONS_MAX = 4_096;

export class StorageLimits {
  readonly #partitions = new Map<number, OfPartition>();
  #tenants: ReadonlyMap<TenantId, Reached> = new Map();

  receiveReport({ partition, roomBytesMax, rooms, tenants }: FullStorage): StorageChange {
    const before = this.#partitions.get(partition)?.rooms ?? new Map<RoomKey, number>();
    const now = new Map(rooms);
    if (now.size > 0 && this.#partitions.size < PARTITIONS_MAX) this.#partitions.set(partition, { max: roomBytesMax, rooms: now });
    else this.#partitions.delete(partition);
    const tenantsBefore = this.#tenants;
    if (tenants !== undefined) this.#tenants = new Map(tenants.map(({ tenant, bytes, max }) => [tenant, { bytes, max }]));
    return { rooms: differenceOf(before, now), tenants: differenceOf(tenantsBefore, this.#tenants) };
  }

  /** Nobody may write in the room: why, and what to do. Undefined: it has space. */
  fullOn(room: RoomKey): string | undefined {
    if (this.#tenants.size === 0 && this.#partitions.size === 0) return undefined;
    const tenant = tenantOf(room);
    const ofTenant = this.#tenants.get(tenant);
    if (ofTenant !== undefined)
      return `the tenant ${tenant} stores ${ofTenant.bytes} bytes, and ${ofTenant.max} are allowed (COROOM_TENANT_BYTES_MAX): delete rooms or versions that nobody needs, or ask the operator for a higher limit`;
    for (const { max, rooms } of this.#partitions.values()) {
      const bytes = rooms.get(room);
      if (bytes !== undefined)
        return `the room ${roomOf(room)} stores ${bytes} bytes, and ${max} are allowed (COROOM_ROOM_BYTES_MAX): delete versions of its history, continue in a new room, or ask the operator for a higher limit`;
    }
    return undefined;
  }

  restrictionOn(room: RoomKey | undefined): Restriction | undefined {
    const reason = room && this.fullOn(room);
    return reason === undefined ? undefined : { level: "read-only", reason };
  }
}

function differenceOf<Key>(before: ReadonlyMap<Key, unknown>, now: ReadonlyMap<Key, unknown>): ReadonlySet<Key> {
  const keys = new Set<Key>();
  for (const key of before.keys()) if (!now.has(key)) keys.add(key);
  for (const key of now.keys()) if (!before.has(key)) keys.add(key);
  return keys;
}
