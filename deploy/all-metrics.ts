/** Collects every metric by role. Tests compare pages, alerts and the dashboard with this list. */

import { Registry } from "prom-client";

import { traceMetrics } from "../shared/io/traces/trace-metrics.ts";
import { FakeClock } from "../shared/testing/fake-clock.ts";
import { yWebsocketMetrics } from "../bridges/metrics.ts";
import { buildInfoGauge } from "../cli/build-info.ts";
import { releaseIdleMemory } from "../cli/idle-memory.ts";
import { diskFreeGauge } from "../cli/local-engines.ts";
import type { MetricDescription } from "../cli/metrics-document.ts";
import { documentServiceMetrics } from "../document-service/metrics.ts";
import { gatewayMetrics } from "../gateway/metrics.ts";
import { leaderboardMetrics } from "../leaderboard/metrics.ts";
import { placementMetrics } from "../placement/metrics.ts";
import { probeMetrics } from "../probe/metrics.ts";
import { roomServerMetrics } from "../room-server/metrics.ts";

const IDLE_HEAP = { busyShare: () => 0, bytes: () => ({ held: 0, live: 0, used: 0 }), setGrowth: () => {}, collect: async () => {} };

const ROLES: Readonly<Record<string, (registry: Registry) => unknown>> = {
  "gateway": gatewayMetrics,
  "room-server": roomServerMetrics,
  "placement": placementMetrics,
  "document-service": documentServiceMetrics,
  "leaderboard": leaderboardMetrics,
  "y-websocket": yWebsocketMetrics,
  "probe": probeMetrics,
  "engines": (registry) => diskFreeGauge(".", registry),
  "Every process": (registry) => {
    void releaseIdleMemory({ idleMemoryMs: 1_000 }, IDLE_HEAP, { clock: new FakeClock(), registry }).stop();
    traceMetrics(registry);
    buildInfoGauge(registry);
  },
};

export async function allMetrics(): Promise<Readonly<Record<string, readonly MetricDescription[]>>> {
  const groups = Object.entries(ROLES).map(async ([role, register]) => {
    const registry = new Registry();
    register(registry);
    const labels = new Map(
      (registry.getMetricsAsArray() as unknown as MetricDescription[]).map(({ name, labelNames }) => [name, labelNames]),
    );
    const metrics = await registry.getMetricsAsJSON();
    return [role, metrics.map(({ name, type, help }) => ({ name, type: String(type), help, labelNames: labels.get(name) ?? [] }))] as const;
  });
  return Object.fromEntries(await Promise.all(groups));
}

/** What Prometheus reads from new processes of all roles. */
export async function firstScrape(): Promise<string> {
  const roles = Object.values(ROLES).map((register) => {
    const registry = new Registry();
    register(registry);
    return registry.metrics();
  });
  return (await Promise.all(roles)).join("\n");
}
