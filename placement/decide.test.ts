import { expect, test } from "vitest";

import type { RoomKey, ServerId } from "../shared/ids.ts";
import { decide, type DecideOptions } from "./decide.ts";
import {
  NOTHING_PLANNED,
  type Placements,
  type PlacementPlan,
  type Pin,
  type ServerState,
  type PlacementWorld,
  replicaAfter,
} from "./plan.ts";

const OPTIONS: DecideOptions = {
  hotShare: 0.3,
  imbalance: 0.1,
  movesMax: 1_000_000,
  followsMax: 1_000_000,
  fullShare: 0.9,
  reliefMax: 8,
  keepsReplicas: true,
};
const id = (name: string) => name as ServerId;
const key = (name: string) => `acme.${name}` as RoomKey;

function server(name: string, more: Partial<ServerState> = {}): ServerState {
  return { server: id(name), host: name, zone: "", pool: "", draining: false, used: 0, ...more };
}

function world(
  servers: readonly ServerState[],
  owners: Record<string, string>,
  more: { pins?: Record<string, Pin>; shares?: Record<string, number>; cooled?: string[] } = {},
): PlacementWorld {
  const entries = <Value>(record: Record<string, Value>): [RoomKey, Value][] =>
    Object.entries(record).map(([room, value]) => [key(room), value]);
  return {
    servers,
    rooms: new Map(entries(owners).map(([room, owner]) => [room, { owner: id(owner) }])),
    pins: new Map(entries(more.pins ?? {})),
    shares: new Map(entries(more.shares ?? {})),
    cooled: new Set((more.cooled ?? []).map(key)),
  };
}

const previously = (replicas: Record<string, string>): Placements => ({
  generation: 7,
  rooms: new Map(Object.entries(replicas).map(([room, replica]) => [key(room), { replica: id(replica), reason: "", generation: 7 }])),
});
const stepsOf = (plan: PlacementPlan): string[] =>
  plan.steps.map(({ room, action }) => {
    const name = room.slice("acme.".length);
    if (action.kind === "follow" || action.kind === "unfollow") return `${name}: ${action.kind} by ${action.by}`;
    return `${name}: ${action.kind} ${action.from} to ${action.to}`;
  });
const quiet = { ...OPTIONS, keepsReplicas: false };

test("[DEC1] a cluster without problems gets an empty plan", () => {
  const calm = world([server("a"), server("b")], { x: "a", y: "b" });
  expect(stepsOf(decide(calm, previously({ x: "b", y: "a" }), OPTIONS))).toEqual([]);
});

test("[DEC2] the plan gives a lost owner's rooms to the server with a replica, else to the server with the fewest rooms", () => {
  const lost = world([server("a"), server("b")], { x: "gone", y: "gone", z: "a" });
  const plan = decide(lost, previously({ x: "a" }), quiet);
  expect(stepsOf(plan)).toEqual(["x: promote gone to a", "y: promote gone to b"]);
  expect(plan.steps[0]!.reason).toBe("its owner gone has missed its heartbeats; a has a replica");
  expect(plan.generation).toBe(8);
  const pooled = world([server("p", { pool: "gold" })], { x: "gone" });
  expect(stepsOf(decide(pooled, NOTHING_PLANNED, quiet)), "no server outside the pools is alive").toEqual(["x: promote gone to p"]);
});

test("[DEC3] the plan places replicas as far from the owner as possible: in another zone, else on another host, else on another server", () => {
  const near = {
    a: server("a", { host: "h1", zone: "z1" }),
    // A later name, so that no server is chosen by its name.
    twin: server("b", { host: "h1", zone: "z1" }),
    near: server("c", { host: "h2", zone: "z1" }),
    far: server("d", { host: "h3", zone: "z2" }),
  };
  const replicas = (...names: (keyof typeof near)[]): string[] =>
    stepsOf(
      decide(
        world(
          names.map((name) => near[name]),
          { x: "a" },
        ),
        NOTHING_PLANNED,
        OPTIONS,
      ),
    );
  expect(replicas("a", "twin", "near", "far")).toEqual(["x: follow by d"]);
  expect(replicas("a", "twin", "near")).toEqual(["x: follow by c"]);
  expect(replicas("a", "twin")).toEqual(["x: follow by b"]);
  expect(replicas("a")).toEqual([]);
});

test("[DEC4] a draining server hands its rooms over itself; it accepts no rooms and keeps no replicas", () => {
  const draining = world([server("a", { draining: true }), server("b"), server("c")], { x: "a", y: "b" });
  expect(stepsOf(decide(draining, previously({ x: "b", y: "a" }), OPTIONS))).toEqual(["y: follow by c"]);
});

