/**
 * A year of placement decisions. Every week rooms are released and opened, and a server is lost and returns under
 * another name. The unavoidable moves are the rooms of lost servers and the rooms that a returning server needs.
 * Everything but the time of a decision is determined by the seed.
 */

import { Prng } from "../shared/collections/prng.ts";
import type { RoomKey, ServerId } from "../shared/ids.ts";
import { positiveInteger } from "../shared/settings/settings.ts";
import { decide, type DecideOptions } from "../placement/decide.ts";
import { NOTHING_PLANNED, type Placements, type PlacementPlan, replicaAfter, type RoomState, type ServerState } from "../placement/plan.ts";
import { defineExperiment } from "./experiment.ts";

type FleetYearOptions = {
  readonly servers: number;
  readonly rooms: number;
  readonly weeks: number;
  readonly seed: number;
  readonly now: () => number;
};

type FleetYear = {
  /** Largest distance of a server from the mean after any decision, as a share of the mean. */
  readonly imbalance: number;
  readonly moved: number;
  readonly unavoidable: number;
  readonly decisionsMs: readonly number[];
  /** Rooms of one lost server that a server of another zone received: the least and the most. */
  readonly spread: { readonly least: number; readonly most: number };
  /** Rooms without a replica or with a replica in their owner's zone. */
  readonly replicasTooNear: number;
  /** Steps of a decision when nothing has changed since the last one. */
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
/** A server below this share of the mean needs more rooms. */
const WANTED = 0.9;
const ZONES = 4;
const SERVERS_PER_HOST = 2;
/** Share of all rooms that is opened and released in a week. */
const CHURN = 0.05;

class SimulatedFleet {
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

  /** Releases some rooms and opens as many on random servers. */
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

  /** The server returns under another name on the same host. */
  add({ host, zone }: ServerState): void {
    this.servers = [...this.servers, this.#newServer({ host, zone })];
  }

  /** Decides and carries out all steps. */
  decide(now: () => number): { plan: PlacementPlan; ms: number } {
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

  /** Number of rooms whose server is lost, and of rooms that a server needs to reach its minimum. */
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

  replicasTooNear(): number {
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

export function liveThroughYear({ servers, rooms, weeks, seed, now }: FleetYearOptions): FleetYear {
  const fleet = new SimulatedFleet(servers, rooms, seed);
  const decisionsMs: number[] = [];
  let [moved, unavoidable, imbalance] = [0, 0, 0];
  const decideAndCount = (): void => {
    unavoidable += fleet.unavoidable();
    const { plan, ms } = fleet.decide(now);
    decisionsMs.push(ms);
    moved += plan.steps.filter(({ action }) => action.kind === "promote" || action.kind === "move").length;
    imbalance = Math.max(imbalance, fleet.imbalance());
  };
  fleet.decide(now); // Creates the replicas.
  for (let week = 1; week <= weeks; week++) {
    fleet.turnOver(CHURN);
    const lost = fleet.lose(week);
    decideAndCount();
    fleet.add(lost);
    decideAndCount();
    decideAndCount(); // The usual case: nothing has changed.
  }
  const [replicasTooNear, restless] = [fleet.replicasTooNear(), fleet.decide(now).plan.steps.length];
  return { imbalance, moved, unavoidable, decisionsMs, spread: spreadOf(fleet, now), replicasTooNear, restless };
}

function spreadOf(fleet: SimulatedFleet, now: () => number): FleetYear["spread"] {
  const before = fleet.roomsOf();
  const lost = fleet.lose(0);
  fleet.decide(now);
  const after = fleet.roomsOf();
  const gained = fleet.servers.filter(({ zone }) => zone !== lost.zone).map(({ server }) => after.get(server)! - before.get(server)!);
  return { least: Math.min(...gained), most: Math.max(...gained) };
}

export const decisions = defineExperiment({
  name: "decide",
  summary: "a year of placement decisions with lost and restarted servers; needs no server; half a minute",
  settings: {
    rooms: { parse: positiveInteger, fallback: 100_000, meaning: "rooms" },
    servers: { parse: positiveInteger, fallback: 32, meaning: "room servers, in four zones" },
    weeks: {
      parse: positiveInteger,
      fallback: 52,
      meaning: "weeks; in each one server is lost and returns, and a twentieth of the rooms is released and opened",
    },
    seed: { parse: positiveInteger, fallback: 1, meaning: "seed that selects these rooms" },
  },
  run: async (options, print) => {
    const { imbalance, moved, unavoidable, decisionsMs, spread, replicasTooNear, restless } = liveThroughYear({ ...options, now: cpuMs });
    const sorted = [...decisionsMs].sort((a, b) => a - b);
    const [p50, p99, max] = [0.5, 0.99, 1].map((part) => sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))]!.toFixed(1));
    print(`${options.rooms} rooms on ${options.servers} servers, ${options.weeks} weeks, ${decisionsMs.length} decisions`);
    print(`  a decision takes (CPU)  p50 ${p50} ms   p99 ${p99} ms   max ${max} ms`);
    print(`  furthest from the mean  ${(imbalance * 100).toFixed(1)}%`);
    print(`  rooms moved             ${moved}, ${(moved / unavoidable).toFixed(3)} times the unavoidable moves`);
    print(`  a lost server's rooms   ${spread.least} to ${spread.most} to each server of the other zones`);
    print(`  replicas too near       ${replicasTooNear}`);
    print(`  steps left at rest      ${restless}`);
  },
});

/** CPU time of this process only: other work on the machine does not count. */
function cpuMs(): number {
  return (process.cpuUsage().user + process.cpuUsage().system) / 1_000;
}
