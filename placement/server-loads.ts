/**
 * Each room server's rooms, used budget and replicas while a plan is made. Kept in arrays: a decision reads it once for
 * each room.
 */

import type { ServerId, RoomKey } from "../shared/ids.ts";
import { DEDICATED, type Pin, type ServerState } from "./plan.ts";

export type ServerUsage = {
  readonly index: number;
  readonly state: ServerState;
  rooms: number;
  used: number;
  replicas: number;
  /** Budget share above which a server accepts no room while another server can, and hands over some of its rooms. */
  readonly fullAt: number;
};

export class ServerUsages {
  /** Servers that accept rooms, sorted by name. */
  readonly takers: readonly ServerUsage[];
  readonly #byServer: ReadonlyMap<ServerId, ServerUsage>;
  readonly #count: number;
  /** The distance between two servers, and the number of rooms of the first that the second replicates. */
  readonly #apart: Uint8Array;
  readonly #replicas: Int32Array;
  readonly #apartMax: readonly number[];

  constructor(servers: readonly ServerState[], fullAt: number) {
    const usages = [...servers]
      .sort((a, b) => (a.server < b.server ? -1 : 1))
      .map((state, index): ServerUsage => ({ index, state, rooms: 0, used: state.used, replicas: 0, fullAt }));
    this.takers = usages.filter(({ state }) => !state.draining);
    this.#byServer = new Map(usages.map((usage) => [usage.state.server, usage]));
    this.#count = usages.length;
    this.#apart = Uint8Array.from(usages.flatMap((a) => usages.map((b) => apartness(a.state, b.state))));
    this.#replicas = new Int32Array(this.#count ** 2);
    this.#apartMax = usages.map((usage) => this.takers.reduce((most, other) => Math.max(most, this.apart(usage, other)), 0));
  }

  /** Undefined: the server is not live. */
  of(server: ServerId): ServerUsage | undefined {
    return this.#byServer.get(server);
  }

  /** 0: same server, 1: same host, 2: same zone, 3: different zones. */
  apart(a: ServerUsage, b: ServerUsage): number {
    return this.#apart[a.index * this.#count + b.index]!;
  }

  /** The greatest distance of any accepting server. */
  apartMax(owner: ServerUsage): number {
    return this.#apartMax[owner.index]!;
  }

  replicas(owner: ServerUsage, by: ServerUsage): number {
    return this.#replicas[owner.index * this.#count + by.index]!;
  }

  countCopy(owner: ServerUsage, by: ServerUsage, change: 1 | -1): void {
    by.replicas += change;
    this.#replicas[owner.index * this.#count + by.index]! += change;
  }
}

export function isFull({ used, fullAt }: ServerUsage): boolean {
  return used > fullAt;
}

/** Whether a room with this share still fits. */
export function hasRoomFor({ used, fullAt }: ServerUsage, share: number): boolean {
  return used + share <= fullAt;
}

/** The first of the entries with the smallest weight. */
export function minBy(usages: readonly ServerUsage[], weigh: (usage: ServerUsage) => number): ServerUsage | undefined {
  let best: ServerUsage | undefined;
  for (const usage of usages) if (best === undefined || weigh(usage) < weigh(best)) best = usage;
  return best;
}

export function byRooms({ rooms }: ServerUsage): number {
  return rooms;
}

export function byRoomsDown({ rooms }: ServerUsage): number {
  return -rooms;
}

export function byUse({ used }: ServerUsage): number {
  return used;
}

/** Servers without labels differ only by name. */
function apartness(a: ServerState, b: ServerState): 0 | 1 | 2 | 3 {
  if (a.server === b.server) return 0;
  if (a.zone !== b.zone) return 3;
  return a.host === b.host ? 1 : 2;
}

/** The servers that may have a room: those of its pool (the general pool unless the room is pinned) and of its host. */
export class ServerPreferences {
  readonly #pins: ReadonlyMap<RoomKey, Pin>;
  readonly #takers: readonly ServerUsage[];
  readonly #general: readonly ServerUsage[];

  constructor(pins: ReadonlyMap<RoomKey, Pin>, takers: readonly ServerUsage[]) {
    this.#pins = pins;
    this.#takers = takers;
    this.#general = takers.filter(({ state }) => state.pool === "");
  }

  isPinned(room: RoomKey): boolean {
    return this.#pins.has(room);
  }

  describe(room: RoomKey): string {
    const { pool, host } = this.#pins.get(room) ?? {};
    return (
      [pool === undefined ? "" : `the pool ${pool}`, host === undefined ? "" : `the host ${host}`]
        .filter((part) => part !== "")
        .join(" and ") || "the general pool"
    );
  }

  mayTake(room: RoomKey, { pool, host }: ServerState): boolean {
    const pin = this.#pins.get(room);
    return pool === (pin?.pool ?? "") && (pin?.host === undefined || pin.host === host);
  }

  mayStay(room: RoomKey, server: ServerState): boolean {
    if (this.mayTake(room, server)) return true;
    const pin = this.#pins.get(room);
    // The room was too hot on another server, or there is no other server.
    if (pin === undefined) return server.pool === DEDICATED || this.#general.length === 0;
    return !this.#takers.some(({ state }) => this.mayTake(room, state));
  }

  /**
   * The allowed, non-full server with the fewest rooms. A pin that no server can satisfy is ignored, so that the room
   * stays up.
   */
  leastFor(room: RoomKey): ServerUsage | undefined {
    const allowed = this.isPinned(room) ? this.#takers.filter(({ state }) => this.mayTake(room, state)) : this.#general;
    const candidates = allowed.length > 0 ? allowed : this.#takers;
    return (
      minBy(
        candidates.filter((usage) => !isFull(usage)),
        byRooms,
      ) ?? minBy(candidates, byRooms)
    );
  }
}
