/** The text of docs/METRICS.md: every metric by role, from the declarations. `npm run metrics-doc` updates the file. */

export type MetricDescription = {
  readonly name: string;
  readonly type: string;
  readonly labelNames: readonly string[];
  readonly help: string;
};

export function metricsDocument(groups: Readonly<Record<string, readonly MetricDescription[]>>): string {
  return [
    "# Metrics",
    "",
    "All metrics that `/metrics` exposes, by role. Prometheus scrapes a histogram `x` as `x_bucket`, `x_sum` and `x_count`. [operations/metrics.md](operations/metrics.md) lists the metrics to watch first and the alerts. `npm run metrics-doc` generates this page from the declarations.",
    ...Object.entries(groups).flatMap(([title, metrics]) => [
      "",
      `## ${title}`,
      "",
      "| metric | type | labels | meaning |",
      "|---|---|---|---|",
      ...metrics.map(
        ({ name, type, labelNames, help }) => `| \`${name}\` | ${type} | ${labelNames.join(", ")} | ${help.replaceAll("|", "\\|")} |`,
      ),
    ]),
    "",
  ].join("\n");
}
