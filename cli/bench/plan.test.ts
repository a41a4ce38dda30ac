import { expect, test } from "vitest";

import { readSettings } from "../../shared/settings/settings.ts";
import { benchSettings } from "./bench-settings.ts";
import { BENCH_MAX, planBench, rampUpSecondsOf } from "./plan.ts";

const load = { rooms: 3, people: 2, editRate: 6, cursorRate: 12, seconds: 10, rampUpSeconds: 0 };

test("[BNC8] everybody has a seat, rooms carry the run's tag, and consecutive edits are in different rooms", () => {
  const { rooms, seats } = planBench(load, "ab12");
  expect(rooms).toEqual(["coroom-bench-ab12-1", "coroom-bench-ab12-2", "coroom-bench-ab12-3"]);
  expect(seats.map(({ room, place }) => `${room}/${place}`).toSorted()).toEqual(["0/0", "0/1", "1/0", "1/1", "2/0", "2/1"]);
  for (const [index, { room }] of seats.entries()) if (index > 0) expect(room).not.toBe(seats[index - 1]!.room);
});

test.each([
  [{ rooms: 1_000, people: 6 }, "6,000 connections"],
  [{ rooms: 500, people: 4, rampUpSeconds: 5 }, "Raise --ramp-up-seconds to 10"],
  [{ editRate: 55 }, "9.2 edits a second by each person"],
  [{ cursorRate: 121 }, "20.2 cursor moves a second by each person"],
  [{ rooms: 1, people: 500, editRate: 250 }, "130,738 receipts a second"],
])("[BNC9] %o is refused with the reason", (excess, reason) => {
  expect(() => planBench({ ...load, ...excess }, "t")).toThrow(reason);
});

test("[BNC10] all excesses are named together", () => {
  const all = (): unknown => planBench({ ...load, rooms: 1_000, people: 500, editRate: 5_000, rampUpSeconds: 1 }, "t");
  expect(all).toThrow(/connections.*\n.*joins a second.*\n.*receipts a second/);
});

test("[BNC11] without --ramp-up-seconds people join at half of the maximum rate", () => {
  expect(rampUpSecondsOf(load)).toBe(2);
  expect(rampUpSecondsOf({ ...load, rooms: 1_000, people: 5 })).toBe(50);
  expect(rampUpSecondsOf({ ...load, rampUpSeconds: 7 })).toBe(7);
});

test("[BNC28] the plan, which a report prints, has the load and no secret of the settings", () => {
  const settings = readSettings(benchSettings, { flags: { jwtSecret: "s".repeat(32), token: "a token" }, env: {} });
  const defaults = { rooms: 10, people: 4, editRate: 18, cursorRate: 40, seconds: 30, rampUpSeconds: 0 };
  expect(planBench(settings, "t").load).toEqual(defaults);
});

test("[BNC12] each flag has a maximum, and the maximum itself is accepted", () => {
  const read = (flags: Record<string, string>) => readSettings(benchSettings, { flags, env: {} });
  for (const name of ["rooms", "people", "editRate", "cursorRate", "seconds", "rampUpSeconds"] as const) {
    expect(read({ [name]: String(BENCH_MAX[name]) })[name]).toBe(BENCH_MAX[name]);
    expect(() => read({ [name]: String(BENCH_MAX[name] + 1) })).toThrow(`to ${BENCH_MAX[name]} (`);
  }
  for (const few of ["0", "1", "2.5", "x"]) expect(() => read({ people: few })).toThrow("must be a whole number from 2 to 500");
  expect(planBench(read({}), "t").seats).toHaveLength(40);
  expect(planBench(read({ rooms: "1", people: "2" }), "t").seats).toHaveLength(2); // The default rates fit the smallest load.
});
