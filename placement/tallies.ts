/**
 * What is known of each room server while a plan is made: how many rooms it has, how much of its budget is in use, and
 * whose rooms it keeps copies of. Counted in arrays: a decision asks for it once for each room there is.
 */

import type { ServerId } from "../shared/ids.ts";
import type { ServerState } from "./world.ts";

export type Tally = {
  readonly index: number;
  readonly state: ServerState;
  rooms: number;
  used: number;
  replicas: number;
  /** Using more of its budget it takes no room while another can, and gives some away. */
  readonly fullAt: number;
};

export class Tallies {
  /** Those that take rooms, sorted by name. */
  readonly takers: readonly Tally[];
  readonly #byServer: ReadonlyMap<ServerId, Tally>;
  readonly #count: number;
  /** How far apart two servers stand, and how many of the one's rooms the other keeps a copy of. */
  readonly #apart: Uint8Array;
  readonly #copies: Int32Array;
  readonly #apartMax: readonly number[];

  constructor(servers: readonly ServerState[], fullAt: number) {
    const tallies = [...servers]
      .sort((a, b) => (a.server < b.server ? -1 : 1))
      .map((state, index): Tally => ({ index, state, rooms: 0, used: state.used, replicas: 0, fullAt }));
    this.takers = tallies.filter(({ state }) => !state.draining);
    this.#byServer = new Map(tallies.map((tally) => [tally.state.server, tally]));
    this.#count = tallies.length;
    this.#apart = Uint8Array.from(tallies.flatMap((a) => tallies.map((b) => apartness(a.state, b.state))));
    this.#copies = new Int32Array(this.#count ** 2);
    this.#apartMax = tallies.map((tally) => this.takers.reduce((most, other) => Math.max(most, this.apart(tally, other)), 0));
  }

  /** Undefined: it is no longer heard. */
  of(server: ServerId): Tally | undefined {
    return this.#byServer.get(server);
  }

  /** 0: the same server, 1: the same host, 2: the same zone, 3: apart. */
  apart(a: Tally, b: Tally): number {
    return this.#apart[a.index * this.#count + b.index]!;
  }

  /** As far as any taker stands from it. */
  apartMax(owner: Tally): number {
    return this.#apartMax[owner.index]!;
  }

  copies(owner: Tally, by: Tally): number {
    return this.#copies[owner.index * this.#count + by.index]!;
  }

  countCopy(owner: Tally, by: Tally, change: 1 | -1): void {
    by.replicas += change;
    this.#copies[owner.index * this.#count + by.index]! += change;
  }
}

export function isFull({ used, fullAt }: Tally): boolean {
  return used > fullAt;
}

/** Whether a room of that share leaves it with something to spare. */
export function hasRoomFor({ used, fullAt }: Tally, share: number): boolean {
  return used + share <= fullAt;
}

/** The first of those that weigh least. */
export function least(tallies: readonly Tally[], weigh: (tally: Tally) => number): Tally | undefined {
  let best: Tally | undefined;
  for (const tally of tallies) if (best === undefined || weigh(tally) < weigh(best)) best = tally;
  return best;
}

export function byRooms({ rooms }: Tally): number {
  return rooms;
}

export function byRoomsDown({ rooms }: Tally): number {
  return -rooms;
}

export function byUse({ used }: Tally): number {
  return used;
}

/** Labels not given say nothing, and count as apart by server alone. */
function apartness(a: ServerState, b: ServerState): 0 | 1 | 2 | 3 {
  if (a.server === b.server) return 0;
  if (a.zone !== b.zone) return 3;
  return a.host === b.host ? 1 : 2;
}
