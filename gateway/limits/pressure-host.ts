/**
 * Checks the load twice a second. Reports changes of the shed level to operations and rooms, reports refused connections
 * to operations, and checks whether clients receive messages in time.
 */

import type { Operations } from "../../shared/bus/operations-events.ts";
import type { Log } from "../../shared/process/log.ts";
import type { Clock } from "../../shared/time/clock.ts";
import { every } from "../../shared/time/every.ts";
import type { GatewayMetrics } from "../metrics.ts";
import type { Pressures } from "../ports.ts";
import type { LoadShedder, OutboundHealth } from "./pressure.ts";
import type { RefusedConnections } from "./refused-connections.ts";

const LOOK_MS = 500;

/** Returns a function that stops it. */
export function watchPressure(
  { shed, outbound, refused }: { shed: LoadShedder; outbound: OutboundHealth; refused: RefusedConnections },
  pressures: Pressures,
  onLevel: (level: number) => void,
  { clock, log, metrics, operations }: { clock: Clock; log: Log; metrics: GatewayMetrics; operations: Operations },
): () => void {
  const look = (): void => {
    const pressure = pressures.measure();
    metrics.loopDelaySeconds.set(pressure.delayMs / 1000);
    metrics.natsLagSeconds.set(pressure.natsLagMs / 1000);
    const p99Ms = pressure.delayMs + pressures.outboundP99Ms();
    metrics.outboundP99Seconds.set(p99Ms / 1000);
    if (outbound.receiveP99(p99Ms, clock.now()))
      log.warn(
        { p99Ms, isDegraded: outbound.isDegraded },
        "what is sent reaches clients too late, or in time again: new ones go elsewhere while it is too late",
      );
    const change = shed.receivePressure(pressure, clock.now());
    if (change !== undefined) {
      metrics.shedLevel.set(change.to);
      operations.report({ kind: "shed_level", ...change, ...pressure });
      onLevel(change.to);
    }
    const refusals = refused.receiveTick(clock.now());
    if (refusals !== undefined) operations.report({ kind: "connections_refused", ...refusals });
  };
  look();
  return every(clock, LOOK_MS, look);
}
