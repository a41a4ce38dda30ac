/**
 * Decides whether an edit is refused because its room or tenant already makes the gateways write too much. A gateway
 * writes an edit once for each member, so an edit costs its payload bytes times members. For example, an edit of 512 KiB
 * in a room of 200 costs 100 MiB. A room and a tenant have a burst and a rate. A gateway that is slower than the rate is
 * protected by a second bound: edits that wait for their delivery never cost more than the burst.
 *
 * The invariant: an edit of another gateway costs as much as an own one. It is charged when it is delivered, so that
 * writers at several gateways share the limit of their room. Rules RDL1 to RDL9, ADR 83.
 */

import { type Millis, type RoomKey, type TenantId, tenantOf } from "../../shared/ids.ts";
import { type Rate, TokenBucket } from "../../shared/limits/token-bucket.ts";

/** Payload bytes times members. */
export type DeliveryRates = { readonly room: Rate; readonly tenant: Rate };

/** `everywhere`: on all gateways. */
export type RoomMembers = { readonly here: number; readonly everywhere: number };

/**
 * The part of the burst that is enough for an edit of any cost. With a larger part, a large edit would wait as long as
 * others in its room write. With a smaller one, large edits would leave nothing for small ones.
 */
const ENOUGH = 1 / 2;

export class Deliveries {
  readonly #rooms: Shares<RoomKey>;
  readonly #tenants: Shares<TenantId>;

  constructor({ room, tenant }: DeliveryRates) {
    this.#rooms = new Shares(room);
    this.#tenants = new Shares(tenant);
  }

  /** For an edit of this gateway. Returns the limit that does not allow the edit; undefined: it is allowed, and charged. */
  takeEdit(room: RoomKey, bytes: number, { everywhere }: RoomMembers, now: Millis): "room-delivery" | "tenant-delivery" | undefined {
    const cost = bytes * everywhere;
    const tenant = tenantOf(room);
    if (!this.#rooms.has(room, cost, now)) return "room-delivery";
    if (!this.#tenants.has(tenant, cost, now)) return "tenant-delivery";
    this.#rooms.spend(room, cost, now);
    this.#tenants.spend(tenant, cost, now);
    return undefined;
  }

  /**
   * For edits of other gateways. The tenant is charged for the members of this gateway only, because its members on
   * further gateways should make its limit higher, and not lower.
   */
  receiveOthersEdits(room: RoomKey, bytes: number, { here, everywhere }: RoomMembers, now: Millis): void {
    this.#rooms.spend(room, bytes * everywhere, now);
    this.#tenants.spend(tenantOf(room), bytes * here, now);
  }

  /** `bytes`: of all edits of the room that this gateway has accepted and not delivered yet. */
  receiveUnacked(room: RoomKey, bytes: number, { everywhere }: RoomMembers): void {
    const more = bytes * everywhere - this.#rooms.waitingOf(room);
    this.#rooms.addWaiting(room, more);
    this.#tenants.addWaiting(tenantOf(room), more);
  }

  /** Rooms and tenants with less than their burst. */
  get size(): number {
    return this.#rooms.size + this.#tenants.size;
  }

  /** Call about every second. */
  forgetIdle(now: Millis): void {
    this.#rooms.forgetFull(now);
    this.#tenants.forgetFull(now);
  }
}

/** A key with a full bucket has none: a full bucket equals a new one. */
class Shares<Key extends string> {
  readonly #rate: Rate;
  readonly #buckets = new Map<Key, TokenBucket>();
  /** Cost of the edits that are not delivered yet. */
  readonly #waiting = new Map<Key, number>();

  constructor(rate: Rate) {
    this.#rate = rate;
  }

  get size(): number {
    return this.#buckets.size;
  }

  has(key: Key, cost: number, now: Millis): boolean {
    const { burst } = this.#rate;
    const needed = Math.min(cost, burst * ENOUGH);
    return this.waitingOf(key) + needed <= burst && this.#buckets.get(key)?.take(now, 0, needed) !== false;
  }

  spend(key: Key, cost: number, now: Millis): void {
    if (cost <= 0) return;
    let bucket = this.#buckets.get(key);
    if (bucket === undefined) this.#buckets.set(key, (bucket = new TokenBucket(this.#rate, now)));
    bucket.spend(now, cost);
  }

  waitingOf(key: Key): number {
    return this.#waiting.get(key) ?? 0;
  }

  addWaiting(key: Key, cost: number): void {
    const waiting = this.waitingOf(key) + cost;
    if (waiting > 0) this.#waiting.set(key, waiting);
    else this.#waiting.delete(key);
  }

  forgetFull(now: Millis): void {
    for (const [key, bucket] of this.#buckets) if (bucket.isFull(now)) this.#buckets.delete(key);
  }
}
