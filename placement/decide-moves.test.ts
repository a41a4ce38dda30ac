/** Moves that a plan must not make, the counts behind its choices, and how many steps it has. */

import { expect, test } from "vitest";

import type { RoomKey, ServerId } from "../shared/ids.ts";
import { decide, type DecideOptions } from "./decide.ts";
import { NOTHING_PLANNED, type Pin, type Placements, type PlacementWorld, type ServerState } from "./plan.ts";

const OPTIONS: DecideOptions = {
  hotShare: 0.3,
  imbalance: 0.1,
  movesMax: 1_000,
  followsMax: 1_000,
  fullShare: 0.9,
  reliefMax: 8,
  keepsReplicas: false,
};
const key = (name: string) => `acme.${name}` as RoomKey;
const server = (name: string, more: Partial<ServerState> = {}): ServerState => ({
  server: name as ServerId,
  host: name,
  zone: "",
  pool: "",
  draining: false,
  used: 0,
  ...more,
});
type More = { readonly pins?: Record<string, Pin>; readonly shares?: Record<string, number>; readonly cooled?: readonly string[] };
const byKey = <Value>(record: Record<string, Value>): Map<RoomKey, Value> =>
  new Map(Object.entries(record).map(([room, value]) => [key(room), value]));
const world = (servers: readonly ServerState[], owners: Record<string, string>, more: More = {}): PlacementWorld => ({
  servers,
  rooms: new Map([...byKey(owners)].map(([room, owner]) => [room, { owner: owner as ServerId }])),
  pins: byKey(more.pins ?? {}),
  shares: byKey(more.shares ?? {}),
  cooled: new Set((more.cooled ?? []).map(key)),
});
const previously = (replicas: Record<string, string>): Placements => ({
  generation: 7,
  rooms: new Map([...byKey(replicas)].map(([room, replica]) => [room, { replica: replica as ServerId, reason: "", generation: 7 }])),
});
const stepsOf = (observed: PlacementWorld, options: Partial<DecideOptions> = {}, previous = NOTHING_PLANNED): string[] =>
  decide(observed, previous, { ...OPTIONS, ...options }).steps.map(({ room, action }) => {
    const where = "to" in action ? `${action.from} to ${action.to}` : `by ${action.by}`;
    return `${room.slice("acme.".length)}: ${action.kind} ${where}`;
  });
const actionsOf = (observed: PlacementWorld, previous = NOTHING_PLANNED, options = OPTIONS) =>
  decide(observed, previous, options).steps.map(({ room, action }) => ({ room: room.slice("acme.".length), ...action }));
const owned = (counts: Record<string, number>): Record<string, string> =>
  Object.fromEntries(
    Object.entries(counts).flatMap(([owner, count]) => Array.from({ length: count }, (_, index) => [`${owner}${index}`, owner])),
  );

test("[DEC20] a hot room that is alone on its server stays, also beside an empty dedicated server", () => {
  const servers = [server("a", { used: 0.6 }), server("d", { pool: "dedicated" })];
  expect(actionsOf(world(servers, { hot: "a" }, { shares: { hot: 0.6 } }))).toEqual([]);
  expect(actionsOf(world(servers, { hot: "a", x: "a" }, { shares: { hot: 0.6 } }))).toEqual([
    { room: "hot", kind: "move", from: "a", to: "d" },
  ]);
});

test("[DEC21] a full server keeps a room that another server would have nearly as little space for", () => {
  const rooms = { warm: "a", x: "a", y: "b" };
  const servers = (used: number) => [server("a", { used: 0.93 }), server("b", { used })];
  expect(actionsOf(world(servers(0.8), rooms, { shares: { warm: 0.06 } }))).toEqual([]);
  expect(actionsOf(world(servers(0.7), rooms, { shares: { warm: 0.06 } }))).toEqual([{ room: "warm", kind: "move", from: "a", to: "b" }]);
});

test("[DEC22] the plan moves no hot room of a draining server, which hands its rooms over itself", () => {
  const servers = [server("a", { used: 0.9, draining: true }), server("b")];
  expect(actionsOf(world(servers, { hot: "a", x: "a", y: "b" }, { shares: { hot: 0.5 } }))).toEqual([]);
});

test("[DEC23] a full server gets no rooms only because it has few", () => {
  const rooms = owned({ a: 100, c: 90 });
  expect(actionsOf(world([server("a"), server("b", { used: 0.95 }), server("c")], rooms))).toEqual([]);
  expect(actionsOf(world([server("a"), server("b"), server("c")], rooms)).length).toBeGreaterThan(0);
});

