/**
 * Shares counts with the other gateways: publishes its own counts every second, and receives the counts of others. Once
 * a minute it logs the tenants that are at a limit.
 */

import type { Count } from "../../shared/bus/counts-report.ts";
import type { GatewayId } from "../../shared/ids.ts";
import type { Log } from "../../shared/process/log.ts";
import type { Clock } from "../../shared/time/clock.ts";
import { every } from "../../shared/time/every.ts";
import type { GatewayMetrics } from "../metrics.ts";
import type { CountsBus } from "../ports.ts";
import type { BackboneStatus } from "../rooms/backbone-status.ts";
import type { AbuseScores } from "./abuse.ts";
import type { ConnectionMoves, Quotas, TenantLimit } from "./quotas.ts";

const SECOND_MS = 1_000;
const SECONDS_PER_NAMING = 60;
const REMEDIES: Readonly<Record<TenantLimit, string>> = {
  "tenant": "raise COROOM_CONNECTIONS_PER_TENANT_MAX",
  "tenant-rooms": "raise COROOM_ROOMS_PER_TENANT_MAX",
  "tenant-edits": "raise COROOM_TENANT_EDITS_PER_SECOND_MAX",
  "tenant-delivery": "serve its large rooms on more gateways",
};

export type Sharing = {
  /** The gateway is draining. The other gateways receive each connection's time of arrival before it arrives. */
  handOver(moves: ConnectionMoves): void;
  stop(): void;
};

/**
 * `backbone`: nothing is published while NATS is disconnected, because the NATS client would buffer the counts and send
 * them when they are outdated.
 */
export function shareCounts(
  { quotas, abuse }: { quotas: Quotas; abuse: AbuseScores },
  bus: CountsBus,
  gateway: GatewayId,
  { clock, log, metrics, backbone }: { clock: Clock; log: Log; metrics: GatewayMetrics; backbone: Pick<BackboneStatus, "isUp"> },
): Sharing {
  bus.onReport((report) => {
    if (report.source !== gateway) quotas.receiveReport(report, clock.now());
  });
  let seconds = 0;
  const nameTenants = (): void => {
    for (const { tenant, limit, times } of quotas.takeAtLimit())
      log.warn({ tenant, limit, times }, `a tenant is at its limit: ${REMEDIES[limit]}, or talk to the tenant`);
  };
  const publish = (counts: readonly Count[]): void => {
    if (backbone.isUp) bus.publishReport({ source: gateway, counts });
  };
  const beat = (): void => {
    for (const { kind, key, points } of abuse.endSecond(clock.now())) quotas.receiveFaults(`${kind}-faults`, key, points);
    metrics.suspects.set(abuse.watched);
    publish(quotas.endSecond(clock.now()));
    metrics.countSources.set(quotas.sources);
    if (++seconds % SECONDS_PER_NAMING === 0) nameTenants();
  };
  beat();
  const stopBeating = every(clock, SECOND_MS, beat);
  return {
    handOver: (moves) => {
      quotas.handOver(moves);
      publish(quotas.currentReport(clock.now()));
    },
    stop: () => {
      stopBeating();
      publish([]); // The clients of this gateway may reconnect to another one immediately.
    },
  };
}
