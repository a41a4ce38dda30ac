/** Few participants: the experiment counts correctly. Times are not checked. */

import { expect, test } from "vitest";

import { BALANCE_FACTOR } from "./balancer-model.ts";
import { behindWorkers, benchFanOut, type FanOutScene, gatewaysOf, inGateways } from "./fan-out.bench.ts";
import { seatRooms } from "./gateways-of-rooms.ts";

const scene: FanOutScene = {
  participants: 60,
  moving: 20,
  canvas: { width: 20_000, height: 20_000 },
  view: { width: 1_600, height: 900 },
  ticks: 10,
  seed: 1,
};
const fleet = { gateways: 4, roomServers: 2 };
const sizes = Array.from({ length: 24 }, () => scene.participants);
const [spread, meeting] = (["by load", "by key"] as const).map((balancing) =>
  seatRooms(sizes, balancing, { gateways: fleet.gateways, balanceFactor: BALANCE_FACTOR }),
);

test("a gateway receives all deltas of its rooms, and frames for few recipients are smaller than frames for many", () => {
  const membersOf = (count: number): number[] => Array.from({ length: count }, (_, index) => index);
  const [many, few] = [60, 6].map((count) => benchFanOut(scene, [{ room: 0, members: membersOf(count) }], true));
  expect(few!.deltaBytes).toBe(many!.deltaBytes);
  expect(few!.frameBytes).toBeGreaterThan(0);
  expect(few!.frameBytes).toBeLessThan(many!.frameBytes);
  const two = [0, 1].map((room) => ({ room, members: membersOf(6) }));
  expect(benchFanOut(scene, two, true).deltaBytes).toBeGreaterThan(1.5 * few!.deltaBytes);
});

test("every member of every room is on one gateway", () => {
  for (const seats of [spread!, meeting!]) {
    const all = gatewaysOf(seats, fleet.gateways).flatMap((parts) =>
      parts.flatMap(({ room, members }) => members.map((member) => `${room} ${member}`)),
    );
    expect(new Set(all).size).toBe(sizes.length * scene.participants);
    expect(all).toHaveLength(sizes.length * scene.participants);
  }
});

test("gateways receive fewer deltas, messages and bytes if members meet", () => {
  const [apart, together] = [inGateways(scene, spread!, fleet, "first"), inGateways(scene, meeting!, fleet, "all")];
  expect(apart).toMatchObject({ gatewaysMean: 4, deltas: 96, messages: 8 });
  expect(together.gatewaysMean).toBeLessThan(2);
  expect(together.deltas).toBe(Math.round(together.gatewaysMean * sizes.length));
  expect(apart.bytesPerSecond / together.bytesPerSecond).toBeCloseTo(apart.deltas / together.deltas, 1);
});

test("behind workers, each room sends its deltas to its workers, and each of them sends frames to each gateway", () => {
  const row = behindWorkers(scene, spread!, { ...fleet, workers: 3 });
  expect(row).toMatchObject({ gatewaysMean: 4, messages: 2 * 3 + 3 * 4, deltas: 24 * 3 + 96 * 3 });
  expect(row.bytesPerSecond).toBeGreaterThan(0);
});
