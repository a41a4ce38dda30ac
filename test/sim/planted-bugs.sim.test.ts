/** A test of the tester: bugs planted on purpose must be found, each within a bounded number of seeds, and nothing but the bug may be what is found. */

import { expect, test } from "vitest";

import { minimize } from "./minimize.ts";
import { PLANTED_BUGS } from "./planted-bugs.ts";
import { type Outcome, simulate } from "./simulation.ts";
import { telemetry } from "./world.ts";

const SEEDS_MAX = 200;
const counted = telemetry();

test.each(PLANTED_BUGS)("[SIM5] found: $name", async (planted) => {
  const { faults, fromSeed = 1 } = planted;
  let found: Outcome | undefined;
  for (let seed = fromSeed; found === undefined && seed < fromSeed + SEEDS_MAX; seed++) {
    const outcome = await simulate(seed, { telemetry: counted, planted, faults });
    if (outcome.failure !== undefined) found = outcome;
  }
  expect(found).toBeDefined();
  expect((await simulate(found!.seed, { telemetry: counted, faults })).failure).toBeUndefined();
}, 60_000);

test("[SIM6] a failing run is told with the faults that it takes, and no more", async () => {
  const planted = PLANTED_BUGS.find(({ name }) => name === "gateway forgets un-acked edits")!;
  let failed: Outcome | undefined;
  for (let seed = 1; failed === undefined; seed++) {
    const outcome = await simulate(seed, { telemetry: counted, planted });
    if (outcome.failure !== undefined) failed = outcome;
  }
  const minimal = await minimize(failed, { telemetry: counted, planted });
  expect(minimal.failure).toBeDefined();
  expect(minimal.faults.length).toBeLessThan(failed.faults.length);
  expect(minimal.lines.length).toBeGreaterThan(0);
}, 60_000);
