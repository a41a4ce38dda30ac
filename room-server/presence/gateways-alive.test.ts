import { expect, test } from "vitest";

import type { GatewayId, Millis } from "../../shared/ids.ts";
import { GatewaysAlive } from "./presence-host.ts";

const [here, there] = ["gw-here", "gw-there"] as GatewayId[] as [GatewayId, GatewayId];
const at = (ms: number) => ms as Millis;

test("[GWA1] a gateway is lost once it has been silent for too long, and only once", () => {
  const alive = new GatewaysAlive({ gatewaySilenceMsMax: 2_000 });
  alive.receiveHeartbeat(here, at(0));
  alive.receiveHeartbeat(there, at(0));
  alive.receiveHeartbeat(there, at(1_500));
  expect(alive.takeLost(at(2_000))).toEqual([]);
  expect(alive.takeLost(at(2_001))).toEqual([here]);
  expect(alive.takeLost(at(2_002))).toEqual([]);
});

test("[GWA2] a server that could not receive declares no gateway lost", () => {
  const alive = new GatewaysAlive({ gatewaySilenceMsMax: 2_000 });
  alive.receiveHeartbeat(here, at(0));
  alive.excuseAll(at(10_000));
  expect(alive.takeLost(at(11_000))).toEqual([]);
  expect(alive.takeLost(at(12_001))).toEqual([here]);
});