test("[DEC24] a lost owner's room does not go to a draining server with its replica", () => {
  const servers = [server("a", { draining: true }), server("b")];
  const [step] = actionsOf(world(servers, { x: "gone" }), previously({ x: "a" }));
  expect(step).toEqual({ room: "x", kind: "promote", from: "gone", to: "b" });
});

test("[DEC25] a replica that moves away no longer counts for its server", () => {
  const keeping = { ...OPTIONS, imbalance: 10, keepsReplicas: true };
  const servers = [server("a", { zone: "1" }), server("b", { zone: "1" }), server("c", { zone: "2" }), server("e", { zone: "2" })];
  const observed = world(servers, { x: "a", y: "a", r: "e", q: "c" });
  const steps = actionsOf(observed, previously({ x: "b", y: "b", r: "a" }), keeping);
  expect(steps.map((step) => [step.room, step.kind === "follow" && step.by])).toEqual([
    ["x", "c"],
    ["y", "e"],
    ["q", "b"],
  ]);
});

test("[DEC26] of servers with equally many replicas of an owner, the one with the fewest replicas of all owners is chosen", () => {
  const keeping = { ...OPTIONS, keepsReplicas: true };
  const rooms = { x: "a", y: "d", z: "d" };
  const servers = [server("a"), server("b"), server("c"), server("d")];
  const [step] = actionsOf(world(servers, rooms), previously({ y: "b", z: "b" }), keeping);
  expect(step).toEqual({ room: "x", kind: "follow", by: "c", instead: undefined });
});

test("[DEC27] a room whose planned replica is its owner gets another replica, and its owner receives no command to drop one", () => {
  const keeping = { ...OPTIONS, keepsReplicas: true };
  expect(actionsOf(world([server("a"), server("b")], { x: "a" }), previously({ x: "a" }), keeping)).toEqual([
    { room: "x", kind: "follow", by: "b", instead: undefined },
  ]);
});

test("[DEC29] a plan places and ends a limited number of replicas", () => {
  const two = world([server("a"), server("b")], owned({ a: 3 }));
  expect(stepsOf(two, { keepsReplicas: true, followsMax: 2 })).toEqual(["a0: follow by b", "a1: follow by b"]);
  const kept = previously({ a0: "b", a1: "b", a2: "b" });
  expect(stepsOf(two, { followsMax: 2 }, kept)).toEqual(["a0: unfollow by b", "a1: unfollow by b"]);
  expect(stepsOf(two, {}, previously({ gone: "b" })), "a released room is no part of a plan").toEqual([]);
});

test("[DEC30] rooms on dedicated servers stay there, whatever their share and however many they are", () => {
  const servers = [server("a"), server("d", { used: 0.95, pool: "dedicated" }), server("e", { pool: "dedicated" })];
  expect(stepsOf(world(servers, { hot: "d", x: "d" }, { shares: { hot: 0.5 } }))).toEqual([]);
  expect(stepsOf(world(servers, { warm: "d", x: "d" }, { shares: { warm: 0.2 } }))).toEqual([]);
  const many = world([server("d", { pool: "dedicated" }), server("e", { pool: "dedicated" })], owned({ d: 100 }));
  expect(stepsOf(many)).toEqual([]);
});

test("[DEC31] a draining server's pinned room is not moved by the plan as well", () => {
  const servers = [server("a", { draining: true }), server("b", { pool: "gold" })];
  expect(stepsOf(world(servers, { x: "a" }, { pins: { x: { pool: "gold" } } }))).toEqual([]);
});

test("[DEC32] a lost owner's pinned room goes to its pool, although another server has its replica", () => {
  const servers = [server("a"), server("b", { pool: "gold" })];
  const steps = stepsOf(world(servers, { x: "gone" }, { pins: { x: { pool: "gold" } } }), {}, previously({ x: "a" }));
  expect(steps[0]).toBe("x: promote gone to b");
});

test("[DEC33] the rooms of a lost server without replicas are divided among the others", () => {
  expect(stepsOf(world([server("a"), server("b")], { x: "gone", y: "gone" }))).toEqual(["x: promote gone to a", "y: promote gone to b"]);
});

