import { expect, test } from "vitest";

import type { Millis, RoomKey } from "../../shared/ids.ts";
import { LoadMeter } from "./load-meter.ts";

const [x, y] = ["acme.x", "acme.y"] as [RoomKey, RoomKey];
const OPTIONS = { budgetEditsPerSecond: 100, budgetEgressBytesPerSecond: 10_000, budgetMemoryBytes: 1_000 };

/** The rooms cost the same each second. */
function run(meter: LoadMeter, seconds: number, cost: () => void, memory = 0, from = 0) {
  meter.read(memory, from as Millis);
  for (let second = 1; second <= seconds; second++) {
    cost();
    meter.read(memory, (from + second * 1_000) as Millis);
  }
  return meter.read(memory, (from + seconds * 1_000) as Millis);
}

test("[LOAD1] a steady room's share is its rate divided by the budget, for the scarcer resource", () => {
  const typing = new LoadMeter(OPTIONS);
  const load = run(typing, 60, () => typing.count(x, 40, 100));
  expect(load.used).toBeCloseTo(0.4, 3);
  expect(load.hot[0]?.room).toBe(x);
  const heavy = new LoadMeter(OPTIONS);
  expect(run(heavy, 60, () => heavy.count(x, 1, 9_000)).hot[0]?.share).toBeCloseTo(0.9, 3);
});

test("[LOAD2] the hottest rooms come first; rooms with a small share are not named", () => {
  const meter = new LoadMeter(OPTIONS);
  const load = run(meter, 60, () => {
    meter.count(x, 10, 0);
    meter.count(y, 20, 0);
    meter.count("acme.z" as RoomKey, 1, 0);
  });
  expect(load.hot.map(({ room }) => room)).toEqual([y, x]);
  expect(load.used).toBeCloseTo(0.31, 3);
});

test("[LOAD3] load that has ended fades within seconds and is forgotten", () => {
  const meter = new LoadMeter(OPTIONS);
  run(meter, 30, () => meter.count(x, 50, 0));
  expect(run(meter, 10, () => {}, 0, 30_000).used).toBeLessThan(0.1);
  expect(run(meter, 60, () => {}, 0, 40_000)).toEqual({ used: 0, hot: [] });
});

test("[LOAD4] memory counts when it is the scarcest resource", () => {
  const meter = new LoadMeter(OPTIONS);
  expect(run(meter, 2, () => meter.count(x, 1, 1), 700).used).toBeCloseTo(0.7, 3);
});
