import { expect, test } from "vitest";

import type { Millis } from "../../shared/ids.ts";
import { OutboundHealth } from "./pressure.ts";

/** Whether the gateway is degraded after each period, with two checks per second. */
function believed(health: OutboundHealth, ...spells: readonly (readonly [seconds: number, p99Ms: number])[]): boolean[] {
  let now = 0;
  return spells.map(([seconds, p99Ms]) => {
    for (const end = now + seconds * 1_000; now < end; now += 500) health.receiveP99(p99Ms, now as Millis);
    return health.isDegraded;
  });
}
const health = (outboundP99MsMax = 500) => new OutboundHealth({ outboundP99MsMax });

test("[OUH1] a gateway is degraded once its p99 has exceeded the limit for five seconds without a break", () => {
  expect(believed(health(), [5, 501], [1, 501])).toEqual([false, true]);
  expect(believed(health(), [4, 501], [0.5, 500], [4, 501])).toEqual([false, false, false]);
});

test("[OUH2] a degraded gateway recovers after ten seconds below half of the limit", () => {
  expect(believed(health(), [6, 900], [60, 300], [9, 249], [0.5, 250], [10, 249], [1, 249])).toEqual([true, true, true, true, true, false]);
});

test("[OUH3] a gateway without a limit is never degraded", () => {
  expect(believed(health(0), [60, 60_000])).toEqual([false]);
});
