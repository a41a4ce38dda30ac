/** Which rooms of a tenant are busiest. Rooms with equal points share a rank, and stand by their names. */

import type { Clock } from "../shared/clock.ts";
import { type RoomKey, tenantOf, type TenantId } from "../shared/ids.ts";
import type { Progress, RankedRoom, TenantBoards } from "./ports.ts";
import type { Page, Refusal } from "./reads-host.ts";
import { type Window, windowNamed } from "./windows.ts";

export type TenantReadsPorts = { readonly tenants: TenantBoards; readonly progress: Pick<Progress, "read"> };
export type TenantReadsOptions = { readonly logPartitions: number; readonly boardBehindMsMax: number };

export type AboutRooms = { readonly window: { readonly id: string; readonly kind: string; readonly start: number; readonly end: number | null }; readonly isBehind: boolean; readonly rooms: number };
export type RoomsAnswer = { readonly kind: "rooms"; readonly about: AboutRooms; readonly ranking: readonly RankedRoom[]; readonly nextOffset: number | undefined };
export type RoomAnswer = { readonly kind: "room"; readonly about: AboutRooms; readonly own: RankedRoom };

export class TenantReader {
  readonly #ports: TenantReadsPorts;
  readonly #options: TenantReadsOptions;
  readonly #clock: Clock;

  constructor(ports: TenantReadsPorts, options: TenantReadsOptions, clock: Clock) {
    this.#ports = ports;
    this.#options = options;
    this.#clock = clock;
  }

  async page(tenant: TenantId, windowName: string, { offset, limit }: Page): Promise<RoomsAnswer | Refusal> {
    const window = this.#window(windowName);
    if (window === undefined) return { kind: "unknown-window" };
    const [{ rooms, ranking }, isBehind] = await Promise.all([this.#ports.tenants.page(tenant, window, { offset, limit }), this.#isBehind()]);
    if (rooms === 0 && window.end <= this.#clock.wallNow()) return { kind: "unknown-window" };
    const end = offset + ranking.length;
    return { kind: "rooms", about: aboutOf(window, rooms, isBehind), ranking, nextOffset: end < rooms && ranking.length > 0 ? end : undefined };
  }

  async room(room: RoomKey, windowName: string): Promise<RoomAnswer | Refusal> {
    const window = this.#window(windowName);
    if (window === undefined) return { kind: "unknown-window" };
    const [own, { rooms }, isBehind] = await Promise.all([this.#ports.tenants.rankOf(room, window), this.#ports.tenants.page(tenantOf(room), window, { offset: 0, limit: 1 }), this.#isBehind()]);
    return own === undefined ? { kind: "not-ranked" } : { kind: "room", about: aboutOf(window, rooms, isBehind), own };
  }

  #window(name: string): Window | undefined {
    const now = this.#clock.wallNow();
    const window = windowNamed(name, now);
    return window === undefined || window.start > now ? undefined : window;
  }

  /** A tenant's rooms lie in all parts of the log. */
  async #isBehind(): Promise<boolean> {
    const words = await Promise.all(Array.from({ length: this.#options.logPartitions }, (_, partition) => this.#ports.progress.read(partition)));
    return words.some((word) => word === undefined || word.isRebuilding || this.#clock.wallNow() - word.through > this.#options.boardBehindMsMax);
  }
}

function aboutOf({ id, kind, start, end }: Window, rooms: number, isBehind: boolean): AboutRooms {
  return { window: { id, kind, start, end: Number.isFinite(end) ? end : null }, isBehind, rooms };
}
