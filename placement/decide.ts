/**
 * Decides what should change: from what is, and what was planned before, to a plan. Deterministic, and idle where
 * nothing is wrong: a room stays where it is unless its server is gone, it may not be there, it is too hot for its
 * neighbours or no longer so, or its server has far more to do, or far more rooms, than others. Rules DEC1 to DEC18.
 */

import type { RoomKey, ServerId } from "../shared/ids.ts";
import { Copies } from "./copies.ts";
import type { Placements, Plan, Step } from "./plan.ts";
import { Preferences } from "./preferences.ts";
import { byRooms, byRoomsDown, byUse, hasRoomFor, isFull, least, Tallies, type Tally } from "./tallies.ts";
import { DEDICATED, type World } from "./world.ts";

export type DecideOptions = {
  readonly hotShare: number;
  /** How far from the mean of its pool a server's rooms may be, as a share of it. */
  readonly imbalance: number;
  readonly movesMax: number;
  readonly followsMax: number;
  /** The share of its budget past which a server is full. */
  readonly fullShare: number;
  /** Rooms that one plan takes from a full server: what that changes is measured before the next. */
  readonly reliefMax: number;
  readonly keepsReplicas: boolean;
};

/** Hashing spreads rooms by chance: so many standard deviations of it are no imbalance. */
const CHANCE = 3;
/** A move must make so much of a difference, or rooms would go to and fro. */
const MARGIN = 0.1;

export function decide(world: World, previous: Placements, options: DecideOptions): Plan {
  const decision = new Decision(world, previous, options);
  decision.placeRooms();
  decision.coolDown();
  decision.bringBack();
  decision.relieve();
  decision.balance();
  return { generation: previous.generation + 1, steps: [...decision.steps(), ...decision.placeCopies()] };
}

class Decision {
  readonly #world: World;
  readonly #previous: Placements;
  readonly #options: DecideOptions;
  readonly #tallies: Tallies;
  readonly #preferences: Preferences;
  readonly #copies: Copies;
  readonly #moves = new Map<RoomKey, Step>();
  /** What the look at all rooms found: with no owner, where they may not be, and with no copy, or one too near. */
  readonly #orphans: RoomKey[] = [];
  readonly #misplaced: RoomKey[] = [];
  readonly #illKept: RoomKey[] = [];

  constructor(world: World, previous: Placements, options: DecideOptions) {
    this.#world = world;
    this.#previous = previous;
    this.#options = options;
    this.#tallies = new Tallies(world.servers, options.fullShare);
    this.#preferences = new Preferences(world.pins, this.#tallies.takers);
    this.#copies = new Copies(this.#tallies, this.#preferences);
    for (const [room, { owner }] of world.rooms) this.#survey(room, owner);
  }

  steps(): Iterable<Step> {
    return this.#moves.values();
  }

