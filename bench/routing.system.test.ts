/** Few rooms behind HAProxy: the model of the balancer names the same gateways, and NATS sends edits only to them. */

import { expect, test } from "vitest";

import { FIRST_START_MS_MAX } from "../test/system/browser.ts";
import { countedFigures, membersElsewhere, RECORDS } from "./routing.bench.ts";
import { measureRoutedRounds } from "./routing-measures.ts";

/** The large room exceeds the bound of a gateway, so that connections are passed on. */
const SIZES = [16, 4, 4, 4, 4, 4, 4];
const GATEWAYS = 3;

test("[ROUT1] NATS sends a room's edits only to the gateways of the model", { timeout: FIRST_START_MS_MAX }, async () => {
  const options = { gateways: GATEWAYS, sizes: SIZES, editsPerSecond: 2, cursorsPerSecond: 2, seconds: 1, small: true };
  const [round] = await measureRoutedRounds(options, 1);
  const { "by key": byKey, "by load": byLoad } = round!;

  expect(membersElsewhere(byKey.seats, byKey.predicted)).toBe(0);
  expect(byKey.seats[0]!.size).toBeGreaterThan(1);
  expect(byLoad.seats[0]!.size).toBe(GATEWAYS);

  const [together, spread] = [byKey, byLoad].map((leg) => countedFigures(leg)[RECORDS]!);
  expect(together).toBeLessThan(0.8 * spread!); // The model predicts 1.6 and 2.7.
});
