/**
 * A year of placement's decisions over a fleet that is never quite whole: each week rooms come and go, a server is lost
 * and comes back under another name, and a rolling restart drains one more. What is unavoidable is the rooms of those
 * that are lost or drained, and what a server that comes back needs to be of use. Deterministic by its seed, but for
 * the time that a decision takes.
 */

import { decide, type DecideOptions } from "../placement/decide.ts";
import { NOTHING_PLANNED, type Placements, type Plan, replicaAfter } from "../placement/plan.ts";
import type { RoomState, ServerState } from "../placement/world.ts";
import type { RoomKey, ServerId } from "../shared/ids.ts";
import { Prng } from "../shared/prng.ts";

export type FleetOptions = {
  readonly servers: number;
  readonly rooms: number;
  readonly weeks: number;
  readonly seed: number;
  readonly now: () => number;
};

export type FleetYear = {
  /** How far a server was from the mean at the most, as a share of it, after any decision. */
  readonly imbalance: number;
  readonly moved: number;
  readonly unavoidable: number;
  readonly decisionsMs: readonly number[];
  /** Of the rooms of a lost server: what the others of other zones got of them at the least and at the most. */
  readonly spread: { readonly least: number; readonly most: number };
  /** Rooms whose warm copy stands in the zone of their owner, or nowhere. */
  readonly copiesTooNear: number;
  /** Steps that are left to do when nothing happens any more. */
  readonly restless: number;
};

const OPTIONS: DecideOptions = {
  hotShare: 0.3,
  imbalance: 0.1,
  movesMax: Number.POSITIVE_INFINITY,
  followsMax: Number.POSITIVE_INFINITY,
  fullShare: 0.9,
  reliefMax: 8,
  keepsReplicas: true,
};
/** A server that has so much less than the mean is to be filled up. */
const WANTED = 0.9;
const ZONES = 4;
const SERVERS_PER_HOST = 2;
/** Rooms opened and released in a week, as a share of all. */
const CHURN = 0.05;

export class Fleet {
  servers: ServerState[] = [];
  readonly rooms = new Map<RoomKey, RoomState>();
  readonly #replicas = new Map<RoomKey, { replica: ServerId | undefined; reason: string; generation: number }>();
  readonly #prng: Prng;
  #generation = NOTHING_PLANNED.generation;
  #named = 0;
  #opened = 0;

  constructor(servers: number, rooms: number, seed: number) {
    this.#prng = new Prng(seed);
    for (let index = 0; index < servers; index++)
      this.servers.push(
        this.#newServer({ host: `h${Math.floor(index / ZONES / SERVERS_PER_HOST)}-${index % ZONES}`, zone: `z${index % ZONES}` }),
      );
    for (let count = 0; count < rooms; count++) this.#open(this.servers[count % servers]!.server);
  }

  /** Some rooms are released, and as many are opened wherever the hash has them. */
  turnOver(share: number): void {
    const takers = this.servers.filter(({ draining }) => !draining);
    for (const room of [...this.rooms.keys()].filter(() => this.#prng.chance(share))) {
      this.rooms.delete(room);
      this.#replicas.delete(room);
      this.#open(takers[this.#prng.below(takers.length)]!.server);
    }
  }

  lose(index: number): ServerState {
    const lost = this.servers[index % this.servers.length]!;
    this.servers = this.servers.filter((state) => state !== lost);
    return lost;
  }

  /** It comes back under another name in the same place. */
  add({ host, zone }: ServerState): void {
    this.servers = [...this.servers, this.#newServer({ host, zone })];
  }

  /** What is decided is done. */
  decide(now: () => number): { plan: Plan; ms: number } {
    const previous: Placements = { generation: this.#generation, rooms: this.#replicas };
    const begun = now();
    const plan = decide(
      { servers: this.servers, rooms: this.rooms, pins: new Map(), shares: new Map(), cooled: new Set() },
      previous,
      OPTIONS,
    );
    const ms = now() - begun;
    this.#generation = plan.generation;
    for (const { room, action, reason } of plan.steps) {
      if (action.kind === "promote" || action.kind === "move") this.rooms.set(room, { owner: action.to });
      this.#replicas.set(room, { replica: replicaAfter(action, this.#replicas.get(room)?.replica), reason, generation: plan.generation });
    }
    return { plan, ms };
  }

  roomsOf(): Map<ServerId, number> {
    const counts = new Map(this.servers.map(({ server }) => [server, 0]));
    for (const { owner } of this.rooms.values()) counts.set(owner, (counts.get(owner) ?? 0) + 1);
    return counts;
  }

  /** Rooms whose server is gone, and those that others lack to be of use. */
  unavoidable(): number {
    const counts = this.roomsOf();
    const here = new Set(this.servers.map(({ server }) => server));
    const orphans = [...counts].reduce((sum, [server, count]) => sum + (here.has(server) ? 0 : count), 0);
    const wanted = (WANTED * this.rooms.size) / this.servers.length;
    return orphans + this.servers.reduce((sum, { server }) => sum + Math.max(0, wanted - counts.get(server)!), 0);
  }

  imbalance(): number {
    const mean = this.rooms.size / this.servers.length;
    return Math.max(...[...this.roomsOf().values()].map((count) => Math.abs(count - mean) / mean));
  }

  copiesTooNear(): number {
    const zones = new Map(this.servers.map(({ server, zone }) => [server, zone]));
    let near = 0;
    for (const [room, { owner }] of this.rooms) {
      const replica = this.#replicas.get(room)?.replica;
      if (replica === undefined || zones.get(replica) === zones.get(owner)) near += 1;
    }
    return near;
  }

  #open(owner: ServerId): void {
    this.rooms.set(`acme.r${++this.#opened}` as RoomKey, { owner });
  }

  #newServer({ host, zone }: { host: string; zone: string }): ServerState {
    return { server: `s${++this.#named}` as ServerId, host, zone, pool: "", draining: false, used: 0 };
  }
}

export function liveThroughYear({ servers, rooms, weeks, seed, now }: FleetOptions): FleetYear {
  const fleet = new Fleet(servers, rooms, seed);
  const decisionsMs: number[] = [];
  let [moved, unavoidable, imbalance] = [0, 0, 0];
  const decideAndCount = (): void => {
    unavoidable += fleet.unavoidable();
    const { plan, ms } = fleet.decide(now);
    decisionsMs.push(ms);
    moved += plan.steps.filter(({ action }) => action.kind === "promote" || action.kind === "move").length;
    imbalance = Math.max(imbalance, fleet.imbalance());
  };
  fleet.decide(now); // Begins the warm copies.
  for (let week = 1; week <= weeks; week++) {
    fleet.turnOver(CHURN);
    const lost = fleet.lose(week);
    decideAndCount();
    fleet.add(lost);
    decideAndCount();
    decideAndCount(); // As it mostly is: nothing has happened.
  }
  const [copiesTooNear, restless] = [fleet.copiesTooNear(), fleet.decide(now).plan.steps.length];
  return { imbalance, moved, unavoidable, decisionsMs, spread: spreadOf(fleet, now), copiesTooNear, restless };
}

function spreadOf(fleet: Fleet, now: () => number): FleetYear["spread"] {
  const before = fleet.roomsOf();
  const lost = fleet.lose(0);
  fleet.decide(now);
  const after = fleet.roomsOf();
  const gained = fleet.servers.filter(({ zone }) => zone !== lost.zone).map(({ server }) => after.get(server)! - before.get(server)!);
  return { least: Math.min(...gained), most: Math.max(...gained) };
}