test("[DEC34] a plan moves a limited number of misplaced, cooled and evenly distributed rooms", () => {
  const gold = world(
    [server("a"), server("b", { pool: "gold" })],
    { x: "a", y: "a" },
    { pins: { x: { pool: "gold" }, y: { pool: "gold" } } },
  );
  expect(stepsOf(gold, { movesMax: 1 })).toEqual(["x: move a to b"]);
  const dedicated = world([server("a"), server("d", { pool: "dedicated" })], { y: "d", x: "d" }, { cooled: ["y", "x"] });
  expect(stepsOf(dedicated, { movesMax: 1 }), "in the order of their names").toEqual(["x: move d to a"]);
  expect(stepsOf(world([server("a"), server("b")], owned({ a: 100 })), { movesMax: 3 })).toHaveLength(3);
});

test("[DEC35] the load of a room that a plan has moved counts at its new server", () => {
  const servers = [server("a", { used: 1.2 }), server("b", { used: 0.1 }), server("c", { used: 0.2 })];
  const rooms = { x: "a", y: "a", z: "a", p: "b", q: "c" };
  expect(stepsOf(world(servers, rooms, { shares: { x: 0.4, y: 0.35 } }))).toEqual(["x: move a to b", "y: move a to c"]);
});

test("[DEC36] a hot room moves to an empty dedicated server even if it is too large for it, and to no server that would be as full", () => {
  const dedicated = world(
    [server("a", { used: 1.1 }), server("d", { pool: "dedicated" })],
    { hot: "a", x: "a" },
    { shares: { hot: 0.95 } },
  );
  expect(stepsOf(dedicated)).toEqual(["hot: move a to d"]);
  const equal = world([server("a", { used: 0.8 }), server("b", { used: 0.35 })], { hot: "a", x: "a" }, { shares: { hot: 0.4 } });
  expect(stepsOf(equal)).toEqual([]);
});

test("[DEC37] a full server gives rooms only to servers of its pool with space for them", () => {
  const other = world(
    [server("a", { used: 0.95 }), server("g", { pool: "gold" })],
    { x: "a", y: "a", z: "g" },
    { shares: { x: 0.2 }, pins: { z: { pool: "gold" } } },
  );
  expect(stepsOf(other)).toEqual([]);
  const tooLarge = world(
    [server("a", { used: 1.3 }), server("b", { used: 0.85 })],
    { x: "a", y: "a", z: "b" },
    { shares: { x: 0.2 }, pins: { z: { pool: "gold" } } },
  );
  expect(stepsOf(tooLarge).filter((step) => step.startsWith("x"))).toEqual([]);
});

test("[DEC38] one server with many more rooms, or with many fewer, is balanced; pinned and large rooms stay", () => {
  const servers = ["a", "b", "c", "d", "e"].map((name) => server(name));
  expect(stepsOf(world(servers, owned({ a: 160, b: 100, c: 100, d: 100, e: 100 }))).every((step) => step.includes("move a to"))).toBe(true);
  expect(stepsOf(world(servers, owned({ a: 160, b: 100, c: 100, d: 100, e: 100 }))).length).toBeGreaterThan(0);
  expect(stepsOf(world(servers, owned({ a: 100, b: 100, c: 100, d: 100, e: 40 }))).length).toBeGreaterThan(0);
  const rooms = owned({ a: 60, b: 0 });
  const names = Object.keys(rooms);
  const pins = Object.fromEntries(names.map((name) => [name, { host: "a" }]));
  expect(stepsOf(world(servers.slice(0, 2), rooms, { pins }))).toEqual([]);
  expect(stepsOf(world(servers.slice(0, 2), rooms, { shares: Object.fromEntries(names.map((name) => [name, 0.01])) }))).toEqual([]);
  expect(stepsOf(world(servers.slice(0, 2), owned({ a: 10_900, b: 10_000 })), { imbalance: 0.1 }), "within the allowed difference").toEqual(
    [],
  );
});

test("[DEC39] the replicas of one owner are spread, also over servers with many replicas of other owners, but never to a nearer server", () => {
  const keeping = { keepsReplicas: true };
  for (const [few, many] of [
    ["b", "c"],
    ["c", "b"],
  ] as const) {
    const servers = [server("a"), server("b"), server("c"), server("d", { draining: true })];
    const owners = { x: "a", y: "a", u: "d", v: "d", w: "d" };
    expect(stepsOf(world(servers, owners), keeping, previously({ y: few, u: many, v: many, w: many }))).toEqual([`x: follow by ${many}`]);
    const apart = [server("a", { zone: "z1" }), server(few, { zone: "z2" }), server(many, { zone: "z1" })];
    expect(stepsOf(world(apart, { x: "a", y: "a" }), keeping, previously({ y: few }))).toEqual([`x: follow by ${few}`]);
  }
});

