/**
 * Decides a plan from the current world and earlier plans. Deterministic. A room stays where it is, except in four
 * cases. Its server is lost or not allowed to have it. The room is too hot for its neighbours, or no longer hot. Its
 * server has far more load than others. Its server has far more rooms than others. If no room needs to move, the plan
 * is empty. Rules DEC1 to DEC19.
 */

import type { RoomKey, ServerId } from "../shared/ids.ts";
import { ReplicaPlan } from "./replica-plan.ts";
import { DEDICATED, type PlacementPlan, type Placements, type PlacementWorld, type PlanStep } from "./plan.ts";
import {
  byRooms,
  byRoomsDown,
  byUse,
  hasRoomFor,
  isFull,
  minBy,
  ServerUsages,
  type ServerUsage,
  ServerPreferences,
} from "./server-loads.ts";

export type DecideOptions = {
  readonly hotShare: number;
  /** Allowed difference between a server's number of rooms and its pool's mean, as a share of the mean. */
  readonly imbalance: number;
  /** Maximum number of rooms that one plan moves. Rooms of lost servers are not counted. */
  readonly movesMax: number;
  readonly followsMax: number;
  /** Share of its budget above which a server is full. */
  readonly fullShare: number;
  /** Maximum number of rooms that one plan moves from a full server. The effect is measured before the next plan. */
  readonly reliefMax: number;
  readonly keepsReplicas: boolean;
};

/** Hashing spreads rooms at random, so differences up to this many standard deviations do not count as imbalance. */
const CHANCE = 3;
/** Minimum improvement of a move. Without it, rooms would move back and forth. */
const MARGIN = 0.1;

export function decide(world: PlacementWorld, previous: Placements, options: DecideOptions): PlacementPlan {
  const decision = new Decision(world, previous, options);
  decision.placeRooms();
  decision.coolDown();
  decision.bringBack();
  decision.relieve();
  decision.balance();
  return { generation: previous.generation + 1, steps: [...decision.steps(), ...decision.placeCopies()] };
}

class Decision {
  readonly #world: PlacementWorld;
  readonly #previous: Placements;
  readonly #options: DecideOptions;
  readonly #usages: ServerUsages;
  readonly #preferences: ServerPreferences;
  readonly #replicas: ReplicaPlan;
  readonly #moves = new Map<RoomKey, PlanStep>();
  /** Without the rooms of lost servers. */
  #movesLeft: number;
  /**
   * Three groups of rooms from the survey: rooms whose owner is lost, rooms in a forbidden place, and rooms whose replica
   * is missing or too near.
   */
  readonly #orphans: RoomKey[] = [];
  readonly #misplaced: RoomKey[] = [];
  readonly #illKept: RoomKey[] = [];

  constructor(world: PlacementWorld, previous: Placements, options: DecideOptions) {
    this.#world = world;
    this.#previous = previous;
    this.#options = options;
    this.#movesLeft = options.movesMax;
    this.#usages = new ServerUsages(world.servers, options.fullShare);
    this.#preferences = new ServerPreferences(world.pins, this.#usages.takers);
    this.#replicas = new ReplicaPlan(this.#usages, this.#preferences);
    for (const [room, { owner }] of world.rooms) this.#survey(room, owner);
  }

  steps(): Iterable<PlanStep> {
    return this.#moves.values();
  }