test("[DEC5] a room over its share of the budget moves to the dedicated pool, or to the server with most to spare, and stays there", () => {
  const servers = [server("a", { used: 0.9 }), server("b", { used: 0.2 }), server("d", { used: 0, pool: "dedicated" })];
  const hot = world(servers, { hot: "a", x: "a", y: "b" }, { shares: { hot: 0.5 } });
  expect(stepsOf(decide(hot, NOTHING_PLANNED, quiet))).toEqual(["hot: move a to d"]);
  expect(
    stepsOf(decide(world(servers.slice(0, 2), { hot: "a", x: "a", y: "b" }, { shares: { hot: 0.5 } }), NOTHING_PLANNED, quiet)),
  ).toEqual(["hot: move a to b"]);
  const moved = world(
    [server("a", { used: 0.4 }), server("b", { used: 0.7 }), server("d", { used: 0.5, pool: "dedicated" })],
    { hot: "d", x: "a" },
    { shares: { hot: 0.5 } },
  );
  expect(stepsOf(decide(moved, NOTHING_PLANNED, quiet))).toEqual([]);
});

test("[DEC6] a hot room stays where it is if no server is better", () => {
  expect(
    stepsOf(
      decide(
        world([server("a", { used: 0.6 }), server("b", { used: 0.5 })], { hot: "a", x: "a" }, { shares: { hot: 0.5 } }),
        NOTHING_PLANNED,
        quiet,
      ),
    ),
  ).toEqual([]);
  expect(
    stepsOf(decide(world([server("a", { used: 0.9 }), server("b")], { hot: "a" }, { shares: { hot: 0.9 } }), NOTHING_PLANNED, quiet)),
  ).toEqual([]);
});

test("[DEC7] a pin is kept while a server satisfies it", () => {
  const servers = [server("a"), server("b", { pool: "gold" }), server("c", { host: "h9" })];
  const pins = { x: { pool: "gold" }, y: { host: "h9" }, z: { pool: "nowhere" } };
  expect(stepsOf(decide(world(servers, { x: "a", y: "a", z: "a", w: "b" }, { pins }), NOTHING_PLANNED, quiet))).toEqual([
    "x: move a to b",
    "y: move a to c",
    "w: move b to a",
  ]);
});

test("[DEC28] a server that becomes a room's owner keeps no replica of it, and another server keeps its own", () => {
  const promotion = { kind: "promote", from: id("a"), to: id("b") } as const;
  expect([replicaAfter(promotion, id("b")), replicaAfter(promotion, id("c"))]).toEqual([undefined, "c"]);
});

test("[DEC9] the plan depends only on the world, not on the order in which its parts are listed", () => {
  const servers = [server("a"), server("b"), server("c")];
  const one = world(servers, { x: "gone", y: "a" });
  expect(decide({ ...one, servers: [...servers].reverse() }, NOTHING_PLANNED, OPTIONS)).toEqual(decide(one, NOTHING_PLANNED, OPTIONS));
});

test("[DEC12] a hot room moves to the dedicated server even if the room itself gains nothing: its neighbours gain", () => {
  const servers = [server("a", { used: 0.52 }), server("d", { used: 0.05, pool: "dedicated" })];
  const hot = world(servers, { hot: "a", x: "a" }, { shares: { hot: 0.5 } });
  expect(stepsOf(decide(hot, NOTHING_PLANNED, quiet))).toEqual(["hot: move a to d"]);
  const taken = world(
    [server("a", { used: 0.52 }), server("b", { used: 0.5 }), server("d", { used: 0.6, pool: "dedicated" })],
    { hot: "a", x: "a", y: "b", z: "d" },
    { shares: { hot: 0.5 } },
  );
  expect(stepsOf(decide(taken, NOTHING_PLANNED, quiet))).toEqual([]);
});

test("[DEC13] a server that uses nearly all of its budget, by edits, bytes or memory, gives rooms to the servers with most to spare, a few at a time", () => {
  const rooms = Object.fromEntries(Array.from({ length: 40 }, (_, index) => [`r${index}`, ["a", "b", "c"][index % 3]!]));
  const busy = world([server("a", { used: 0.98 }), server("b", { used: 0.4 }), server("c", { used: 0.3 })], rooms, {
    shares: { r0: 0.06, r3: 0.05 },
  });
  const plan = decide(busy, NOTHING_PLANNED, quiet);
  expect(stepsOf(plan)).toEqual(["r0: move a to c", "r3: move a to c"]);
  expect(plan.steps[0]!.reason).toBe("a uses 98% of its budget, c 30%");
  const full = world([server("a", { used: 1.2 }), server("b", { used: 0.88 }), server("c", { used: 1 })], rooms);
  expect(stepsOf(decide(full, NOTHING_PLANNED, quiet)).every((step) => step.endsWith("to b"))).toBe(true);
  const ordinary = world(
    [server("a", { used: 2 }), server("b"), server("c")],
    Object.fromEntries(Array.from({ length: 99 }, (_, index) => [`r${index}`, ["a", "b", "c"][index % 3]!])),
  );
  expect(decide(ordinary, NOTHING_PLANNED, quiet).steps.length).toBe(8);
  expect(decide(ordinary, NOTHING_PLANNED, { ...quiet, reliefMax: 3 }).steps.length).toBe(3);
  expect(stepsOf(decide(busy, NOTHING_PLANNED, { ...quiet, fullShare: 0.99 }))).toEqual([]);
});

