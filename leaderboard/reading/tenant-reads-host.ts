/** Which rooms of a tenant are busiest. Rooms with equal points share a rank, and stand by their names. */

import type { Clock } from "../../shared/clock.ts";
import { type RoomKey, roomOf, tenantOf, type TenantId } from "../../shared/ids.ts";
import type { Progress, RankedRoom, TenantArchive, TenantBoards, TenantPage } from "../ports.ts";
import type { Page, Refusal } from "./reads-host.ts";
import { type Window, windowNamed } from "../boards/windows.ts";

export type TenantReadsPorts = {
  readonly tenants: TenantBoards;
  readonly tenantArchive: TenantArchive;
  readonly progress: Pick<Progress, "read">;
};
export type TenantReadsOptions = { readonly logPartitions: number; readonly boardBehindMsMax: number };

export type AboutRooms = {
  readonly window: { readonly id: string; readonly kind: string; readonly start: number; readonly end: number | null };
  readonly isArchived: boolean;
  readonly isBehind: boolean;
  readonly rooms: number;
  readonly people: number;
};
export type RoomsAnswer = {
  readonly kind: "rooms";
  readonly about: AboutRooms;
  readonly ranking: readonly RankedRoom[];
  readonly nextOffset: number | undefined;
};
export type RoomAnswer = { readonly kind: "room"; readonly about: AboutRooms; readonly own: RankedRoom };

type Found = TenantPage & { readonly isArchived: boolean };

export class TenantReader {
  readonly #ports: TenantReadsPorts;
  readonly #options: TenantReadsOptions;
  readonly #clock: Clock;

  constructor(ports: TenantReadsPorts, options: TenantReadsOptions, clock: Clock) {
    this.#ports = ports;
    this.#options = options;
    this.#clock = clock;
  }

  async page(tenant: TenantId, windowName: string, page: Page): Promise<RoomsAnswer | Refusal> {
    const window = this.#window(windowName);
    if (window === undefined) return { kind: "unknown-window" };
    const [found, isBehind] = await Promise.all([this.#read(tenant, window, page), this.#isBehind()]);
    if (found === undefined) return { kind: "unknown-window" };
    const reach = found.isArchived ? found.ranking.length : found.rooms;
    if (page.offset >= reach && reach < found.rooms) return { kind: "too-deep" };
    const ranking = found.isArchived ? found.ranking.slice(page.offset, page.offset + page.limit) : found.ranking;
    const end = page.offset + ranking.length;
    return {
      kind: "rooms",
      about: aboutOf(window, found, isBehind),
      ranking,
      nextOffset: end < reach && ranking.length > 0 ? end : undefined,
    };
  }

  async room(room: RoomKey, windowName: string): Promise<RoomAnswer | Refusal> {
    const window = this.#window(windowName);
    if (window === undefined) return { kind: "unknown-window" };
    const [found, isBehind] = await Promise.all([this.#read(tenantOf(room), window, { offset: 0, limit: 1 }), this.#isBehind()]);
    const own =
      found?.isArchived === true
        ? found.ranking.find((ranked) => ranked.room === roomOf(room))
        : await this.#ports.tenants.rankOf(room, window);
    if (found !== undefined && own !== undefined) return { kind: "room", about: aboutOf(window, found, isBehind), own };
    return { kind: found?.isArchived === true && found.ranking.length < found.rooms ? "beyond-archive" : "not-ranked" };
  }

  /** From the archive, whole, once Redis has it no more. */
  async #read(tenant: TenantId, window: Window, page: Page): Promise<Found | undefined> {
    const found = await this.#ports.tenants.page(tenant, window, page);
    if (found.rooms > 0 || window.end > this.#clock.wallNow()) return { ...found, isArchived: false };
    const archived = await this.#ports.tenantArchive.read(tenant, window);
    return archived && { ...archived, isArchived: true };
  }

  #window(name: string): Window | undefined {
    const now = this.#clock.wallNow();
    const window = windowNamed(name, now);
    return window === undefined || window.start > now ? undefined : window;
  }

  /** A tenant's rooms lie in all parts of the log. */
  async #isBehind(): Promise<boolean> {
    const words = await Promise.all(
      Array.from({ length: this.#options.logPartitions }, (_, partition) => this.#ports.progress.read(partition)),
    );
    return words.some(
      (word) => word === undefined || word.isRebuilding || this.#clock.wallNow() - word.through > this.#options.boardBehindMsMax,
    );
  }
}

function aboutOf({ id, kind, start, end }: Window, { rooms, people, isArchived }: Found, isBehind: boolean): AboutRooms {
  return { window: { id, kind, start, end: Number.isFinite(end) ? end : null }, isArchived, isBehind, rooms, people };
}
