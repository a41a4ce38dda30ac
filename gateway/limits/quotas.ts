/**
 * Quotas: connections of an address, a user and a tenant, members of a room, rooms of a tenant, edits of a user and a
 * tenant. Counts are shared with the other gateways (shared-counts.ts explains their accuracy). Bytes that a gateway
 * writes for a room and a tenant are limited by deliveries.ts.
 */

import type { Count, CountKind, CountsReport } from "../../shared/bus/counts-report.ts";
import { type Millis, type RoomKey, type TenantId, tenantOf, type UserId } from "../../shared/ids.ts";
import type { ClientAddress } from "../../shared/limits/client-address.ts";
import { Connections } from "../connections.ts";
import type { ConnectionId } from "../ports.ts";
import { Deliveries, type DeliveryRates, type RoomMembers } from "./deliveries.ts";
import { SharedCounts, type SharedCountsOptions } from "./shared-counts.ts";
import { SharedEditRate } from "./shared-edit-rate.ts";

type FaultCountKind = Extract<CountKind, "user-faults" | "address-faults" | "tenant-faults">;

export type TenantLimit = Extract<CountKind, "tenant" | "tenant-rooms" | "tenant-edits"> | "tenant-delivery";
/** Refusals since the last call of `takeAtLimit`. */
type TenantAtLimit = { readonly tenant: TenantId; readonly limit: TenantLimit; readonly times: number };

export type QuotasOptions = SharedCountsOptions & {
  /** Time for which a connection is accepted above a limit. After this time, a lost connection is no longer counted. */
  readonly creditMs: number;
  readonly deliveries: DeliveryRates;
};

/** The time at which each connection should be at another gateway. */
export type ConnectionMoves = ReadonlyMap<ConnectionId, Millis>;

/** A connection counts for its address until its token is checked, and then for its user and tenant. */
type Holding = { readonly address: ClientAddress | undefined; readonly user: string | undefined; readonly tenant: TenantId | undefined };

/** A moving connection stops counting this long before its move, so that the other gateways receive the new count before it arrives. */
const FREE_BEFORE_MS = 1_500;
/** The share of a limit that may be used on credit. A limit below ten allows none. */
const CREDIT_SHARE = 0.1;

type EditOfUser = { readonly author: { readonly user: UserId }; readonly payload: Uint8Array };
type EditLimit = "user-edits" | "tenant-edits" | "room-delivery" | "tenant-delivery";
type UserOfTenant = { readonly tenant: TenantId; readonly user: string };

/** The key under which connections, rates and limits of one user are counted. ASCII. */
export function userKey({ tenant, user }: UserOfTenant): string {
  return `${tenant} ${encodeURIComponent(user)}`;
}

export class Quotas {
  readonly #counts: SharedCounts;
  readonly #credits: Credits;
  readonly #tenantEdits: SharedEditRate<TenantId>;
  readonly #userEdits: SharedEditRate<string>;
  readonly #deliveries: Deliveries;
  readonly #holdings = new Connections<Holding>();
  readonly #atLimit = new Map<string, TenantAtLimit>();
  /** Undefined unless the gateway is draining. */
  #moves: ConnectionMoves | undefined;

  constructor(options: QuotasOptions) {
    this.#counts = new SharedCounts(options);
    this.#credits = new Credits(options);
    this.#deliveries = new Deliveries(options.deliveries);
    this.#tenantEdits = new SharedEditRate(options.limits["tenant-edits"], (tenant) => this.#counts.elsewhere("tenant-edits", tenant));
    this.#userEdits = new SharedEditRate(options.limits["user-edits"], (user) => this.#counts.elsewhere("user-edits", user));
  }

  /** Gateways and room servers with a recent report. */
  get sources(): number {
    return this.#counts.sources;
  }

  mayConnect(address: ClientAddress | undefined): boolean {
    return address === undefined || !this.#counts.isFull("ip", address);
  }

  receiveConnection(connection: ConnectionId, address: ClientAddress | undefined): void {
    this.#holdings.set(connection, { address, user: undefined, tenant: undefined });
    if (address !== undefined) this.#counts.add("ip", address, 1);
  }

