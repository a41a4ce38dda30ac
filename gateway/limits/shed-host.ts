/** Looks at the pressure twice a second, and tells operations and the rooms when more or less is left out. */

import type { Clock } from "../../shared/clock.ts";
import type { Operations } from "../../shared/operations.ts";
import type { GatewayMetrics } from "../metrics.ts";
import type { Pressures } from "../ports.ts";
import type { Shed } from "./shed.ts";

const LOOK_MS = 500;

/** Returns what ends it. */
export function watchPressure(shed: Shed, pressures: Pressures, onLevel: (level: number) => void, { clock, metrics, operations }: { clock: Clock; metrics: GatewayMetrics; operations: Operations }): () => void {
  let cancel = (): void => {};
  const look = (): void => {
    const pressure = pressures.measure();
    metrics.loopDelaySeconds.set(pressure.delayMs / 1000);
    metrics.natsLagSeconds.set(pressure.natsLagMs / 1000);
    const change = shed.receivePressure(pressure, clock.now());
    if (change !== undefined) {
      metrics.shedLevel.set(change.to);
      operations.report({ kind: "shed_level", ...change, ...pressure });
      onLevel(change.to);
    }
    cancel = clock.after(LOOK_MS, look);
  };
  look();
  return () => cancel();
}
