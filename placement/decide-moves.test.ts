/** Moves that a plan must not make, and the counts behind its choices. */

import { expect, test } from "vitest";

import type { RoomKey, ServerId } from "../shared/ids.ts";
import { decide, type DecideOptions } from "./decide.ts";
import { NOTHING_PLANNED, type Placements, type PlacementWorld, type ServerState } from "./plan.ts";

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
const world = (servers: readonly ServerState[], owners: Record<string, string>, shares: Record<string, number> = {}): PlacementWorld => ({
  servers,
  rooms: new Map(Object.entries(owners).map(([room, owner]) => [key(room), { owner: owner as ServerId }])),
  pins: new Map(),
  shares: new Map(Object.entries(shares).map(([room, share]) => [key(room), share])),
  cooled: new Set(),
});
const previously = (replicas: Record<string, string>): Placements => ({
  generation: 7,
  rooms: new Map(
    Object.entries(replicas).map(([room, replica]) => [key(room), { replica: replica as ServerId, reason: "", generation: 7 }]),
  ),
});
const actionsOf = (observed: PlacementWorld, previous = NOTHING_PLANNED, options = OPTIONS) =>
  decide(observed, previous, options).steps.map(({ room, action }) => ({ room: room.slice("acme.".length), ...action }));
const owned = (counts: Record<string, number>): Record<string, string> =>
  Object.fromEntries(
    Object.entries(counts).flatMap(([owner, count]) => Array.from({ length: count }, (_, index) => [`${owner}${index}`, owner])),
  );

test("[DEC20] a hot room that is alone on its server stays, also beside an empty dedicated server", () => {
  const servers = [server("a", { used: 0.6 }), server("d", { pool: "dedicated" })];
  expect(actionsOf(world(servers, { hot: "a" }, { hot: 0.6 }))).toEqual([]);
  expect(actionsOf(world(servers, { hot: "a", x: "a" }, { hot: 0.6 }))).toEqual([{ room: "hot", kind: "move", from: "a", to: "d" }]);
});

test("[DEC21] a full server keeps a room that another server would have nearly as little space for", () => {
  const rooms = { warm: "a", x: "a", y: "b" };
  const servers = (used: number) => [server("a", { used: 0.93 }), server("b", { used })];
  expect(actionsOf(world(servers(0.8), rooms, { warm: 0.06 }))).toEqual([]);
  expect(actionsOf(world(servers(0.7), rooms, { warm: 0.06 }))).toEqual([{ room: "warm", kind: "move", from: "a", to: "b" }]);
});

test("[DEC22] the plan moves no hot room of a draining server, which hands its rooms over itself", () => {
  const servers = [server("a", { used: 0.9, draining: true }), server("b")];
  expect(actionsOf(world(servers, { hot: "a", x: "a", y: "b" }, { hot: 0.5 }))).toEqual([]);
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
