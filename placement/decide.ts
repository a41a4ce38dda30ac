/**
 * Decides what should change: from what is, and what was planned before, to a plan. Deterministic, and idle where
 * nothing is wrong: a room stays where it is unless its server is gone, it may not be there, it is too hot for its
 * neighbours, or its server has far more rooms than others. Rules DEC1 to DEC11.
 */

import type { RoomKey, ServerId } from "../shared/ids.ts";
import type { Action, Placements, Plan, Step } from "./plan.ts";

/** A room server that is heard. `pool`: empty for the general one. `used`: the share of its budget that is in use. */
export type ServerState = { readonly server: ServerId; readonly host: string; readonly zone: string; readonly pool: string; readonly draining: boolean; readonly used: number };
/** As the rooms bucket has it. */
export type RoomState = { readonly owner: ServerId };
/** Where an operator wants a room: on servers of a pool, or on a host. */
export type Pin = { readonly pool?: string | undefined; readonly host?: string | undefined };

export type World = {
  readonly servers: readonly ServerState[];
  readonly rooms: ReadonlyMap<RoomKey, RoomState>;
  readonly pins: ReadonlyMap<RoomKey, Pin>;
  /** Rooms that take a large share of their server's budget. */
  readonly shares: ReadonlyMap<RoomKey, number>;
};

export type DecideOptions = {
  readonly hotShare: number;
  /** How far from the mean of its pool a server's rooms may be, as a share of it. */
  readonly imbalance: number;
  readonly movesMax: number;
  readonly followsMax: number;
  readonly keepsReplicas: boolean;
};

/** Servers of this pool take rooms that are too hot for others. */
export const DEDICATED = "dedicated";

/** Hashing spreads rooms by chance: so many standard deviations of it are no imbalance. */
const CHANCE = 3;
/** A move must make so much of a difference, or rooms would go to and fro. */
const MARGIN = 0.1;

type Tally = { readonly state: ServerState; rooms: number; used: number; replicas: number; readonly followedBy: Map<ServerId, number> };

export function decide(world: World, previous: Placements, options: DecideOptions): Plan {
  const decision = new Decision(world, previous, options);
  decision.placeRooms();
  decision.coolDown();
  decision.balance();
  return { generation: previous.generation + 1, steps: [...decision.steps(), ...decision.placeReplicas()] };
}

class Decision {
  readonly #world: World;
  readonly #previous: Placements;
  readonly #options: DecideOptions;
  readonly #tallies = new Map<ServerId, Tally>();
  readonly #takers: readonly Tally[];
  readonly #apartMaxOf = new Map<ServerId, number>();
  readonly #moves = new Map<RoomKey, Step>();

  constructor(world: World, previous: Placements, options: DecideOptions) {
    this.#world = world;
    this.#previous = previous;
    this.#options = options;
    const servers = [...world.servers].sort((a, b) => (a.server < b.server ? -1 : 1));
    for (const state of servers) this.#tallies.set(state.server, { state, rooms: 0, used: state.used, replicas: 0, followedBy: new Map() });
    this.#takers = [...this.#tallies.values()].filter(({ state }) => !state.draining);
    for (const [room, { owner }] of world.rooms) {
      const tally = this.#tallies.get(owner);
      if (tally !== undefined) tally.rooms += 1;
      const replica = previous.rooms.get(room)?.replica;
      if (replica !== undefined) this.#countReplica(owner, replica, 1);
    }
  }

  steps(): Iterable<Step> {
    return this.#moves.values();
  }

