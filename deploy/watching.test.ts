/** What `deploy/prometheus` and `deploy/grafana` ask for exists: each metric, with the labels that it is asked by. */

import { readFileSync } from "node:fs";

import { Registry } from "prom-client";
import { expect, test } from "vitest";

import { documentServiceMetrics } from "../document-service/metrics.ts";
import { gatewayMetrics } from "../gateway/metrics.ts";
import { leaderboardMetrics } from "../leaderboard/metrics.ts";
import { placementMetrics } from "../placement/metrics.ts";
import { probeMetrics } from "../probe/metrics.ts";
import { roomServerMetrics } from "../room-server/metrics.ts";
import { yWebsocketMetrics } from "../y-websocket/metrics.ts";

const ALERTS = readFileSync("deploy/prometheus/alerts.yaml", "utf8");
const DASHBOARD = readFileSync("deploy/grafana/coroom.json", "utf8");
/** Of Prometheus itself. */
const EVERYWHERE = ["le", "instance", "role", "job"];

type Panel = { readonly title: string; readonly targets?: readonly { readonly expr: string }[] };
type Asked = { readonly where: string; readonly expr: string };

const alerts: Asked[] = [...ALERTS.matchAll(/alert: (?<where>\w+)\n\s+expr: (?<expr>.+)/g)].map(({ groups }) => ({
  where: groups!["where"]!,
  expr: groups!["expr"]!,
}));
const panels: Asked[] = (JSON.parse(DASHBOARD) as { panels: Panel[] }).panels.flatMap(({ title, targets = [] }) =>
  targets.map(({ expr }) => ({ where: title, expr })),
);

test.each([...alerts, ...panels])("[WAT1] $where asks for what is measured: $expr", async ({ expr }) => {
  const labels = await labelsByMetric();
  const asked = [...expr.matchAll(/coroom_\w+/g)].map(([name]) => name);
  expect(asked.filter((name) => !labels.has(name))).toEqual([]);
  const known = new Set([...EVERYWHERE, ...asked.flatMap((name) => labels.get(name)!)]);
  expect(labelsIn(expr).filter((label) => !known.has(label))).toEqual([]);
});

test("[WAT2] each alert says what has happened and what to do", () => {
  expect(alerts.length).toBeGreaterThan(0);
  expect(ALERTS.match(/- alert: /g)).toHaveLength(alerts.length);
  for (const kind of ["severity: (page|ticket)", "summary: \\S", "description: \\S"])
    expect(ALERTS.match(new RegExp(kind, "g"))).toHaveLength(alerts.length);
});

function labelsIn(expr: string): string[] {
  const grouped = [...expr.matchAll(/by \((?<names>[^)]*)\)/g)].flatMap(({ groups }) => groups!["names"]!.split(/,\s*/));
  const selected = [...expr.matchAll(/[{,]\s*(?<name>\w+)\s*(=|!=|=~|!~)"/g)].map(({ groups }) => groups!["name"]!);
  return [...grouped, ...selected];
}

/** By name, as Prometheus scrapes them. */
async function labelsByMetric(): Promise<ReadonlyMap<string, readonly string[]>> {
  const labels = new Map<string, readonly string[]>();
  for (const metricsOf of [
    gatewayMetrics,
    roomServerMetrics,
    placementMetrics,
    documentServiceMetrics,
    leaderboardMetrics,
    yWebsocketMetrics,
    probeMetrics,
  ]) {
    const registry = new Registry();
    const labelNames = new Map(
      Object.values(metricsOf(registry))
        .map((metric) => metric as unknown as { name: string; labelNames: string[] })
        .map((metric) => [metric.name, metric.labelNames]),
    );
    for (const { name, type } of await registry.getMetricsAsJSON()) {
      const suffixes = String(type) === "histogram" ? ["_bucket", "_sum", "_count"] : [""];
      for (const suffix of suffixes) labels.set(name + suffix, labelNames.get(name) ?? []);
    }
  }
  return labels;
}
