/** Every metric and label in `deploy/prometheus` and `deploy/grafana` exists. */

import { readdirSync, readFileSync } from "node:fs";

import { expect, test } from "vitest";

import { allMetrics, firstScrape } from "./all-metrics.ts";

const ALERTS = readFileSync("deploy/prometheus/alerts.yaml", "utf8");
const DASHBOARD = readFileSync("deploy/grafana/coroom.json", "utf8");
/** Labels that Prometheus adds. */
const EVERYWHERE = ["le", "instance", "role", "job"];

type Panel = { readonly title: string; readonly targets?: readonly { readonly expr: string }[] };
type Asked = { readonly where: string; readonly expr: string };

const alerts: Asked[] = [...ALERTS.matchAll(/alert: (?<where>\w+)\n {8}expr: (?<expr>.+(?:\n {10}.+)*)/g)].map(({ groups }) => ({
  where: groups!["where"]!,
  expr: groups!["expr"]!,
}));
const panels: Asked[] = (JSON.parse(DASHBOARD) as { panels: Panel[] }).panels.flatMap(({ title, targets = [] }) =>
  targets.map(({ expr }) => ({ where: title, expr })),
);

test.each([...alerts, ...panels])("[WAT1] $where uses existing metrics: $expr", async ({ expr }) => {
  const labels = await labelsByMetric();
  const asked = [...expr.matchAll(/coroom_\w+/g)].map(([name]) => name);
  expect(asked.filter((name) => !labels.has(name))).toEqual([]);
  const known = new Set([...EVERYWHERE, ...asked.flatMap((name) => labels.get(name)!)]);
  expect(labelsIn(expr).filter((label) => !known.has(label))).toEqual([]);
});

test("[WAT2] each alert describes the problem and the remedy", () => {
  expect(alerts.length).toBeGreaterThan(0);
  expect(ALERTS.match(/- alert: /g)).toHaveLength(alerts.length);
  for (const kind of ["severity: (page|ticket)", "summary: \\S", "description: \\S"])
    expect(ALERTS.match(new RegExp(kind, "g"))).toHaveLength(alerts.length);
});

test("[WAT3] each metric that a page names exists", async () => {
  const pages = ["README.md", "ARCHITECTURE.md", ...readdirSync("docs", { recursive: true }).map((name) => `docs/${String(name)}`)].filter(
    (page) => !page.includes(".vitepress/"),
  );
  const table = "coroom_objects"; // In PostgreSQL.
  const known = new Set([table, ...Object.values(await allMetrics()).flatMap((metrics) => metrics.map(({ name }) => name))]);
  const earlierName = /^\| `coroom_\w+` \|(?= `coroom_)/gm; // Before the present name, in the table of an upgrade.
  const named = pages
    .filter((page) => page.endsWith(".md"))
    .flatMap((page) =>
      [
        ...readFileSync(page, "utf8")
          .replace(earlierName, "")
          .matchAll(/\bcoroom_\w*[a-z\d]/g),
      ].map(([name]) => ({ page, name })),
    );
  expect(named.length).toBeGreaterThan(100);
  expect(named.filter(({ name }) => !known.has(name.replace(/_(bucket|sum|count)$/, "")) && !known.has(name))).toEqual([]);
});

test("[WAT4] the first event of a counter fires its alert, because the counter is 0 before", async () => {
  const lines = (await firstScrape()).split("\n");
  const increases = alerts.flatMap(({ expr }) => [
    ...expr.matchAll(/increase\((?<name>\w+)(?:\{(?<labels>[^}]*)\})?\[\w+\]\)\)? > 0(?![.\d])/g),
  ]);
  const absent = increases.filter(
    ({ groups }) => !lines.some((line) => line.split(/[ {]/)[0] === groups!["name"] && line.includes(groups!["labels"] ?? "")),
  );
  expect(increases.length).toBeGreaterThan(5);
  expect(absent.map(([increase]) => increase)).toEqual([]);
});

function labelsIn(expr: string): string[] {
  const grouped = [...expr.matchAll(/by \((?<names>[^)]*)\)/g)].flatMap(({ groups }) => groups!["names"]!.split(/,\s*/));
  const selected = [...expr.matchAll(/[{,]\s*(?<name>\w+)\s*(=|!=|=~|!~)"/g)].map(({ groups }) => groups!["name"]!);
  return [...grouped, ...selected];
}

/** Labels of each metric, by the names that Prometheus scrapes. */
async function labelsByMetric(): Promise<ReadonlyMap<string, readonly string[]>> {
  const labels = new Map<string, readonly string[]>();
  for (const { name, type, labelNames } of Object.values(await allMetrics()).flat())
    for (const suffix of type === "histogram" ? ["_bucket", "_sum", "_count"] : [""]) labels.set(name + suffix, labelNames);
  return labels;
}