  /** The token is valid. Returns the limit of connections that does not allow the connection; undefined: it is admitted. */
  admit(identity: UserOfTenant, connection: ConnectionId, now: Millis): CreditKind | undefined {
    const holding = this.#holdings.get(connection);
    // The connection has closed, or it is already counted and has renewed its token.
    if (holding === undefined || holding.user !== undefined) return undefined;
    const { tenant } = identity;
    const user = userKey(identity);
    if (this.#counts.isFullWith("user", user, CREDIT_SHARE)) return "user";
    if (this.#counts.isFullWith("tenant", tenant, CREDIT_SHARE)) {
      this.#refuse(tenant, "tenant");
      return "tenant";
    }
    this.#holdings.set(connection, { ...holding, user, tenant });
    if (holding.address !== undefined) this.#counts.add("ip", holding.address, -1);
    this.#add("user", user, connection, now);
    this.#add("tenant", tenant, connection, now);
    return undefined;
  }

  #add(kind: CreditKind, key: string, connection: ConnectionId, now: Millis): void {
    if (this.#counts.isFull(kind, key)) this.#credits.give(kind, key, connection, now);
    this.#counts.add(kind, key, 1);
  }

  /** Connections on credit. */
  get onCredit(): number {
    return this.#credits.size;
  }

  /** Returns a connection whose credit ended without a free place. Close it, then call again until there is none. */
  takeUnplaced(now: Millis): { readonly connection: ConnectionId; readonly limit: CreditKind } | undefined {
    // The connections of a draining gateway are moving, and must not be closed because of new connections at other
    // gateways.
    if (this.#moves !== undefined) return undefined;
    for (const limit of ["user", "tenant"] as const) {
      for (let ended = this.#credits.takeEnded(limit, now); ended !== undefined; ended = this.#credits.takeEnded(limit, now)) {
        if (this.#counts.isOver(limit, this.#holdings.get(ended)![limit]!)) return { connection: ended, limit };
      }
    }
    return undefined;
  }

  /** The gateway is draining. From its time on, a connection that is still here does not block its place at another gateway. */
  handOver(moves: ConnectionMoves): void {
    this.#moves = moves;
  }

  addressOf(connection: ConnectionId): ClientAddress | undefined {
    return this.#holdings.get(connection)?.address;
  }

  receiveDisconnection(connection: ConnectionId): void {
    const { address, user, tenant } = this.#holdings.get(connection) ?? {};
    this.#holdings.delete(connection);
    if (user !== undefined) this.#remove("user", user, connection);
    else if (address !== undefined) this.#counts.add("ip", address, -1);
    if (tenant !== undefined) this.#remove("tenant", tenant, connection);
  }

  #remove(kind: CreditKind, key: string, connection: ConnectionId): void {
    this.#counts.add(kind, key, -1);
    this.#credits.receiveGone(kind, key, connection, this.#counts.over(kind, key));
  }

  isRoomFull(room: RoomKey): boolean {
    return this.#counts.isFull("room", room);
  }

  /** Whether this gateway's members alone fill the room. */
  isRoomFullHere(room: RoomKey): boolean {
    return this.#counts.isFullHere("room", room);
  }

  /** The room server temporarily accepts no new members. */
  isOverBudget(room: RoomKey): boolean {
    return this.#counts.isFull("full-room", room);
  }

  receiveMembers(room: RoomKey, members: number): void {
    this.#counts.set("room", room, members);
  }

  /** False: the tenant is at its limit of open rooms, and this room is not open. */
  mayOpenRoomOf(tenant: TenantId): boolean {
    return !this.#counts.isFull("tenant-rooms", tenant) || this.#refuse(tenant, "tenant-rooms");
  }

  /** Returns the limit that does not allow the edit; undefined: it is allowed. */
  takeEdit(room: RoomKey, { author: { user }, payload }: EditOfUser, now: Millis): EditLimit | undefined {
    const tenant = tenantOf(room);
    if (!this.#userEdits.take(userKey({ tenant, user }))) return "user-edits";
    const limit = this.#tenantEdits.take(tenant)
      ? this.#deliveries.takeEdit(room, payload.byteLength, this.#membersOf(room), now)
      : "tenant-edits";
    if (limit === "tenant-edits" || limit === "tenant-delivery") this.#refuse(tenant, limit);
    return limit;
  }

  /** Edits of other gateways are delivered to the room's members here. */
  receiveOthersEdits(room: RoomKey, bytes: number, now: Millis): void {
    this.#deliveries.receiveOthersEdits(room, bytes, this.#membersOf(room), now);
  }

  /** Payload bytes of a room's edits that this gateway holds. */
  receiveUnacked(room: RoomKey, bytes: number): void {
    this.#deliveries.receiveUnacked(room, bytes, this.#membersOf(room));
  }

  #membersOf(room: RoomKey): RoomMembers {
    const here = this.#counts.here("room", room);
    return { here, everywhere: here + this.#counts.elsewhere("room", room) };
  }

  /** Returns and clears the refusals. */
  takeAtLimit(): TenantAtLimit[] {
    const atLimit = [...this.#atLimit.values()];
    this.#atLimit.clear();
    return atLimit;
  }

  #refuse(tenant: TenantId, limit: TenantLimit): false {
    const key = `${limit} ${tenant}`;
    this.#atLimit.set(key, { tenant, limit, times: (this.#atLimit.get(key)?.times ?? 0) + 1 });
    return false;
  }

  /** Points that the other gateways count. */
  faultsElsewhere(kind: FaultCountKind, key: string): number {
    return this.#counts.elsewhere(kind, key);
  }

  /** Sets this gateway's current score. */
  receiveFaults(kind: FaultCountKind, key: string, points: number): void {
    this.#counts.set(kind, key, points);
  }

  receiveReport(report: CountsReport, now: Millis): void {
    this.#counts.receiveReport(report, now);
  }

  /** Call every second. Returns the counts for the other gateways. */
  endSecond(now: Millis): Count[] {
    this.#counts.receiveTick(now);
    this.#deliveries.forgetIdle(now);
    for (const [tenant, asked] of this.#tenantEdits.endSecond()) this.#counts.set("tenant-edits", tenant, asked);
    for (const [user, asked] of this.#userEdits.endSecond()) this.#counts.set("user-edits", user, asked);
    return this.currentReport(now);
  }

  /** The current count. */
  currentReport(now: Millis): Count[] {
    const counts = this.#counts.report();
    if (this.#moves === undefined) return counts;
    const moving = this.#countMoving(this.#moves, now);
    return counts
      .map(({ kind, key, count }) => ({ kind, key, count: count - (moving.get(`${kind} ${key}`) ?? 0) }))
      .filter(({ count }) => count > 0);
  }

  /** Counts the connections of each user and tenant that may arrive at another gateway before the next report. */
  #countMoving(moves: ConnectionMoves, now: Millis): ReadonlyMap<string, number> {
    const moving = new Map<string, number>();
    const count = (key: string): void => void moving.set(key, (moving.get(key) ?? 0) + 1);
    for (const [connection, { user, tenant }] of this.#holdings) {
      if ((moves.get(connection) ?? Infinity) > now + FREE_BEFORE_MS) continue;
      if (user !== undefined) count(`user ${user}`);
      if (tenant !== undefined) count(`tenant ${tenant}`);
    }
    return moving;
  }
}

export type CreditKind = "user" | "tenant";

type Credit = { readonly key: string; readonly until: Millis };
/** `byKey` holds the oldest connection first, and so does `given`. So credits end in this order. */
type Given = { readonly given: Map<ConnectionId, Credit>; readonly byKey: Map<string, Set<ConnectionId>> };

/**
 * Connections on credit, above the limit of their user or tenant. Such a connection may replace a lost one, which is
 * counted until it has been silent for some time. After that time, either the lost connection is gone and the new one
 * takes its place, or the new one is closed.
 */
class Credits {
  readonly #creditMs: number;
  readonly #of: Readonly<Record<CreditKind, Given>> = {
    user: { given: new Map(), byKey: new Map() },
    tenant: { given: new Map(), byKey: new Map() },
  };

  constructor({ creditMs }: { creditMs: number }) {
    this.#creditMs = creditMs;
  }

  get size(): number {
    return this.#of.user.given.size + this.#of.tenant.given.size;
  }

  /** `key` is the user or the tenant. */
  give(kind: CreditKind, key: string, connection: ConnectionId, now: Millis): void {
    const { given, byKey } = this.#of[kind];
    given.set(connection, { key, until: (now + this.#creditMs) as Millis });
    const waiting = byKey.get(key);
    if (waiting === undefined) byKey.set(key, new Set([connection]));
    else waiting.add(connection);
  }

  /**
   * A connection has closed. `over` is the number by which the count exceeds the limit. So many of the newest
   * connections on credit still wait for a place; the older ones have one now.
   */
  receiveGone(kind: CreditKind, key: string, connection: ConnectionId, over: number): void {
    this.#drop(kind, connection);
    const waiting = this.#of[kind].byKey.get(key);
    if (waiting === undefined) return;
    for (const placed of waiting) {
      if (waiting.size <= over) return;
      this.#drop(kind, placed);
    }
  }

  /** Returns each connection once, after its credit has ended. */
  takeEnded(kind: CreditKind, now: Millis): ConnectionId | undefined {
    const [oldest] = this.#of[kind].given;
    if (oldest === undefined || oldest[1].until > now) return undefined;
    this.#drop(kind, oldest[0]);
    return oldest[0];
  }

  #drop(kind: CreditKind, connection: ConnectionId): void {
    const { given, byKey } = this.#of[kind];
    const credit = given.get(connection);
    if (credit === undefined) return;
    given.delete(connection);
    const waiting = byKey.get(credit.key)!;
    waiting.delete(connection);
    if (waiting.size === 0) byKey.delete(credit.key);
  }
}
