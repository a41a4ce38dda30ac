/** The versions that a process runs, as a metric, so that dashboards and alerts see which processes an upgrade has replaced. */

import { Gauge, type Registry } from "prom-client";

import { version } from "../shared/io/version.ts";

export function buildInfoGauge(registry: Registry): void {
  const info = new Gauge({
    name: "coroom_build_info",
    help: "Always 1. The labels name the versions of Coroom and Node that the process runs",
    labelNames: ["version", "node"] as const,
    registers: [registry],
  });
  info.set({ version: version(), node: process.versions.node }, 1);
}
