/**
 * Who may still come in: connections of an address and a tenant, members of a room, rooms and edits of a tenant.
 * The counts are shared with the other gateways (shared-counts.ts says how exact they are).
 */

import type { Count, CountKind, CountsReport } from "../../shared/bus/counts-report.ts";
import { type Millis, type RoomKey, type TenantId, tenantOf } from "../../shared/ids.ts";
import type { ClientAddress } from "../../shared/client-address.ts";
import { Connections } from "../connections.ts";
import type { ConnectionId } from "../ports.ts";
import { type CreditKind, Credits } from "./credits.ts";
import { SharedCounts, type SharedCountsOptions } from "./shared-counts.ts";
import { TenantEdits } from "./tenant-edits.ts";

export type FaultKind = Extract<CountKind, "user-faults" | "address-faults" | "tenant-faults">;

export type TenantLimit = Extract<CountKind, "tenant" | "tenant-rooms" | "tenant-edits">;
/** What was refused since it was last asked. */
export type TenantAtLimit = { readonly tenant: TenantId; readonly limit: TenantLimit; readonly times: number };

export type QuotasOptions = SharedCountsOptions & {
  /** For how long a connection is taken past a limit: until a line that was lost is counted no more. */
  readonly creditMs: number;
};

/** When each connection is to be at another gateway. */
export type Moves = ReadonlyMap<ConnectionId, Millis>;

/** What a connection counts under. A tenant: once its token has been checked. */
type Holding = { readonly address: ClientAddress | undefined; readonly tenant: TenantId | undefined };

/** Places are free for those who move so long before: the others hear it with the next report at the latest. */
const FREE_BEFORE_MS = 1_500;
/** So much of a limit may be taken on credit. Of limits below ten nothing. */
const CREDIT_SHARE = 0.1;

export class Quotas {
  readonly #counts: SharedCounts;
  readonly #credits: Credits;
  readonly #edits: TenantEdits;
  readonly #holdings = new Connections<Holding>();
  readonly #atLimit = new Map<string, TenantAtLimit>();
  /** Undefined: this gateway stays. Those who are to be elsewhere by their time. */
  #moves: Moves | undefined;

  constructor(options: QuotasOptions) {
    this.#counts = new SharedCounts(options);
    this.#credits = new Credits(options);
    this.#edits = new TenantEdits(options.limits["tenant-edits"], (tenant) => this.#counts.elsewhere("tenant-edits", tenant));
  }

  /** Other gateways and room servers heard lately. */
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

  /** False: the tenant has as many connections as it may. */
  admitTo(tenant: TenantId, connection: ConnectionId, now: Millis): boolean {
    const holding = this.#holdings.get(connection);
    if (holding === undefined || holding.tenant !== undefined) return true; // Gone, or in already: its token was renewed.
    if (this.#counts.isFullWith("tenant", tenant, CREDIT_SHARE)) return this.#refuse(tenant, "tenant");
    this.#holdings.set(connection, { ...holding, tenant });
    this.#add("tenant", tenant, connection, now);
    return true;
  }

  #add(kind: CreditKind, key: string, connection: ConnectionId, now: Millis): void {
    if (this.#counts.isFull(kind, key)) this.#credits.give(kind, key, connection, now);
    this.#counts.add(kind, key, 1);
  }

  /** Connections taken past a limit whose time to find a place is not over. */
  get onCredit(): number {
    return this.#credits.size;
  }

  /** A connection that found no place in its time. To be asked again once it is gone, until there is none. */
  takeUnplaced(now: Millis): { readonly connection: ConnectionId; readonly limit: CreditKind } | undefined {
    if (this.#moves !== undefined) return undefined; // They are asked to move, and newcomers elsewhere are none of their doing.
    for (const limit of ["ip", "tenant"] as const) {
      for (let ended = this.#credits.takeEnded(limit, now); ended !== undefined; ended = this.#credits.takeEnded(limit, now)) {
        const { address, tenant } = this.#holdings.get(ended)!;
        if (this.#counts.isOver(limit, (limit === "ip" ? address : tenant)!)) return { connection: ended, limit };
      }
    }
    return undefined;
  }

  /** This gateway goes away, and its connections move: from its time on the line that each has here is not in its way at another. */
  handOver(moves: Moves): void {
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

  /** By those alone who are in it over this gateway. */
  isRoomFullHere(room: RoomKey): boolean {
    return this.#counts.isFullHere("room", room);
  }

  /** Its room server says that it takes nobody new for a moment. */
  isOverBudget(room: RoomKey): boolean {
    return this.#counts.isFull("full-room", room);
  }

  receiveMembers(room: RoomKey, members: number): void {
    this.#counts.set("room", room, members);
  }

  /** False: the tenant has as many open rooms as it may, and this one is not open. */
  mayOpenRoomOf(tenant: TenantId): boolean {
    return !this.#counts.isFull("tenant-rooms", tenant) || this.#refuse(tenant, "tenant-rooms");
  }

  takeEdit(room: RoomKey): boolean {
    return this.#edits.take(tenantOf(room)) || this.#refuse(tenantOf(room), "tenant-edits");
  }

  /** Forgets them. */
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
  faultsElsewhere(kind: FaultKind, key: string): number {
    return this.#counts.elsewhere(kind, key);
  }

  /** Points that stand here now. */
  receiveFaults(kind: FaultKind, key: string, points: number): void {
    this.#counts.set(kind, key, points);
  }

  receiveReport(report: CountsReport, now: Millis): void {
    this.#counts.receiveReport(report, now);
  }

  /** To be called every second: what the other gateways are to know. */
  endSecond(now: Millis): Count[] {
    this.#counts.receiveTick(now);
    for (const [tenant, asked] of this.#edits.endSecond()) this.#counts.set("tenant-edits", tenant, asked);
    return this.report(now);
  }

  /** As it stands now. */
  report(now: Millis): Count[] {
    const counts = this.#counts.report();
    if (this.#moves === undefined) return counts;
    const moving = this.#countMoving(this.#moves, now);
    return counts
      .map(({ kind, key, count }) => ({ kind, key, count: count - (moving.get(`${kind} ${key}`) ?? 0) }))
      .filter(({ count }) => count > 0);
  }

  /** How many of each address and tenant are here still, and may come to another gateway before the next report. */
  #countMoving(moves: Moves, now: Millis): ReadonlyMap<string, number> {
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
