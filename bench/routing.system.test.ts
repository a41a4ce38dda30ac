/** HAProxy with few connections: the model of the balancer names the same gateway for each. */

import { expect, test } from "vitest";

import { FIRST_START_MS_MAX } from "../test/system/browser.ts";
import { routingFigures } from "./gateways-of-rooms.ts";
import { measureRouting } from "./routing.bench.ts";

/** The large room exceeds the bound of a gateway, so that connections are passed on. */
const SIZES = [60, ...Array.from({ length: 20 }, () => 4)];
const GATEWAYS = 8;

test(
  "HAProxy chooses the gateway of the model for each connection with a key, and spreads connections without one",
  async () => {
    const byKey = await measureRouting(SIZES, "by key", GATEWAYS);
    expect(byKey.differences).toBe(0);
    expect(byKey.seats[0]!.size).toBeGreaterThan(1);
    const byLoad = await measureRouting(SIZES, "by load", GATEWAYS);
    expect(byLoad.seats[0]!.size).toBe(GATEWAYS);
    expect(routingFigures(byKey.seats, 1).copies).toBeLessThan(routingFigures(byLoad.seats, 1).copies);
  },
  FIRST_START_MS_MAX,
);