  placeRooms(): void {
    for (const room of this.#orphans) this.#promote(room, this.#ownerOf(room));
    for (const room of this.#misplaced) this.#moveToLeast(room, this.#ownerOf(room), `it is pinned to ${this.#preferences.describe(room)}`);
  }

  /** Moves hot rooms away from servers on which the other rooms have too little capacity left. */
  coolDown(): void {
    for (const [room, share] of largestFirst(this.#world.shares)) {
      if (share <= this.#options.hotShare || this.#movesLeft <= 0) return;
      const from = this.#movable(room);
      if (from === undefined || from.state.pool === DEDICATED || from.rooms <= 1) continue;
      const to = this.#coolerFor(share, from);
      if (to !== undefined) {
        const why = `over ${percent(this.#options.hotShare)}; ${to.state.server} has most to spare`;
        this.#move(room, from, to, share, `it takes ${percent(share)} of its server's budget, ${why}`);
      }
    }
  }

  /** Moves rooms on a dedicated server back once they have cooled. */
  bringBack(): void {
    for (const room of [...this.#world.cooled].sort()) {
      if (this.#movesLeft <= 0) return;
      const from = this.#movable(room);
      const share = this.#world.shares.get(room) ?? 0;
      const to = minBy(
        this.#usages.takers.filter((usage) => usage.state.pool === "" && hasRoomFor(usage, share)),
        byRooms,
      );
      if (from?.state.pool === DEDICATED && to !== undefined) {
        const why = `and has not been hot for a while; ${to.state.server} has the fewest rooms of those with as much to spare`;
        this.#move(room, from, to, share, `it takes ${percent(share)} of its server's budget, ${why}`);
      }
    }
  }

  /** Moves rooms from servers near their budget if no single room is too hot. */
  relieve(): void {
    const known = largestFirst(this.#world.shares);
    for (const from of this.#usages.takers) {
      if (!isFull(from) || from.state.pool === DEDICATED) continue;
      const shares = known.filter(([room]) => this.#movable(room) === from);
      const rest = from.used - shares.reduce((sum, [, share]) => sum + share, 0);
      const others = Math.max(1, from.rooms - shares.length);
      const candidates = [
        ...shares,
        ...(this.#ordinaryRooms().get(from.state.server) ?? []).map((room) => [room, Math.max(0, rest) / others] as const),
      ];
      this.#relieve(from, candidates);
    }
  }

  /** Moves rooms from servers that have many more rooms than the others of their pool. */
  balance(): void {
    const usages = this.#usages.takers.filter((usage) => !isFull(usage));
    for (const pool of new Set(usages.map(({ state }) => state.pool))) {
      if (pool !== DEDICATED) this.#balancePool(usages.filter(({ state }) => state.pool === pool));
    }
  }

  placeCopies(): PlanStep[] {
    if (!this.#options.keepsReplicas) return this.#endCopies();
    const steps: PlanStep[] = [];
    for (const room of new Set([...this.#moves.keys(), ...this.#illKept])) {
      if (steps.length >= this.#options.followsMax) break;
      const move = this.#moves.get(room)?.action;
      const owner = this.#usages.of(move !== undefined && "to" in move ? move.to : this.#ownerOf(room));
      if (owner === undefined) continue;
      const keeper = this.#previous.rooms.get(room)?.replica;
      const step = this.#replicas.place(room, owner, keeper === owner.state.server ? undefined : keeper);
      if (step !== undefined) steps.push(step);
    }
    return steps;
  }

  #survey(room: RoomKey, owner: ServerId): void {
    const usage = this.#usages.of(owner);
    if (usage === undefined) {
      this.#orphans.push(room);
      return;
    }
    usage.rooms += 1;
    if (!usage.state.draining && !this.#preferences.mayStay(room, usage.state)) this.#misplaced.push(room);
    const keeper = this.#keeperOf(room);
    if (keeper !== undefined && keeper !== usage) this.#usages.countCopy(usage, keeper, 1);
    if (keeper === undefined || !this.#replicas.isWellKept(usage, keeper)) this.#illKept.push(room);
  }

  #promote(room: RoomKey, from: ServerId): void {
    const keeper = this.#keeperOf(room);
    const warm = keeper !== undefined && !keeper.state.draining && this.#preferences.mayTake(room, keeper.state) ? keeper : undefined;
    const to = warm ?? this.#preferences.leastFor(room);
    if (to === undefined) return;
    to.rooms += 1;
    const reason = `its owner ${from} has missed its heartbeats; ${to.state.server} has ${to === warm ? "a replica" : "the fewest rooms"}`;
    this.#moves.set(room, { room, action: { kind: "promote", from, to: to.state.server }, reason });
  }

  #moveToLeast(room: RoomKey, owner: ServerId, reason: string): void {
    const from = this.#usages.of(owner);
    const to = this.#preferences.leastFor(room);
    if (from === undefined || to === undefined || to === from || this.#movesLeft <= 0) return;
    this.#move(room, from, to, this.#world.shares.get(room) ?? 0, `${reason}; ${to.state.server} has the fewest rooms of those`);
  }

  #move(room: RoomKey, from: ServerUsage, to: ServerUsage, share: number, reason: string): void {
    from.rooms -= 1;
    from.used -= share;
    to.rooms += 1;
    to.used += share;
    this.#movesLeft -= 1;
    this.#moves.set(room, { room, action: { kind: "move", from: from.state.server, to: to.state.server }, reason });
  }

  /** A dedicated server. Otherwise a server of the same pool that would have less load with the room than the current server has. */
  #coolerFor(share: number, from: ServerUsage): ServerUsage | undefined {
    const dedicated = minBy(
      this.#usages.takers.filter(({ state }) => state.pool === DEDICATED),
      byUse,
    );
    if (dedicated !== undefined && (hasRoomFor(dedicated, share) || dedicated.rooms === 0)) return dedicated;
    const to = minBy(
      this.#usages.takers.filter(({ state }) => state.pool === from.state.pool),
      byUse,
    );
    return to !== undefined && to.used + share <= from.used - MARGIN ? to : undefined;
  }

  #relieve(from: ServerUsage, candidates: readonly (readonly [RoomKey, number])[]): void {
    const others = this.#usages.takers.filter((usage) => usage !== from && usage.state.pool === from.state.pool);
    let moved = 0;
    for (const [room, share] of candidates) {
      const to = minBy(others, byUse);
      if (to === undefined || !isFull(from) || moved >= this.#options.reliefMax || this.#movesLeft <= 0) return;
      if (!hasRoomFor(to, share) || to.used + share > from.used - MARGIN) continue;
      this.#move(
        room,
        from,
        to,
        share,
        `${from.state.server} uses ${percent(from.used)} of its budget, ${to.state.server} ${percent(to.used)}`,
      );
      moved += 1;
    }
  }

  #balancePool(usages: readonly ServerUsage[]): void {
    const mean = usages.reduce((sum, { rooms }) => sum + rooms, 0) / usages.length;
    const slack = Math.max(mean * this.#options.imbalance, CHANCE * Math.sqrt(mean));
    const isBalanced = (most: ServerUsage, fewest: ServerUsage): boolean => most.rooms <= mean + slack && fewest.rooms >= mean - slack;
    if (isBalanced(minBy(usages, byRoomsDown)!, minBy(usages, byRooms)!)) return;

    const movable = this.#ordinaryRooms();
    while (this.#movesLeft > 0) {
      const [from, to] = [minBy(usages, byRoomsDown)!, minBy(usages, byRooms)!];
      const room = movable.get(from.state.server)?.pop();
      if (isBalanced(from, to) || room === undefined) return;
      this.#move(
        room,
        from,
        to,
        0,
        `${from.state.server} has ${from.rooms} rooms and ${to.state.server} ${to.rooms}; the mean is ${Math.round(mean)}`,
      );
    }
  }

  /** The rooms of each server that have no reason to stay, except large rooms. */
  #ordinaryRooms(): Map<ServerId, RoomKey[]> {
    const rooms = new Map<ServerId, RoomKey[]>(this.#usages.takers.map(({ state }) => [state.server, []]));
    for (const [room, { owner }] of this.#world.rooms) {
      if (!this.#moves.has(room) && !this.#preferences.isPinned(room) && !this.#world.shares.has(room)) rooms.get(owner)?.push(room);
    }
    return rooms;
  }

  /** The server that the room moves from. Undefined: the room cannot be moved. */
  #movable(room: RoomKey): ServerUsage | undefined {
    const owner = this.#world.rooms.get(room)?.owner;
    const from = owner === undefined || this.#moves.has(room) || this.#preferences.isPinned(room) ? undefined : this.#usages.of(owner);
    return from?.state.draining === false ? from : undefined;
  }

  #ownerOf(room: RoomKey): ServerId {
    return this.#world.rooms.get(room)!.owner;
  }

  #keeperOf(room: RoomKey): ServerUsage | undefined {
    const replica = this.#previous.rooms.get(room)?.replica;
    return replica === undefined ? undefined : this.#usages.of(replica);
  }

  #endCopies(): PlanStep[] {
    const steps: PlanStep[] = [];
    for (const [room, { replica }] of this.#previous.rooms) {
      const move = this.#moves.get(room)?.action;
      const isOwnerToBe = move !== undefined && "to" in move && move.to === replica;
      if (replica === undefined || isOwnerToBe || !this.#world.rooms.has(room)) continue;
      if (steps.push({ room, action: { kind: "unfollow", by: replica }, reason: "no replicas are kept" }) >= this.#options.followsMax) {
        break;
      }
    }
    return steps;
  }
}

function largestFirst(shares: ReadonlyMap<RoomKey, number>): [RoomKey, number][] {
  return [...shares].sort(([a, x], [b, y]) => y - x || (a < b ? -1 : 1));
}

function percent(share: number): string {
  return `${Math.round(share * 100)}%`;
}
