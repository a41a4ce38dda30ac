import { readFileSync } from "node:fs";

import { expect, test } from "vitest";

import { BUCKETS, BUDGET_MS, HOPS_MS, ROUND_TRIP_MS } from "./budget.ts";

test("[PBU1] the shares of the hops add up to the budget, and each share is a histogram bound", () => {
  expect(Object.values(HOPS_MS).reduce((sum, ms) => sum + ms, 0)).toBe(BUDGET_MS);
  expect([BUDGET_MS, ROUND_TRIP_MS].filter((ms) => !BUCKETS.includes(ms / 1_000))).toEqual([]);
});

test("[PBU2] the operator documents state the same shares", () => {
  const rows = [...readFileSync("docs/operations/probes.md", "utf8").matchAll(/^\| (?<hop>[a-z -]+) \| (?<ms>\d+) \|/gm)].map(
    ({ groups }) => [groups!["hop"], Number(groups!["ms"])],
  );
  expect(Object.fromEntries(rows)).toMatchObject(HOPS_MS);
});

test("[PBU3] the alerts use the same shares", () => {
  const alerts = readFileSync("deploy/prometheus/alerts.yaml", "utf8");
  const seconds = (...ms: readonly number[]): string[] => ms.map((one) => String(one / 1_000));
  const limitsOf = (alert: string): string[] =>
    [...(new RegExp(`alert: ${alert}\\n\\s+expr: (.*)`).exec(alerts)?.[1] ?? "").matchAll(/> (\d+(?:\.\d+)?)/g)].map(([, limit]) => limit!);
  expect(limitsOf("CoroomPropagationSlow")).toEqual(seconds(BUDGET_MS));
  expect(limitsOf("CoroomHopSlow")).toEqual(
    seconds(ROUND_TRIP_MS, HOPS_MS["gateway to room server"], HOPS_MS["room server"], HOPS_MS.commit, HOPS_MS["gateway to client"]),
  );
  expect(HOPS_MS["fan-out"], "measured by the same metric").toBe(HOPS_MS["gateway to room server"]);
});
