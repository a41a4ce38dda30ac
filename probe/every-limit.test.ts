/** As on gateways: each limit has a number, a metric and a test that reaches it, and every setting is listed here. */

import { Registry } from "prom-client";
import { expect, test } from "vitest";

import { type Limit, missingOf } from "../shared/testing/limits.ts";
import { probeSettings } from "./config.ts";
import { probeMetrics } from "./metrics.ts";

type Setting = keyof typeof probeSettings;

/** The last limit is fixed: `EDITS_MAX` of `room-host.ts`. */
const LIMITS: readonly Limit<Setting>[] = [
  { settings: ["probeLateMs"], metric: "coroom_probe_edits_late_total", tests: ["PED4"] },
  { settings: ["probeUnsavedEditsMax"], metric: "coroom_probe_edits_withheld_total", tests: ["PRH4"] },
  { settings: [], metric: "coroom_probe_edits_unjudged_total", tests: ["PED6"] },
];

/** Addresses and the probe's own activity, which do not grow with load. */
const NO_LIMITS: readonly Setting[] = [
  "probeGatewayUrls",
  "probeTenant",
  "probeTokenFile",
  "probeRoomsPerKind",
  "probeLargeParticipants",
  "probeEditsPerSecond",
  "probeHeavyEditsPerSecond",
  "probePresencePerSecond",
  "probeHeavyPresencePerSecond",
  "probeReconnectMs",
];

test("[PCF1] every setting is a limit with a metric and a test, or is declared as no limit", () => {
  const named = [...LIMITS.flatMap(({ settings }) => settings), ...NO_LIMITS];
  expect(named.toSorted(), "name it in LIMITS, or in NO_LIMITS").toEqual(Object.keys(probeSettings).toSorted());
});

test("[PCF2] the metrics and tests of all limits exist", () => {
  const registry = new Registry();
  probeMetrics(registry);
  expect(missingOf(LIMITS, registry, new URL(".", import.meta.url))).toEqual({ metrics: [], tests: [] });
});
