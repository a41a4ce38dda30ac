/**
 * Quotas: connections of an address and a tenant, members of a room, rooms and edits of a tenant. Counts are shared
 * with the other gateways (shared-counts.ts explains their accuracy).
 */

import type { Count, CountKind, CountsReport } from "../../shared/bus/counts-report.ts";
import { type Millis, type RoomKey, type TenantId, tenantOf } from "../../shared/ids.ts";
import type { ClientAddress } from "../../shared/limits/client-address.ts";
import { Connections } from "../connections.ts";
import type { ConnectionId } from "../ports.ts";
import { SharedCounts, type SharedCountsOptions } from "./shared-counts.ts";
export type FaultCountKind = Extract<CountKind, "user-faults" | "address-faults" | "tenant-faults">;

export type TenantLimit = Extract<CountKind, "tenant" | "tenant-rooms" | "tenant-edits">;
/** Refusals since the last call of `takeAtLimit`. */
export type TenantAtLimit = { readonly tenant: TenantId; readonly limit: TenantLimit; readonly times: number };

export type QuotasOptions = SharedCountsOptions & {
  /** Time for which a connection is accepted above a limit. After this time, a lost connection is no longer counted. */
  readonly creditMs: number;
};

/** The time at which each connection should be at another gateway. */
export type ConnectionMoves = ReadonlyMap<ConnectionId, Millis>;

/** The address and the tenant that a connection is counted for. The tenant is known after its token is checked. */
type Holding = { readonly address: ClientAddress | undefined; readonly tenant: TenantId | undefined };

/** A moving connection stops counting this long before its move, so that the other gateways receive the new count before it arrives. */
const FREE_BEFORE_MS = 1_500;
/** The share of a limit that may be used on credit. A limit below ten allows none. */
const CREDIT_SHARE = 0.1;

export class Quotas {
  readonly #counts: SharedCounts;
  readonly #credits: Credits;
  readonly #edits: TenantEdits;
  readonly #holdings = new Connections<Holding>();
  readonly #atLimit = new Map<string, TenantAtLimit>();
  /** Undefined unless the gateway is draining. */
  #moves: ConnectionMoves | undefined;

  constructor(options: QuotasOptions) {
    this.#counts = new SharedCounts(options);
    this.#credits = new Credits(options);
    this.#edits = new TenantEdits(options.limits["tenant-edits"], (tenant) => this.#counts.elsewhere("tenant-edits", tenant));
  }

  /** Gateways and room servers with a recent report. */
  get sources(): number {
    return this.#counts.sources;
  }

  mayConnect(address: ClientAddress | undefined): boolean {
    return address === undefined || !this.#counts.isFullWith("ip", address, CREDIT_SHARE);
  }

  receiveConnection(connection: ConnectionId, address: ClientAddress | undefined, now: Millis): void {
    this.#holdings.set(connection, { address, tenant: undefined });
    if (address !== undefined) this.#add("ip", address, connection, now);
  }

  /** False: the tenant is at its limit of connections. */
  admitTo(tenant: TenantId, connection: ConnectionId, now: Millis): boolean {
    const holding = this.#holdings.get(connection);
    // The connection has closed, or it is already counted and has renewed its token.
    if (holding === undefined || holding.tenant !== undefined) return true;
    if (this.#counts.isFullWith("tenant", tenant, CREDIT_SHARE)) return this.#refuse(tenant, "tenant");
    this.#holdings.set(connection, { ...holding, tenant });
    this.#add("tenant", tenant, connection, now);
    return true;
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
    for (const limit of ["ip", "tenant"] as const) {
      for (let ended = this.#credits.takeEnded(limit, now); ended !== undefined; ended = this.#credits.takeEnded(limit, now)) {
        const { address, tenant } = this.#holdings.get(ended)!;
        if (this.#counts.isOver(limit, (limit === "ip" ? address : tenant)!)) return { connection: ended, limit };
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
    const { address, tenant } = this.#holdings.get(connection) ?? {};
    this.#holdings.delete(connection);
    if (address !== undefined) this.#remove("ip", address, connection);
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

  takeEdit(room: RoomKey): boolean {
    return this.#edits.take(tenantOf(room)) || this.#refuse(tenantOf(room), "tenant-edits");
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
    for (const [tenant, asked] of this.#edits.endSecond()) this.#counts.set("tenant-edits", tenant, asked);
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

  /** Counts the connections of each address and tenant that may arrive at another gateway before the next report. */
  #countMoving(moves: ConnectionMoves, now: Millis): ReadonlyMap<string, number> {
    const moving = new Map<string, number>();
    const count = (key: string): void => void moving.set(key, (moving.get(key) ?? 0) + 1);
    for (const [connection, { address, tenant }] of this.#holdings) {
      if ((moves.get(connection) ?? Infinity) > now + FREE_BEFORE_MS) continue;
      if (address !== undefined) count(`ip ${address}`);
      if (tenant !== undefined) count(`tenant ${tenant}`);
    }
    return moving;
  }
}

/**
 * Connections on credit, above the limit of their address or tenant. Such a connection may replace a lost one, which is
 * counted until it has been silent for some time. After that time, either the lost connection is gone and the new one
 * takes its place, or the new one is closed.
 */
export type CreditKind = "ip" | "tenant";

type Credit = { readonly key: string; readonly until: Millis };
/** `byKey` holds the oldest connection first, and so does `given`. So credits end in this order. */
type Given = { readonly given: Map<ConnectionId, Credit>; readonly byKey: Map<string, Set<ConnectionId>> };

class Credits {
  readonly #creditMs: number;
  readonly #of: Readonly<Record<CreditKind, Given>> = {
    ip: { given: new Map(), byKey: new Map() },
    tenant: { given: new Map(), byKey: new Map() },
  };

  constructor({ creditMs }: { creditMs: number }) {
    this.#creditMs = creditMs;
  }

  get size(): number {
    return this.#of.ip.given.size + this.#of.tenant.given.size;
  }

  /** `key` is the address or the tenant. */
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

/**
 * Edits per second of a tenant at this gateway: the part of the limit that the other gateways do not use. If all
 * gateways together request more than the limit, each gets its proportional share.
 */
type Second = { asked: number; left: number };

export class TenantEdits {
  readonly #perSecondMax: number;
  readonly #elsewhere: (tenant: TenantId) => number;
  readonly #seconds = new Map<TenantId, Second>();

  /** `elsewhere`: edits that the tenant requested at the other gateways in their last second. */
  constructor(perSecondMax: number, elsewhere: (tenant: TenantId) => number) {
    this.#perSecondMax = perSecondMax;
    this.#elsewhere = elsewhere;
  }

  take(tenant: TenantId): boolean {
    const second = this.#seconds.get(tenant) ?? this.#begin(tenant, 0);
    second.asked += 1;
    if (second.left < 1) return false;
    second.left -= 1;
    return true;
  }

  /** Ends a second and returns the edits that each tenant requested in it. A quiet tenant is reported once as 0, then forgotten. */
  endSecond(): [TenantId, number][] {
    return [...this.#seconds].map(([tenant, { asked }]) => {
      if (asked === 0) this.#seconds.delete(tenant);
      else this.#begin(tenant, asked);
      return [tenant, asked];
    });
  }

  #begin(tenant: TenantId, asked: number): Second {
    const elsewhere = this.#elsewhere(tenant);
    const fair = asked === 0 ? 0 : (this.#perSecondMax * asked) / (asked + elsewhere);
    const second = { asked: 0, left: Math.max(this.#perSecondMax - elsewhere, fair) };
    this.#seconds.set(tenant, second);
    return second;
  }
}
