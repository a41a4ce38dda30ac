/**
 * The busy room and the hostile rooms with few neighbours: every edit reaches all members, no HTTP request fails, and every
 * leg has figures. Times are not checked. Both experiments share their two systems.
 */

import { afterAll, beforeAll, expect, test } from "vitest";

import { measureHostileRooms } from "./hostile-rooms.bench.ts";
import { HOT_KINDS, measureHotRoom } from "./hot-room.bench.ts";
import { type BothCorooms, startBoth, stopBoth } from "./ordinary-rooms.ts";
import type { Figures } from "./report.ts";

let systems: BothCorooms;

beforeAll(async () => {
  systems = await startBoth({ small: true });
});
afterAll(() => systems && stopBoth(systems));

test("[HOT1] in every leg all edits reach all members, and the neighbours have latencies", { timeout: 300_000 }, async () => {
  const lines: string[] = [];
  const options = { rooms: 4, seconds: 0.5, rounds: 1, levels: [1], kinds: HOT_KINDS };
  const figures = await measureHotRoom(systems, options, (line) => lines.push(line));

  expect(Object.keys(figures)).toEqual(["alone", ...HOT_KINDS.flatMap((kind) => [`${kind} 1x same`, `${kind} 1x other`])]);
  expect(lines).toHaveLength(7);
  expectNumbers(figures);
});

test("[HRM2] beside hostile rooms no ordinary edit is lost, and no HTTP request fails", { timeout: 300_000 }, async () => {
  const lines: string[] = [];
  const options = { rooms: 4, hostileRooms: 2, seconds: 1, rounds: 1, kinds: ["slow", "http"] as const, tenant: "other" as const };
  const { figures, failures } = await measureHostileRooms(systems, options, (line) => lines.push(line));

  expect(failures).toEqual([]);
  expect(Object.keys(figures)).toEqual(["alone", "slow same", "slow other", "http same", "http other"]);
  expect(lines).toHaveLength(5);
  expectNumbers(figures);
  for (const leg of Object.values(figures)) expect(leg).toMatchObject({ "writes with status 200": 10, "reads with status 200": 10 });
});

function expectNumbers(figures: Readonly<Record<string, Figures>>): void {
  for (const [leg, ofLeg] of Object.entries(figures))
    for (const [figure, value] of Object.entries(ofLeg)) expect(value, `${figure} of ${leg}`).not.toBeNaN();
}
