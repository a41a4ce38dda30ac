/** The model of the balancer alone. `routing.system.test.ts` compares it with HAProxy. */

import { expect, test } from "vitest";

import { BALANCE_FACTOR, BalancerModel } from "./balancer-model.ts";
import { routingFigures, routingKeyOf, seatRooms, sizesOf } from "./gateways-of-rooms.ts";

const ROOMS = 400;
const MEMBERS = 10;
const sizes = Array.from({ length: ROOMS }, () => MEMBERS);

test("without a bound, all connections with a key reach one gateway, and a further gateway takes over few keys", () => {
  const [eight, nine] = [8, 9].map((gateways) => new BalancerModel({ gateways, balanceFactor: 0 }));
  const keys = sizes.map((_, room) => routingKeyOf(`room-${room}`));
  const [before, after] = [eight!, nine!].map((balancer) => keys.map((key) => balancer.connect("by key", key)));
  expect(keys.map((key) => eight!.connect("by key", key))).toEqual(before);
  const moved = keys.filter((_, index) => before![index] !== after![index]);
  expect(new Set(moved.map((key) => nine!.connect("by key", key)))).toEqual(new Set([8]));
  expect(moved.length).toBeLessThan(ROOMS / 3);
});

test("no gateway gets more than the bound, even if all connections have the same key", () => {
  const balancer = new BalancerModel({ gateways: 8, balanceFactor: BALANCE_FACTOR });
  for (let index = 0; index < 800; index++) balancer.connect("by key", "3fa9");
  expect(Math.max(...balancer.connections)).toBe(150);
  expect(balancer.connections.filter((count) => count > 0)).toHaveLength(6);
});

test("connections without a key are spread equally, also after some have left", () => {
  const balancer = new BalancerModel({ gateways: 3, balanceFactor: BALANCE_FACTOR });
  const left = Array.from({ length: 30 }, () => balancer.connect("by load", "")).filter((gateway) => gateway === 1);
  for (const gateway of left.slice(0, 6)) balancer.disconnect(gateway);
  for (let index = 0; index < 6; index++) expect(balancer.connect("by load", "")).toBe(1);
});

test("members meet by the key, and are on most gateways without it", () => {
  const [byKey, byLoad] = (["by key", "by load"] as const).map((balancing) =>
    routingFigures(seatRooms(sizes, balancing, { gateways: 8, balanceFactor: BALANCE_FACTOR }), 2),
  );
  expect(byKey!.gatewaysMean).toBeLessThan(1.1);
  expect(byKey!.busiest).toBeLessThanOrEqual(1.51);
  expect(byLoad!.gatewaysMean).toBeGreaterThan(5);
  expect(byLoad!.copies).toBeCloseTo(byLoad!.gatewaysMean, 5);
  expect(byLoad!.deltas).toBe(Math.round(byLoad!.gatewaysMean * ROOMS));
  expect(byLoad!.messages).toBe(16);
});

test("figures count gateways, copies and messages of rooms of different sizes", () => {
  const seats = [new Map([[0, 9]]), new Map([[0, 1], [1, 1]])]; // prettier-ignore
  expect(routingFigures(seats, 2)).toEqual({
    gatewaysMean: 1.5,
    gatewaysP99: 2,
    copies: (1 * 9 + 2 * 2) / 11,
    deltas: 3,
    messages: 3,
    busiest: 20 / 11,
  });
});

test("the sizes of rooms have the median and the 95th percentile that were asked for", () => {
  const mix = sizesOf({ rooms: 10_000, median: 4, p95: 30, largeRooms: 10 });
  expect(mix[5_000]).toBeGreaterThanOrEqual(3);
  expect(mix[5_000]).toBeLessThanOrEqual(4);
  expect(mix[9_500]).toBeGreaterThan(26);
  expect(mix[9_500]).toBeLessThan(34);
  expect(mix.filter((size) => size === 1_000)).toHaveLength(10);
});