  placeRooms(): void {
    for (const room of this.#orphans) this.#promote(room, this.#ownerOf(room));
    for (const room of this.#misplaced) this.#moveToLeast(room, this.#ownerOf(room), `it is pinned to ${this.#preferences.describe(room)}`);
  }

  /** Rooms that leave their neighbours too little. */
  coolDown(): void {
    for (const [room, share] of largestFirst(this.#world.shares)) {
      if (share <= this.#options.hotShare) return;
      const from = this.#movable(room);
      if (from === undefined || from.state.pool === DEDICATED || from.rooms <= 1) continue;
      const to = this.#coolerFor(share, from);
      if (to !== undefined) {
        const why = `over ${percent(this.#options.hotShare)}; ${to.state.server} has most to spare`;
        this.#move(room, from, to, share, `it takes ${percent(share)} of its server's budget, ${why}`);
      }
    }
  }

  /** Rooms that were such, and leave a server that is kept for them. */
  bringBack(): void {
    for (const room of [...this.#world.cooled].sort()) {
      if (this.#moves.size >= this.#options.movesMax) return;
      const from = this.#movable(room);
      const share = this.#world.shares.get(room) ?? 0;
      const to = least(
        this.#tallies.takers.filter((tally) => tally.state.pool === "" && hasRoomFor(tally, share)),
        byRooms,
      );
      if (from?.state.pool === DEDICATED && to !== undefined) {
        const why = `and has not been hot for a while; ${to.state.server} has the fewest rooms of those with as much to spare`;
        this.#move(room, from, to, share, `it takes ${percent(share)} of its server's budget, ${why}`);
      }
    }
  }

  /** Servers that use nearly all of their budget, though none of their rooms is too hot. */
  relieve(): void {
    const known = largestFirst(this.#world.shares);
    for (const from of this.#tallies.takers) {
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

  /** Rooms of servers that have many more than others of their pool. */
  balance(): void {
    const tallies = this.#tallies.takers.filter((tally) => !isFull(tally));
    for (const pool of new Set(tallies.map(({ state }) => state.pool))) {
      if (pool !== DEDICATED) this.#balancePool(tallies.filter(({ state }) => state.pool === pool));
    }
  }

  placeCopies(): Step[] {
    if (!this.#options.keepsReplicas) return this.#endCopies();
    const steps: Step[] = [];
    for (const room of new Set([...this.#moves.keys(), ...this.#illKept])) {
      if (steps.length >= this.#options.followsMax) break;
      const move = this.#moves.get(room)?.action;
      const owner = this.#tallies.of(move !== undefined && "to" in move ? move.to : this.#ownerOf(room));
      if (owner === undefined) continue;
      const keeper = this.#previous.rooms.get(room)?.replica;
      const step = this.#copies.place(room, owner, keeper === owner.state.server ? undefined : keeper);
      if (step !== undefined) steps.push(step);
    }
    return steps;
  }

  #survey(room: RoomKey, owner: ServerId): void {
    const tally = this.#tallies.of(owner);
    if (tally === undefined) {
      this.#orphans.push(room);
      return;
    }
    tally.rooms += 1;
    if (!tally.state.draining && !this.#preferences.mayStay(room, tally.state)) this.#misplaced.push(room);
    const keeper = this.#keeperOf(room);
    if (keeper !== undefined && keeper !== tally) this.#tallies.countCopy(tally, keeper, 1);
    if (keeper === undefined || !this.#copies.isWellKept(tally, keeper)) this.#illKept.push(room);
  }

  #promote(room: RoomKey, from: ServerId): void {
    const keeper = this.#keeperOf(room);
    const warm = keeper !== undefined && !keeper.state.draining && this.#preferences.mayTake(room, keeper.state) ? keeper : undefined;
    const to = warm ?? this.#preferences.leastFor(room);
    if (to === undefined) return;
    to.rooms += 1;
    const reason = `its owner ${from} is no longer heard; ${to.state.server} has ${to === warm ? "a warm copy" : "the fewest rooms"}`;
    this.#moves.set(room, { room, action: { kind: "promote", from, to: to.state.server }, reason });
  }

  #moveToLeast(room: RoomKey, owner: ServerId, reason: string): void {
    const from = this.#tallies.of(owner);
    const to = this.#preferences.leastFor(room);
    if (from === undefined || to === undefined || to === from || this.#moves.size >= this.#options.movesMax) return;
    this.#move(room, from, to, this.#world.shares.get(room) ?? 0, `${reason}; ${to.state.server} has the fewest rooms of those`);
  }

  #move(room: RoomKey, from: Tally, to: Tally, share: number, reason: string): void {
    from.rooms -= 1;
    from.used -= share;
    to.rooms += 1;
    to.used += share;
    this.#moves.set(room, { room, action: { kind: "move", from: from.state.server, to: to.state.server }, reason });
  }

  /** One that is kept for such rooms; else one of its pool that would be better off with it than its server is. */
  #coolerFor(share: number, from: Tally): Tally | undefined {
    const dedicated = least(
      this.#tallies.takers.filter(({ state }) => state.pool === DEDICATED),
      byUse,
    );
    if (dedicated !== undefined && (hasRoomFor(dedicated, share) || dedicated.rooms === 0)) return dedicated;
    const to = least(
      this.#tallies.takers.filter(({ state }) => state.pool === from.state.pool),
      byUse,
    );
    return to !== undefined && to.used + share <= from.used - MARGIN ? to : undefined;
  }

  #relieve(from: Tally, candidates: readonly (readonly [RoomKey, number])[]): void {
    const others = this.#tallies.takers.filter((tally) => tally !== from && tally.state.pool === from.state.pool);
    let moved = 0;
    for (const [room, share] of candidates) {
      const to = least(others, byUse);
      if (to === undefined || !isFull(from) || moved >= this.#options.reliefMax || this.#moves.size >= this.#options.movesMax) return;
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

  #balancePool(tallies: readonly Tally[]): void {
    const mean = tallies.reduce((sum, { rooms }) => sum + rooms, 0) / tallies.length;
    const slack = Math.max(mean * this.#options.imbalance, CHANCE * Math.sqrt(mean));
    const isBalanced = (most: Tally, fewest: Tally): boolean => most.rooms <= mean + slack && fewest.rooms >= mean - slack;
    if (isBalanced(least(tallies, byRoomsDown)!, least(tallies, byRooms)!)) return;

    const movable = this.#ordinaryRooms();
    while (this.#moves.size < this.#options.movesMax) {
      const [from, to] = [least(tallies, byRoomsDown)!, least(tallies, byRooms)!];
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

  /** Of each server those that no reason keeps where they are, and of which none is large. */
  #ordinaryRooms(): Map<ServerId, RoomKey[]> {
    const rooms = new Map<ServerId, RoomKey[]>(this.#tallies.takers.map(({ state }) => [state.server, []]));
    for (const [room, { owner }] of this.#world.rooms) {
      if (!this.#moves.has(room) && !this.#preferences.isPinned(room) && !this.#world.shares.has(room)) rooms.get(owner)?.push(room);
    }
    return rooms;
  }

  /** The server that the room can be moved away from, if it can be moved at all. */
  #movable(room: RoomKey): Tally | undefined {
    const owner = this.#world.rooms.get(room)?.owner;
    const from = owner === undefined || this.#moves.has(room) || this.#preferences.isPinned(room) ? undefined : this.#tallies.of(owner);
    return from?.state.draining === false ? from : undefined;
  }

  #ownerOf(room: RoomKey): ServerId {
    return this.#world.rooms.get(room)!.owner;
  }

  #keeperOf(room: RoomKey): Tally | undefined {
    const replica = this.#previous.rooms.get(room)?.replica;
    return replica === undefined ? undefined : this.#tallies.of(replica);
  }

  #endCopies(): Step[] {
    const steps: Step[] = [];
    for (const [room, { replica }] of this.#previous.rooms) {
      const move = this.#moves.get(room)?.action;
      const isOwnerToBe = move !== undefined && "to" in move && move.to === replica;
      if (replica === undefined || isOwnerToBe || !this.#world.rooms.has(room)) continue;
      if (steps.push({ room, action: { kind: "unfollow", by: replica }, reason: "no warm copies are kept" }) >= this.#options.followsMax) {
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
