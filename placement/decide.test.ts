import { expect, test } from "vitest";

import type { RoomKey, ServerId } from "../shared/ids.ts";
import { Prng } from "../shared/prng.ts";
import { decide, type DecideOptions, type Pin, type ServerState, type World } from "./decide.ts";
import { extend, NOTHING_PLANNED, type Placements, type Plan } from "./plan.ts";

const OPTIONS: DecideOptions = { hotShare: 0.3, imbalance: 0.1, movesMax: 1_000_000, followsMax: 1_000_000, keepsReplicas: true };
const id = (name: string) => name as ServerId;
const key = (name: string) => `acme.${name}` as RoomKey;

function server(name: string, more: Partial<ServerState> = {}): ServerState {
  return { server: id(name), host: name, zone: "", pool: "", draining: false, used: 0, ...more };
}

function world(servers: readonly ServerState[], owners: Record<string, string>, more: { pins?: Record<string, Pin>; shares?: Record<string, number> } = {}): World {
  const entries = <Value>(record: Record<string, Value>): [RoomKey, Value][] => Object.entries(record).map(([room, value]) => [key(room), value]);
  return { servers, rooms: new Map(entries(owners).map(([room, owner]) => [room, { owner: id(owner) }])), pins: new Map(entries(more.pins ?? {})), shares: new Map(entries(more.shares ?? {})) };
}

const previously = (replicas: Record<string, string>): Placements => ({ generation: 7, rooms: new Map(Object.entries(replicas).map(([room, replica]) => [key(room), { replica: id(replica), reason: "", generation: 7 }])) });
const said = (plan: Plan): string[] =>
  plan.steps.map(({ room, action }) => {
    const name = room.slice("acme.".length);
    if (action.kind === "follow" || action.kind === "unfollow") return `${name}: ${action.kind} by ${action.by}`;
    return `${name}: ${action.kind} ${action.from} to ${action.to}`;
  });
const quiet = { ...OPTIONS, keepsReplicas: false };

test("[DEC1] where nothing is wrong nothing is done", () => {
  const calm = world([server("a"), server("b")], { x: "a", y: "b" });
  expect(said(decide(calm, previously({ x: "b", y: "a" }), OPTIONS))).toEqual([]);
});

test("[DEC2] a lost owner's rooms go to whoever has a warm copy, else to whoever has the fewest rooms", () => {
  const lost = world([server("a"), server("b")], { x: "gone", y: "gone", z: "a" });
  const plan = decide(lost, previously({ x: "a" }), quiet);
  expect(said(plan)).toEqual(["x: promote gone to a", "y: promote gone to b"]);
  expect(plan.steps[0]!.reason).toBe("its owner gone is no longer heard; a has a warm copy");
});

test("[DEC3] warm copies stand as far from the owner as can be: another zone, else another host, else another server", () => {
  const near = { a: server("a", { host: "h1", zone: "z1" }), twin: server("twin", { host: "h1", zone: "z1" }), near: server("near", { host: "h2", zone: "z1" }), far: server("far", { host: "h3", zone: "z2" }) };
  const copies = (...names: (keyof typeof near)[]): string[] => said(decide(world(names.map((name) => near[name]), { x: "a" }), NOTHING_PLANNED, OPTIONS));
  expect(copies("a", "twin", "near", "far")).toEqual(["x: follow by far"]);
  expect(copies("a", "twin", "near")).toEqual(["x: follow by near"]);
  expect(copies("a", "twin")).toEqual(["x: follow by twin"]);
  expect(copies("a")).toEqual([]);
});

test("[DEC4] a draining server's rooms are its own to hand over; it takes none and keeps no copies", () => {
  const draining = world([server("a", { draining: true }), server("b"), server("c")], { x: "a", y: "b" });
  expect(said(decide(draining, previously({ x: "b", y: "a" }), OPTIONS))).toEqual(["y: follow by c"]);
});

