/** Keeps the gateway's counts and the others' together: tells its own every second, and hears theirs. */

import type { Clock } from "../../shared/clock.ts";
import type { GatewayId } from "../../shared/ids.ts";
import type { Abuse } from "./abuse.ts";
import type { GatewayMetrics } from "../metrics.ts";
import type { CountsLine } from "../ports.ts";
import type { Quotas } from "./quotas.ts";

const SECOND_MS = 1_000;

/** `isLineUp`: what is told while it is not would be kept by the NATS client, and be old news later. Returns what ends it. */
export function shareCounts({ quotas, abuse }: { quotas: Quotas; abuse: Abuse }, line: CountsLine, gateway: GatewayId, { clock, metrics, isLineUp }: { clock: Clock; metrics: GatewayMetrics; isLineUp: () => boolean }): () => void {
  line.onReport((report) => {
    if (report.source !== gateway) quotas.receiveReport(report, clock.now());
  });
  let cancel = (): void => {};
  const beat = (): void => {
    for (const { kind, key, points } of abuse.endSecond(clock.now())) quotas.receiveFaults(`${kind}-faults`, key, points);
    metrics.suspects.set(abuse.watched);
    const counts = quotas.endSecond(clock.now());
    if (isLineUp()) line.tell({ source: gateway, counts });
    metrics.countSources.set(quotas.sources);
    cancel = clock.after(SECOND_MS, beat);
  };
  beat();
  return () => cancel();
}
