/** `docs/METRICS.md`: every metric, by the role that tells it, from where each is declared. `npm run metrics-doc` writes it. */

/** As a registry tells it. */
export type Told = { readonly name: string; readonly type: string; readonly labelNames: readonly string[]; readonly help: string };

export function metricsDocument(groups: Readonly<Record<string, readonly Told[]>>): string {
  return [
    "# Metrics",
    "",
    "What `/metrics` tells, by the role that tells it. A histogram `x` is scraped as `x_bucket`, `x_sum` and `x_count`. Those to watch first, and the alerts: [operations/metrics.md](operations/metrics.md). This page is made of the metrics themselves, by `npm run metrics-doc`.",
    ...Object.entries(groups).flatMap(([title, metrics]) => [
      "",
      `## ${title}`,
      "",
      "| metric | kind | labels | says |",
      "|---|---|---|---|",
      ...metrics.map(
        ({ name, type, labelNames, help }) => `| \`${name}\` | ${type} | ${labelNames.join(", ")} | ${help.replaceAll("|", "\\|")} |`,
      ),
    ]),
    "",
  ].join("\n");
}