test("[DEC5] a room over its share of the budget goes to the dedicated pool, or to where most is to spare, and stays", () => {
  const servers = [server("a", { used: 0.9 }), server("b", { used: 0.2 }), server("d", { used: 0, pool: "dedicated" })];
  const hot = world(servers, { hot: "a", x: "a", y: "b" }, { shares: { hot: 0.5 } });
  expect(said(decide(hot, NOTHING_PLANNED, quiet))).toEqual(["hot: move a to d"]);
  expect(said(decide(world(servers.slice(0, 2), { hot: "a", x: "a", y: "b" }, { shares: { hot: 0.5 } }), NOTHING_PLANNED, quiet))).toEqual(["hot: move a to b"]);
  const moved = world([server("a", { used: 0.4 }), server("b", { used: 0.7 }), server("d", { used: 0.5, pool: "dedicated" })], { hot: "d", x: "a" }, { shares: { hot: 0.5 } });
  expect(said(decide(moved, NOTHING_PLANNED, quiet))).toEqual([]);
});

test("[DEC6] a hot room stays where nowhere is better", () => {
  expect(said(decide(world([server("a", { used: 0.6 }), server("b", { used: 0.5 })], { hot: "a", x: "a" }, { shares: { hot: 0.5 } }), NOTHING_PLANNED, quiet))).toEqual([]);
  expect(said(decide(world([server("a", { used: 0.9 }), server("b")], { hot: "a" }, { shares: { hot: 0.9 } }), NOTHING_PLANNED, quiet))).toEqual([]);
});

test("[DEC7] a pin is kept while it can be", () => {
  const servers = [server("a"), server("b", { pool: "gold" }), server("c", { host: "h9" })];
  const pins = { x: { pool: "gold" }, y: { host: "h9" }, z: { pool: "nowhere" } };
  expect(said(decide(world(servers, { x: "a", y: "a", z: "a", w: "b" }, { pins }), NOTHING_PLANNED, quiet))).toEqual(["x: move a to b", "y: move a to c", "w: move b to a"]);
});

test("[DEC8] a plan that is not newer than the last is refused", () => {
  const placed = extend(NOTHING_PLANNED, { generation: 3, steps: [{ room: key("x"), action: { kind: "follow", by: id("b"), instead: undefined }, reason: "because" }] })!;
  expect(placed.rooms.get(key("x"))).toEqual({ replica: "b", reason: "because", generation: 3 });
  expect(extend(placed, { generation: 3, steps: [] })).toBeUndefined();
  expect(extend(placed, { generation: 4, steps: [{ room: key("x"), action: { kind: "promote", from: id("a"), to: id("b") }, reason: "" }] })!.rooms.get(key("x"))!.replica).toBeUndefined();
});

test("[DEC9] the same world leads to the same plan, whatever order it is told in", () => {
  const servers = [server("a"), server("b"), server("c")];
  const one = world(servers, { x: "gone", y: "a" });
  expect(decide({ ...one, servers: [...servers].reverse() }, NOTHING_PLANNED, OPTIONS)).toEqual(decide(one, NOTHING_PLANNED, OPTIONS));
});

/** Many servers over many days, every plan carried out at once. */
class Fleet {
  readonly #prng = new Prng(1);
  servers: ServerState[] = [];
  readonly rooms = new Map<RoomKey, { owner: ServerId }>();
  placements: Placements = NOTHING_PLANNED;
  #named = 0;
  #opened = 0;

