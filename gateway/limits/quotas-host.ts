/** Keeps the gateway's counts and the others' together: tells its own every second, and hears theirs. Names, once a minute, the tenants that are at a limit. */

import type { Count } from "../../shared/bus/counts-report.ts";
import type { Clock } from "../../shared/clock.ts";
import type { GatewayId } from "../../shared/ids.ts";
import type { Log } from "../../shared/log.ts";
import type { Abuse } from "./abuse.ts";
import type { GatewayMetrics } from "../metrics.ts";
import type { CountsLine } from "../ports.ts";
import type { BackboneLine } from "../rooms/backbone-line.ts";
import type { Moves, Quotas, TenantLimit } from "./quotas.ts";

const SECOND_MS = 1_000;
const SECONDS_PER_NAMING = 60;
const SETTINGS: Readonly<Record<TenantLimit, string>> = {
  "tenant": "COROOM_CONNECTIONS_PER_TENANT_MAX",
  "tenant-rooms": "COROOM_ROOMS_PER_TENANT_MAX",
  "tenant-edits": "COROOM_TENANT_EDITS_PER_SECOND_MAX",
};

export type Sharing = {
  /** The gateway goes away: the others hear of each connection in time that it comes to them. */
  handOver(moves: Moves): void;
  stop(): void;
};

/** `backbone`: what is told while it is lost would be kept by the NATS client, and be old news later. */
export function shareCounts(
  { quotas, abuse }: { quotas: Quotas; abuse: Abuse },
  line: CountsLine,
  gateway: GatewayId,
  { clock, log, metrics, backbone }: { clock: Clock; log: Log; metrics: GatewayMetrics; backbone: Pick<BackboneLine, "isUp"> },
): Sharing {
  line.onReport((report) => {
    if (report.source !== gateway) quotas.receiveReport(report, clock.now());
  });
  let [cancel, seconds] = [(): void => {}, 0];
  const nameTenants = (): void => {
    for (const { tenant, limit, times } of quotas.takeAtLimit())
      log.warn({ tenant, limit, times }, `a tenant is at its limit: raise ${SETTINGS[limit]}, or talk to the tenant`);
  };
  const tell = (counts: readonly Count[]): void => {
    if (backbone.isUp) line.tell({ source: gateway, counts });
  };
  const beat = (): void => {
    for (const { kind, key, points } of abuse.endSecond(clock.now())) quotas.receiveFaults(`${kind}-faults`, key, points);
    metrics.suspects.set(abuse.watched);
    tell(quotas.endSecond(clock.now()));
    metrics.countSources.set(quotas.sources);
    if (++seconds % SECONDS_PER_NAMING === 0) nameTenants();
    cancel = clock.after(SECOND_MS, beat);
  };
  beat();
  return {
    handOver: (moves) => {
      quotas.handOver(moves);
      tell(quotas.report(clock.now()));
    },
    stop: () => {
      cancel();
      tell([]); // Whoever was here may be elsewhere at once.
    },
  };
}