test("[DEC14] a server that uses nearly all of its budget accepts no room while another server can", () => {
  const full = world([server("a", { used: 0.95 }), server("b", { used: 0.5 })], { x: "gone", y: "b", z: "b" });
  expect(stepsOf(decide(full, NOTHING_PLANNED, quiet))).toEqual(["x: promote gone to b"]);
  expect(
    stepsOf(decide(world([server("a", { used: 0.95 }), server("b", { used: 1 })], { x: "gone", y: "b" }), NOTHING_PLANNED, quiet)),
  ).toEqual(["x: promote gone to a"]);
});

test("[DEC16] a replica stays where it is unless an eligible server is farther from the owner", () => {
  const gold = { pool: "gold", zone: "z1" };
  const servers = [server("p1", gold), server("p2", gold), server("p3", gold), server("far", { zone: "z2" })];
  const pinned = (more: readonly ServerState[]) => world([...servers, ...more], { x: "p1" }, { pins: { x: { pool: "gold" } } });
  for (const keeper of ["p2", "p3"]) expect(stepsOf(decide(pinned([]), previously({ x: keeper }), OPTIONS))).toEqual([]);
  expect(stepsOf(decide(pinned([server("p4", { pool: "gold", zone: "z2" })]), previously({ x: "p2" }), OPTIONS))).toEqual([
    "x: follow by p4",
  ]);
});

test("[DEC17] while no general server is alive, rooms stay in the pool that they moved to", () => {
  const pools = [server("p1", { pool: "a" }), server("p2", { pool: "a" }), server("q1", { pool: "b" })];
  expect(stepsOf(decide(world(pools, { x: "p1", y: "p1", z: "q1" }), NOTHING_PLANNED, quiet))).toEqual([]);
  expect(stepsOf(decide(world([...pools, server("g")], { x: "p1" }), NOTHING_PLANNED, quiet))).toEqual(["x: move p1 to g"]);
});

test("[DEC18] a room that has cooled leaves the dedicated pool for the general server with the fewest rooms among those with as much to spare", () => {
  const servers = [
    server("a", { used: 0.85 }),
    server("b", { used: 0.4 }),
    server("d", { used: 0.2, pool: "dedicated" }),
    server("g", { pool: "gold" }),
  ];
  const owners = { hot: "d", y: "b", z: "d" };
  const cooled = (change: Partial<Parameters<typeof world>[2]> = {}, on = servers) =>
    stepsOf(decide(world(on, owners, { cooled: ["hot"], shares: { hot: 0.1 }, ...change }), NOTHING_PLANNED, quiet)).filter((step) =>
      step.startsWith("hot"),
    );
  expect(cooled()).toEqual(["hot: move d to b"]);
  expect(cooled({ shares: {} })).toEqual(["hot: move d to a"]);
  expect(cooled({ pins: { hot: { pool: "dedicated" } } })).toEqual([]);
  expect(
    cooled(
      {},
      servers.filter(({ pool }) => pool !== ""),
    ),
  ).toEqual([]);
  expect(
    cooled(
      {},
      servers.map((each) => ({ ...each, used: 0.85 })),
    ),
  ).toEqual([]);
  expect(
    stepsOf(decide(world(servers, { ...owners, hot: "b" }, { shares: { hot: 0.1 } }), NOTHING_PLANNED, quiet)),
    "the room stays there",
  ).toEqual([]);
});

test("[DEC19] a plan moves a limited number of rooms, for whatever reason; rooms of lost servers are not counted", () => {
  const servers = [server("a", { used: 1.2 }), server("b"), server("c"), server("d")];
  const hot = { x: 0.4, y: 0.4, z: 0.4 };
  const owners = { x: "a", y: "a", z: "a", p: "lost", q: "lost" };
  const kindsOf = (movesMax: number) =>
    decide(world(servers, owners, { shares: hot }), previously({}), { ...quiet, movesMax }).steps.map(({ action }) => action.kind);
  expect(kindsOf(1)).toEqual(["promote", "promote", "move"]);
  expect(kindsOf(2)).toEqual(["promote", "promote", "move", "move"]);
});

test("[DEC19] rooms of lost servers do not delay the moves of other rooms", () => {
  const pinned = world([server("a"), server("b", { pool: "big" })], { x: "a", p: "lost" }, { pins: { x: { pool: "big" } } });
  expect(stepsOf(decide(pinned, previously({}), { ...quiet, movesMax: 1 }))).toEqual(["p: promote lost to a", "x: move a to b"]);
});