  /** Rooms whose owner is gone, and rooms that are where they may not be. */
  placeRooms(): void {
    for (const [room, { owner }] of this.#world.rooms) {
      const server = this.#tallies.get(owner)?.state;
      if (server === undefined) this.#promote(room, owner);
      else if (!server.draining && !this.#mayStay(room, server)) this.#moveToLeast(room, owner, `it is pinned to ${describePin(this.#world.pins.get(room) ?? {})}`);
    }
  }

  /** Rooms that leave their neighbours too little. */
  coolDown(): void {
    const hottestFirst = [...this.#world.shares].filter(([, share]) => share > this.#options.hotShare).sort(([a, x], [b, y]) => y - x || (a < b ? -1 : 1));
    for (const [room, share] of hottestFirst) {
      const owner = this.#world.rooms.get(room)?.owner;
      const from = owner === undefined ? undefined : this.#tallies.get(owner);
      if (from === undefined || from.state.draining || from.rooms <= 1 || from.state.pool === DEDICATED || this.#moves.has(room) || this.#world.pins.has(room)) continue;
      const to = least(this.#takers.filter(({ state }) => state.pool === DEDICATED), byUse) ?? least(this.#takers.filter(({ state }) => state.pool === from.state.pool), byUse);
      if (to === undefined || to.used + share > from.used - MARGIN) continue; // Nowhere would it have it better.
      this.#move(room, from.state.server, to, share, `it takes ${percent(share)} of its server's budget, over ${percent(this.#options.hotShare)}; ${to.state.server} has most to spare`);
    }
  }

  /** Rooms of servers that have many more than others of their pool. */
  balance(): void {
    for (const pool of new Set(this.#takers.map(({ state }) => state.pool))) {
      if (pool !== DEDICATED) this.#balancePool(this.#takers.filter(({ state }) => state.pool === pool));
    }
  }

  placeReplicas(): Step[] {
    const steps: Step[] = [];
    for (const [room, { owner }] of this.#world.rooms) {
      if (steps.length >= this.#options.followsMax) break;
      const move = this.#moves.get(room)?.action;
      const ownerToBe = move?.kind === "promote" || move?.kind === "move" ? move.to : owner;
      const before = this.#previous.rooms.get(room)?.replica;
      const kept = before === ownerToBe ? undefined : before;
      const step = this.#placeReplica(room, ownerToBe, kept);
      if (step !== undefined) steps.push(step);
    }
    return steps;
  }

  #promote(room: RoomKey, from: ServerId): void {
    const replica = this.#previous.rooms.get(room)?.replica;
    const warm = replica === undefined ? undefined : this.#takers.find(({ state }) => state.server === replica);
    const to = warm !== undefined && this.#mayTake(room, warm.state) ? warm : this.#leastFor(room);
    if (to === undefined) return;
    to.rooms += 1;
    const reason = to === warm ? `its owner ${from} is no longer heard; ${to.state.server} has a warm copy` : `its owner ${from} is no longer heard; ${to.state.server} has the fewest rooms`;
    this.#moves.set(room, { room, action: { kind: "promote", from, to: to.state.server }, reason });
  }

  #moveToLeast(room: RoomKey, from: ServerId, reason: string): void {
    const to = this.#leastFor(room);
    if (to === undefined || to.state.server === from || this.#moves.size >= this.#options.movesMax) return;
    this.#move(room, from, to, this.#world.shares.get(room) ?? 0, `${reason}; ${to.state.server} has the fewest rooms of those`);
  }

  #move(room: RoomKey, from: ServerId, to: Tally, share: number, reason: string): void {
    const source = this.#tallies.get(from)!;
    source.rooms -= 1;
    source.used -= share;
    to.rooms += 1;
    to.used += share;
    this.#moves.set(room, { room, action: { kind: "move", from, to: to.state.server }, reason });
  }

  #balancePool(tallies: readonly Tally[]): void {
    const mean = tallies.reduce((sum, { rooms }) => sum + rooms, 0) / tallies.length;
    const slack = Math.max(mean * this.#options.imbalance, CHANCE * Math.sqrt(mean));
    const isBalanced = (most: Tally, fewest: Tally): boolean => most.rooms <= mean + slack && fewest.rooms >= mean - slack;
    if (isBalanced(least(tallies, byRoomsDown)!, least(tallies, byRooms)!)) return;

    const movable = this.#movableRooms();
    while (this.#moves.size < this.#options.movesMax) {
      const [from, to] = [least(tallies, byRoomsDown)!, least(tallies, byRooms)!];
      const room = movable.get(from.state.server)?.pop();
      if (isBalanced(from, to) || room === undefined) return;
      this.#move(room, from.state.server, to, 0, `${from.state.server} has ${from.rooms} rooms and ${to.state.server} ${to.rooms}; the mean is ${Math.round(mean)}`);
    }
  }

  #movableRooms(): Map<ServerId, RoomKey[]> {
    const movable = new Map<ServerId, RoomKey[]>(this.#takers.map(({ state }) => [state.server, []]));
    for (const [room, { owner }] of this.#world.rooms) {
      if (!this.#moves.has(room) && !this.#world.pins.has(room) && !this.#world.shares.has(room)) movable.get(owner)?.push(room);
    }
    return movable;
  }

  #placeReplica(room: RoomKey, owner: ServerId, kept: ServerId | undefined): Step | undefined {
    const ownerState = this.#tallies.get(owner)?.state;
    if (!this.#options.keepsReplicas || ownerState === undefined) {
      return kept === undefined ? undefined : { room, action: { kind: "unfollow", by: kept }, reason: "no warm copies are kept" };
    }
    const keptState = kept === undefined ? undefined : this.#tallies.get(kept)?.state;
    const apart = keptState === undefined || keptState.draining ? 0 : apartness(ownerState, keptState);
    if (apart === 3 || (apart > 0 && apart >= this.#apartMax(ownerState))) return undefined;
    const [best, bestApart] = this.#bestReplica(room, ownerState);
    if (best === undefined || best.state.server === kept) return undefined;
    if (kept !== undefined) this.#countReplica(owner, kept, -1);
    this.#countReplica(owner, best.state.server, 1);
    const action: Action = { kind: "follow", by: best.state.server, instead: kept };
    return { room, action, reason: `${best.state.server} keeps its warm copy: ${APART[bestApart]} than its owner ${owner}` };
  }

  /** Of those furthest apart from the owner the one with the fewest copies of the owner's rooms, so that they spread when it is lost. */
  #bestReplica(room: RoomKey, owner: ServerState): [Tally | undefined, number] {
    let best: Tally | undefined;
    let bestApart = 0;
    let bestPair = 0;
    const pairs = this.#tallies.get(owner.server)!.followedBy;
    for (const tally of this.#takers) {
      const apart = apartness(owner, tally.state);
      if (apart === 0 || !this.#mayTake(room, tally.state)) continue;
      const pair = pairs.get(tally.state.server) ?? 0;
      if (best !== undefined && (apart < bestApart || (apart === bestApart && (pair > bestPair || (pair === bestPair && tally.replicas >= best.replicas))))) continue;
      [best, bestApart, bestPair] = [tally, apart, pair];
    }
    return [best, bestApart];
  }

  #apartMax(owner: ServerState): number {
    const known = this.#apartMaxOf.get(owner.server);
    if (known !== undefined) return known;
    const max = this.#takers.reduce((most, { state }) => Math.max(most, apartness(owner, state)), 0);
    this.#apartMaxOf.set(owner.server, max);
    return max;
  }

  #countReplica(owner: ServerId, replica: ServerId, by: number): void {
    const tally = this.#tallies.get(replica);
    if (tally !== undefined) tally.replicas += by;
    const pairs = this.#tallies.get(owner)?.followedBy;
    pairs?.set(replica, (pairs.get(replica) ?? 0) + by);
  }

  #leastFor(room: RoomKey): Tally | undefined {
    const allowed = this.#takers.filter(({ state }) => this.#mayTake(room, state));
    return least(allowed.length > 0 ? allowed : this.#takers, byRooms); // A pin that nobody can keep is better broken than the room down.
  }

  #mayTake(room: RoomKey, { pool, host }: ServerState): boolean {
    const pin = this.#world.pins.get(room);
    return pool === (pin?.pool ?? "") && (pin?.host === undefined || pin.host === host);
  }

  #mayStay(room: RoomKey, server: ServerState): boolean {
    if (this.#mayTake(room, server)) return true;
    const pin = this.#world.pins.get(room);
    if (pin === undefined) return server.pool === DEDICATED; // It was too hot elsewhere.
    return !this.#takers.some(({ state }) => this.#mayTake(room, state));
  }
}

const APART = ["", "another server", "another host", "another zone"] as const;

/** 0: the same server, 1: the same host, 2: the same zone, 3: apart. Labels not given say nothing, and count as apart by server alone. */
function apartness(a: ServerState, b: ServerState): 0 | 1 | 2 | 3 {
  if (a.server === b.server) return 0;
  if (a.zone !== b.zone) return 3;
  return a.host === b.host ? 1 : 2;
}

function least(tallies: readonly Tally[], weigh: (tally: Tally) => number): Tally | undefined {
  let best: Tally | undefined;
  for (const tally of tallies) if (best === undefined || weigh(tally) < weigh(best)) best = tally;
  return best;
}

function byRooms({ rooms }: Tally): number {
  return rooms;
}

function byRoomsDown({ rooms }: Tally): number {
  return -rooms;
}

function byUse({ used }: Tally): number {
  return used;
}

function describePin({ pool, host }: Pin): string {
  return [pool === undefined ? "" : `the pool ${pool}`, host === undefined ? "" : `the host ${host}`].filter((part) => part !== "").join(" and ") || "the general pool";
}

function percent(share: number): string {
  return `${Math.round(share * 100)}%`;
}
