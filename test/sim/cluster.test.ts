/** The simulator ends, loses and restarts its processes: see `cluster.ts`. */

import { expect, test } from "vitest";

import { Cluster } from "./cluster.ts";
import { SIZES } from "./sizes.ts";
import { telemetry, World } from "./world.ts";

const WHOM = { whom: 0 };

function cluster(): Cluster {
  const world = new World(1, { size: SIZES.small, telemetry: telemetry(), planted: undefined, verbose: false });
  return new Cluster(world, world.chance("cluster"), { devicesKeep: false });
}

async function pass(ms: number, { world: { scheduler } }: Cluster): Promise<void> {
  await scheduler.runUntil(scheduler.now + ms, () => false);
}

test.each([
  ["while things go wrong", (): void => {}],
  ["as peace comes", (there: Cluster): void => there.heal()],
])("[SIM8] a gateway that exits because its connection breaks during its start is started again: %s", async (_, then) => {
  const there = cluster();
  const gateway = there.gateway(WHOM);
  gateway.connection.break();
  then(there);
  await pass(1, there);
  expect(gateway.process.state).toBe("dead");
  await pass(1_000, there);
  const next = there.gateway(WHOM);
  expect([next === gateway, next.process.state, next.connection.connected, next.listener.isReady()]).toEqual([
    false,
    "running",
    true,
    true,
  ]);
});

test("[SIM9] a gateway that is ended by two faults is replaced once", async () => {
  const there = cluster();
  const gateway = there.gateway(WHOM);
  there.endGateway(gateway, "stopped", 500);
  there.endGateway(gateway, "killed", 300);
  await pass(1_000, there);
  const { length } = there.connections();
  expect(Object.keys(there.gatewayProcesses)).toEqual(there.gatewayProcesses.map((_, index) => String(index)));
  await pass(1_000, there);
  expect(there.connections()).toHaveLength(length);
});