  constructor(servers: number, rooms: number) {
    for (let count = 0; count < servers; count++) this.servers.push(this.#newServer(count));
    for (let count = 0; count < rooms; count++) this.open(this.servers[this.#opened % servers]!.server);
  }

  open(owner = this.servers[this.#prng.below(this.servers.length)]!.server): void {
    this.rooms.set(key(`r${++this.#opened}`), { owner });
  }

  /** Some rooms are released, as many are opened, wherever the hash has it. */
  turnOver(count: number): void {
    const released = [...this.rooms.keys()].filter(() => this.#prng.chance(count / this.rooms.size));
    for (const room of released) {
      this.rooms.delete(room);
      this.open();
    }
  }

  lose(index: number): ServerState {
    const lost = this.servers[index % this.servers.length]!;
    this.servers = this.servers.filter((state) => state !== lost);
    return lost;
  }

  /** It comes back under another name in the same place. */
  add({ host, zone }: ServerState): void {
    this.servers = [...this.servers, server(`s${++this.#named}`, { host, zone })];
  }

  decide(): Plan {
    const plan = decide({ servers: this.servers, rooms: this.rooms, pins: new Map(), shares: new Map() }, this.placements, OPTIONS);
    this.placements = extend(this.placements, plan)!;
    for (const { room, action } of plan.steps) if (action.kind === "promote" || action.kind === "move") this.rooms.set(room, { owner: action.to });
    return plan;
  }

  roomsOf(): Map<ServerId, number> {
    const counts = new Map(this.servers.map(({ server }) => [server, 0]));
    for (const { owner } of this.rooms.values()) counts.set(owner, (counts.get(owner) ?? 0) + 1);
    return counts;
  }

  #newServer(index: number): ServerState {
    return server(`s${++this.#named}`, { host: `h${index % 16}`, zone: `z${index % 4}` });
  }
}

const moves = (plan: Plan): number => plan.steps.filter(({ action }) => action.kind === "promote" || action.kind === "move").length;

/** As many rooms as one test run may cost; the figures hold for ten times as many (docs/adr/0007-placement-plans-and-the-log-decides.md). */
const ROOMS = 10_000;
const SERVERS = 16;

test("[DEC10] over a year of lost and restarted servers balance holds, copies stand apart, and little more moves than must", { timeout: 60_000 }, () => {
  const fleet = new Fleet(SERVERS, ROOMS);
  fleet.decide();
  let [moved, unavoidable, worst] = [0, 0, 0];
  const decideAndCount = (): void => {
    const mean = fleet.rooms.size / fleet.servers.length;
    const counts = fleet.roomsOf();
    const orphans = [...counts].reduce((sum, [owner, count]) => sum + (fleet.servers.some(({ server }) => server === owner) ? 0 : count), 0);
    const missing = fleet.servers.reduce((sum, { server }) => sum + Math.max(0, 0.9 * mean - counts.get(server)!), 0);
    unavoidable += orphans + missing;
    moved += moves(fleet.decide());
    for (const count of fleet.roomsOf().values()) worst = Math.max(worst, Math.abs(count - mean) / mean);
  };
  for (let week = 1; week <= 52; week++) {
    fleet.turnOver(ROOMS / 20);
    const lost = fleet.lose(week % SERVERS);
    decideAndCount();
    fleet.add(lost);
    decideAndCount();
  }
  const stateOf = new Map(fleet.servers.map((state) => [state.server, state]));
  for (const [room, { owner }] of fleet.rooms) expect(stateOf.get(fleet.placements.rooms.get(room)!.replica!)!.zone).not.toBe(stateOf.get(owner)!.zone);
  expect(worst).toBeLessThan(0.13);
  expect(moved / unavoidable).toBeLessThan(1.2);
  expect(said(fleet.decide())).toEqual([]);
});

test("[DEC11] the rooms of a server that is lost spread evenly over all others that stand apart from it", () => {
  const fleet = new Fleet(32, 16_000);
  fleet.decide();
  const lost = fleet.servers[0]!;
  fleet.servers = fleet.servers.slice(1);
  const before = fleet.roomsOf();
  fleet.decide();
  const gained = [...fleet.roomsOf()].filter(([server]) => fleet.servers.find((state) => state.server === server)!.zone !== lost.zone).map(([server, count]) => count - before.get(server)!);
  expect(Math.max(...gained) - Math.min(...gained)).toBeLessThanOrEqual(8);
});
