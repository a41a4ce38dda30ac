/**
 * Decides which edits that are left out of documents become an event, because a hostile writer may send them all the time
 * and in many rooms. Edits without an event are in the metric, and in the log of the process if it has few such lines. Rules LOE1 and LOE2.
 */

import { BoundedMap } from "../../shared/collections/bounded-map.ts";
import { type Millis, type RoomKey, type TenantId, tenantOf } from "../../shared/ids.ts";
import { TokenBucket } from "../../shared/limits/token-bucket.ts";

/** Interval between two events about a room. */
const AGAIN_MS = 60_000;
/** The limit of a tenant: ten events per minute. */
const EVENTS_OF_TENANT = { burst: 10, perSecond: 10 / 60 };
/** Above it, the room or tenant without such edits for the longest time is forgotten. */
const KNOWN_MAX = 10_000;

export class LeftOutEdits {
  /** `count`: edits since the room's last event. */
  readonly #rooms = new BoundedMap<RoomKey, { readonly count: number; readonly reportedAt: Millis | undefined }>(KNOWN_MAX);
  readonly #tenants = new BoundedMap<TenantId, TokenBucket>(KNOWN_MAX);

  /** Returns the number of edits that the event names, all since the room's last event. Undefined: no event now. */
  receive(room: RoomKey, edits: number, now: Millis): number | undefined {
    const { count: before, reportedAt } = this.#rooms.get(room) ?? { count: 0, reportedAt: undefined };
    const count = before + edits;
    const isDue = reportedAt === undefined || now - reportedAt >= AGAIN_MS;
    const isReported = isDue && this.#bucketOf(tenantOf(room), now).take(now);
    this.#rooms.set(room, isReported ? { count: 0, reportedAt: now } : { count, reportedAt });
    return isReported ? count : undefined;
  }

  #bucketOf(tenant: TenantId, now: Millis): TokenBucket {
    const bucket = this.#tenants.get(tenant) ?? new TokenBucket(EVENTS_OF_TENANT, now);
    this.#tenants.set(tenant, bucket);
    return bucket;
  }
}
