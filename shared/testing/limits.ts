/** For tests of a tier's limits: each limit has a setting, a metric and a test that reaches it. */

import { readdirSync, readFileSync } from "node:fs";

import type { Registry } from "prom-client";

export type Limit<Setting extends string = string> = {
  readonly settings: readonly Setting[];
  readonly metric: string;
  readonly tests: readonly string[];
};

/** The named metrics and tests that do not exist. `folder`: where tests are searched. */
export function missingOf(limits: readonly Limit[], registry: Registry, folder: URL): { metrics: string[]; tests: string[] } {
  const metrics = new Set(registry.getMetricsAsArray().map(({ name }) => name));
  const files = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((file) => file.endsWith(".test.ts"));
  const texts = files.map((file) => readFileSync(new URL(file, folder), "utf8"));
  const tests = new Set(texts.flatMap((text) => [...text.matchAll(/\[([A-Z]+\d+)\]/g)].map(([, id]) => id)));
  return {
    metrics: limits.map(({ metric }) => metric).filter((metric) => !metrics.has(metric)),
    tests: limits.flatMap((limit) => limit.tests).filter((id) => !tests.has(id)),
  };
}
