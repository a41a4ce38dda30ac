import { setTimeout as sleep } from "node:timers/promises";

import { expect, onTestFinished, test } from "vitest";

import { measuredPressures } from "./pressures.ts";

const LAG_MS = 30;

test("[PSU1] a round trip to NATS counts once it is answered, so a silent NATS is no pressure", async () => {
  let answer = (): void => {};
  const nats = { flush: () => new Promise<void>((resolve) => (answer = resolve)) };
  const pressures = measuredPressures(nats, { outboundBytes: () => 0, outboundP99Ms: () => 0 }, { isUp: true });
  onTestFinished(() => pressures.stop());
  const lag = (): number => pressures.measure().natsLagMs;
  lag(); // Asks.
  await sleep(LAG_MS);
  expect([lag(), lag()]).toEqual([0, 0]);
  answer();
  await sleep(0);
  expect(lag()).toBeGreaterThan(0);
});
