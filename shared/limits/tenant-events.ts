/**
 * Decides which events about rooms are published, because a client can cause some at will: it opens, leaves and deletes
 * thousands of rooms. Rules TEV1 and TEV2.
 */

import type { OperationsReport } from "../bus/operations-events.ts";
import { BoundedMap } from "../collections/bounded-map.ts";
import { type Millis, type RoomKey, tenantOf } from "../ids.ts";
import { TokenBucket } from "./token-bucket.ts";

/** The limit of a tenant for each kind: a hundred events at once, then ten per minute. */
const EVENTS_OF_TENANT = { burst: 100, perSecond: 10 / 60 };
/** Above it, the tenant and kind that is known longest is forgotten. */
const KNOWN_MAX = 10_000;

export class TenantEvents {
  readonly #buckets = new BoundedMap<string, TokenBucket>(KNOWN_MAX);

  mayPublish(event: OperationsReport, now: Millis): boolean {
    const room = roomOfClients(event);
    if (room === undefined) return true;
    const key = `${event.kind} ${tenantOf(room)}`;
    const bucket = this.#buckets.get(key) ?? new TokenBucket(EVENTS_OF_TENANT, now);
    this.#buckets.set(key, bucket);
    return bucket.take(now);
  }
}

/** The room of an event that clients alone can cause. Undefined: the event is about a process, or has a limit where it is made. */
function roomOfClients(event: OperationsReport): RoomKey | undefined {
  switch (event.kind) {
    case "room_claimed":
      return event.from === undefined ? event.room : undefined; // `from`: a server was lost.
    case "room_ended":
      return event.why === "released" || event.why === "deleted" ? event.room : undefined;
    case "mode_transition":
      return event.cause === "new-owner" ? undefined : event.room;
    case "yjs_id_disputed":
      return event.room;
    default:
      return undefined;
  }
}
