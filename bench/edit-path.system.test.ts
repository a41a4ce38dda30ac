/** The edit path with few rooms: every member receives every edit once. Times are not checked. */

import { afterAll, beforeAll, expect, test } from "vitest";

import { runLeg, SCENARIOS, small } from "./edit-path.bench.ts";
import { startCoroom } from "./systems/coroom.ts";
import { startRelay } from "./systems/peers.ts";
import type { MeasuredSystem } from "./systems/system.ts";

const OPTIONS = { round: 1, seed: 1, warmMs: 1, measureMs: 1000, loadProcesses: 1 };

let coroom: MeasuredSystem;
let relay: MeasuredSystem;

beforeAll(async () => {
  [coroom, relay] = await Promise.all([startCoroom({ small: true }), startRelay()]);
});

afterAll(async () => {
  await Promise.all([coroom?.stop(), relay?.stop()]);
});

for (const scenario of SCENARIOS.map(small)) {
  test(`${scenario.name}: Coroom and the relay deliver the same edits, each once, to every member`, async () => {
    const overCoroom = await runLeg(coroom, scenario, OPTIONS);
    const overRelay = await runLeg(relay, scenario, OPTIONS);

    expect(overCoroom.rooms).toEqual(overRelay.rooms);
    expect(overCoroom.hash).toBe(overRelay.hash);
    for (const room of overCoroom.rooms) expect(room.distinctEdits).toBeGreaterThan(0);
  });
}