test("[DEC40] a pin that no server can satisfy moves no room, and a move names the pin", () => {
  const servers = [server("a"), server("b"), server("p", { pool: "gold", host: "h" })];
  const pinned = (pin: Pin) => world(servers, { x: "a", y: "a" }, { pins: { x: pin } });
  expect(stepsOf(pinned({ host: "nowhere" }))).toEqual([]);
  const reasons = [{ pool: "gold" }, { pool: "gold", host: "h" }].map(
    (pin) => decide(pinned(pin), NOTHING_PLANNED, OPTIONS).steps[0]!.reason.split(";")[0],
  );
  expect(reasons).toEqual(["it is pinned to the pool gold", "it is pinned to the pool gold and the host h"]);
});

test("[DEC41] load and counts of one server or pool move no room of another", () => {
  const full = world([server("a", { used: 0.95 }), server("b", { used: 0.5 })], { x: "a", y: "a", big: "b" }, { shares: { big: 0.2 } });
  expect(stepsOf(full).filter((step) => !step.includes(" a to b"))).toEqual([]);
  expect(stepsOf(full).filter((step) => step.startsWith("big"))).toEqual([]);
  const pooled = [server("a", { used: 0.85 }), server("g", { pool: "gold" })];
  expect(stepsOf(world(pooled, owned({ a: 100 })))).toEqual([]);
  expect(stepsOf(world(pooled, { hot: "a", x: "a" }, { shares: { hot: 0.5 } }))).toEqual([]);
});

test("[DEC42] the largest hot room is moved first, and of equal ones the first by name, also to a dedicated server with other rooms", () => {
  const first = (shares: Record<string, number>) =>
    stepsOf(world([server("a", { used: 0.95 }), server("b")], { x: "a", y: "a", z: "a" }, { shares }), { movesMax: 1 });
  expect(first({ x: 0.35, y: 0.4 })).toEqual(["y: move a to b"]);
  expect(first({ y: 0.4, x: 0.4 })).toEqual(["x: move a to b"]);
  const dedicated = [server("a", { used: 0.95 }), server("b"), server("d", { used: 0.3, pool: "dedicated" })];
  expect(stepsOf(world(dedicated, { x: "a", y: "a", z: "d" }, { shares: { x: 0.4 } }))).toEqual(["x: move a to d"]);
});

test("[DEC43] balancing and relief end as soon as the servers are balanced, or the plan has as many moves as it may", () => {
  const uneven = world([server("a"), server("b")], owned({ a: 100 }));
  expect(stepsOf(uneven)).toHaveLength(29); // A mean of 50, and three standard deviations more.
  const full = world([server("a", { used: 0.98 }), server("b")], owned({ a: 20, b: 20 }), { shares: { a0: 0.01, a1: 0.01 } });
  expect(stepsOf(full, { movesMax: 1 })).toHaveLength(1);
});

test("[DEC44] the replica of a moved room is placed for its new owner, and ends if none is kept; without a server a room stays lost", () => {
  const lost = world([server("a"), server("b")], { x: "gone" });
  expect(stepsOf(lost, { keepsReplicas: true })).toEqual(["x: promote gone to a", "x: follow by b"]);
  const draining = world([server("a"), server("c", { draining: true })], { x: "gone" });
  expect(stepsOf(draining, {}, previously({ x: "c" }))).toEqual(["x: promote gone to a", "x: unfollow by c"]);
  const unkept = { generation: 7, rooms: new Map([[key("x"), { replica: undefined, reason: "", generation: 7 }]]) };
  expect(stepsOf(world([server("a")], { x: "a" }), {}, unkept)).toEqual([]);
  expect(stepsOf(world([server("c", { draining: true })], { x: "gone" }))).toEqual([]);
});

test("[DEC45] a pinned room without a known share is moved, and its server is relieved as well", () => {
  const servers = [server("a", { used: 0.98 }), server("b"), server("g", { pool: "gold" })];
  const steps = stepsOf(world(servers, { x: "a", y: "a", z: "a" }, { pins: { x: { pool: "gold" } } }));
  expect(steps[0]).toBe("x: move a to g");
  expect(steps.length).toBeGreaterThan(1);
});

test("[DEC46] a room that the plan moves already is not counted again when its full server is relieved", () => {
  const full = world([server("a", { used: 1.6 }), server("b")], { hot: "a", x: "a", y: "a", z: "a" }, { shares: { hot: 0.35 } });
  expect(stepsOf(full)).toEqual(["hot: move a to b", "x: move a to b"]);
});
