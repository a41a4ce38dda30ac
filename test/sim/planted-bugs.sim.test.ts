/** Tests the simulator: each planted bug must be found within a bounded number of seeds, and the same run must pass without the bug. */

import { expect, test } from "vitest";

import { minimize } from "./minimize.ts";
import { type PlantedBug, PLANTED_BUGS } from "./planted-bugs.ts";
import { PLANTED_APPLICATION_BUGS } from "./planted-application-bugs.ts";
import { PLANTED_SERVICE_BUGS } from "./planted-service-bugs.ts";
import { PLANTED_WEBHOOK_BUGS } from "./planted-webhook-bugs.ts";
import { type Outcome, simulate } from "./simulation.ts";
import type { SizeName } from "./sizes.ts";
import { telemetry } from "./world.ts";

const SEEDS_MAX = 200;
/** Where a search from seed 1 would take seconds: the seed that it found. After a change of the runs it continues from there. */
const FIRST_SEEDS: { readonly [bugAndSize: string]: number } = {
  "no fencing small-edit-path": 5,
  "watermark one too low small-edit-path": 50,
  "watermark one too low large-edit-path": 172,
  "epoch given again large-edit-path": 29,
  "forged edits taken large-edit-path": 52,
  "kicks not carried out large-edit-path": 13,
  "parts of a broken connection taken for those of the next small-edit-path": 13,
  "parts of a broken connection taken for those of the next large-edit-path": 19,
  "gateway sends each presence state once small-edit-path": 9,
  "gateway sends each presence state once large-edit-path": 111,
  "snapshot not read back small": 9,
  "refusal of a full object store ignored small": 9,
  "applied seq unchecked small": 12,
  "applied seq unchecked large": 37,
  "saves wait for the endpoints of webhooks small": 8,
  "saves wait for the endpoints of webhooks large": 8,
};
const counted = telemetry();

const EACH_AT_EACH_SIZE = [
  ...PLANTED_BUGS.flatMap((planted) =>
    (planted.sizes ?? (["small-edit-path", "large-edit-path"] as const)).map((size) => ({ planted, name: planted.name, size })),
  ),
  ...PLANTED_BUGS.filter(({ name }) => name === "no fencing").map((planted) => ({ planted, name: planted.name, size: "batches" as const })),
  ...PLANTED_APPLICATION_BUGS.map((planted) => ({ planted, name: planted.name, size: "first-content" as const })),
  ...[...PLANTED_SERVICE_BUGS, ...PLANTED_WEBHOOK_BUGS].flatMap((planted) =>
    (["small", "large"] as const).map((size) => ({ planted, name: planted.name, size })),
  ),
];

test.each(EACH_AT_EACH_SIZE)("[SIM5] the simulator finds the planted bug: $name, in $size runs", async ({ planted, size }) => {
  const found = await firstFailing(planted, size);
  expect(found).toBeDefined();
  expect((await simulate(found!.seed, { size, telemetry: counted, faults: found!.faults })).failure).toBeUndefined();
});

test("[SIM5] each first seed belongs to a planted bug and a size", () => {
  const known = EACH_AT_EACH_SIZE.map(({ name, size }) => `${name} ${size}`);
  expect(Object.keys(FIRST_SEEDS).filter((key) => !known.includes(key))).toEqual([]);
});

test("[SIM6] a failing run is reported with only the faults that it needs", async () => {
  const planted = PLANTED_BUGS.find(({ name }) => name === "client drops its outbox on reconnect")!;
  const failed = await firstFailing(planted, "small-edit-path");
  const minimal = await minimize(failed!, { telemetry: counted, planted });
  expect(minimal.failure).toBeDefined();
  expect(minimal.faults.length).toBeLessThan(failed!.faults.length);
  expect(minimal.lines.length).toBeGreaterThan(0);
});

async function firstFailing(planted: PlantedBug, size: SizeName): Promise<Outcome | undefined> {
  const first = FIRST_SEEDS[`${planted.name} ${size}`] ?? 1;
  for (let seed = first; seed < first + SEEDS_MAX; seed++) {
    const outcome = await simulate(seed, { size, telemetry: counted, planted });
    if (outcome.failure !== undefined) return outcome;
  }
  return undefined;
}
