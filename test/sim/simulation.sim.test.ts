/**
 * The whole edit path under faults, seed after seed: see `simulation.ts` for what a run is and `judge.ts` for what must
 * hold. More of them: `npm run sim -- --seconds 60`. A failing seed joins REGRESSION_SEEDS with its reason.
 */

import { expect, test } from "vitest";

import { drawFaults, type Fault, type FaultKind, FAULTS } from "./faults.ts";
import { simulate } from "./simulation.ts";
import { telemetry, World } from "./world.ts";

/** With the faults it takes, so that a seed goes on meaning the same when others are drawn. */
const REGRESSION_SEEDS: readonly { readonly seed: number; readonly reason: string; readonly faults: readonly Fault[] }[] = [
  {
    seed: 176,
    reason: "a tab whose clock was set back waited with its next attempt to connect for as long",
    faults: [fault("tab offline", 7_625, 1_204, 0.181, 0.374), fault("date set back or ahead", 8_090, 150, 0.801, 0.033)],
  },
  {
    seed: 5_000_985,
    reason: "a catch-up broke off beyond the newest snapshot, and the tab was sent back to it",
    faults: [fault("tab too slow", 2_793, 607, 0.813, 0.178), fault("log trimmed", 3_075, 1_860, 0.355, 0.049), fault("tab too slow", 3_121, 1_057, 0.55, 0.194)],
  },
  {
    seed: 795_278_204,
    reason: "an owner deposed while its line was bad caught newcomers up from before its successor, who was gone, and nobody wrote",
    faults: [
      fault("room server's line stalled", 12_976, 5_686, 0.542, 0.812),
      fault("room server cut off", 15_384, 189, 0.32, 0.01),
      fault("tab offline", 15_559, 2_224, 0.013, 0.746),
      fault("gateway killed", 15_869, 2_089, 0.993, 0.297),
      fault("room server stopped", 15_999, 222, 0.722, 0.458),
      fault("tab closed, another opened", 15_999, 1_864, 0.405, 0.683),
      fault("tab closed, another opened", 15_999, 770, 0.616, 0.952),
    ],
  },
  {
    seed: 7,
    reason: "the last member on a gateway left while the owner's line was lost: nobody told the owner when it was back, and a ghost stayed in the room (found by 50_001_163)",
    faults: [
      fault("room server cut off", 9_187, 1_655, 0.04, 0.2),
      fault("room server cut off", 9_187, 1_655, 0.9, 0.2),
      fault("tab closed, another opened", 9_500, 585, 0.25, 0.4),
      fault("tab closed, another opened", 9_520, 585, 0.75, 0.4),
    ],
  },
];
const FRESH_SEEDS = Array.from({ length: 60 }, (_, index) => 1_000_000 + index);

const counted = telemetry();
const options = { telemetry: counted };

test("[SIM1] whatever happens, nothing acknowledged is lost, nothing is ordered twice, and everybody ends with everything", async () => {
  const failures = [];
  for (const { seed, faults } of [...REGRESSION_SEEDS, ...FRESH_SEEDS.map((fresh) => ({ seed: fresh, faults: undefined }))]) {
    const { failure } = await simulate(seed, { ...options, faults });
    if (failure !== undefined) failures.push({ seed, reason: failure.reason });
  }
  expect(failures).toEqual([]);
}, 120_000);

test("[SIM2] a seed replays exactly, and being looked at changes nothing", async () => {
  const [first, again, other] = [await simulate(1, options), await simulate(1, options), await simulate(2, options)];
  const watched = await simulate(1, { ...options, verbose: true });
  expect([again.hash, again.steps, again.edits]).toEqual([first.hash, first.steps, first.edits]);
  expect(watched.hash).toBe(first.hash);
  expect(other.hash).not.toBe(first.hash);
});

test("[SIM3] a run is of some size: steps, edits, faults", async () => {
  const outcome = await simulate(1, options);
  expect(outcome.steps).toBeGreaterThan(1_000);
  expect(outcome.edits).toBeGreaterThan(50);
  expect(outcome.faults.length).toBeGreaterThan(5);
});

test("[SIM4] the seeds draw every kind of fault", () => {
  const drawn = new Set(FRESH_SEEDS.flatMap((seed) => drawFaults(new World(seed, { telemetry: counted, planted: undefined, verbose: false }).chance("faults"), 1_000).map(({ kind }) => kind)));
  expect([...drawn].sort()).toEqual(Object.keys(FAULTS).sort());
});

function fault(kind: FaultKind, atMs: number, forMs: number, whom: number, how: number): Fault {
  return { kind, atMs, forMs, whom, how };
}
