import { readFileSync } from "node:fs";

import { expect, test } from "vitest";

import { BUCKETS, BUDGET_MS, HOPS_MS, ROUND_TRIP_MS } from "./budget.ts";

test("[PBU1] the hops' shares are the whole budget, and what is measured is judged at a bucket's bound", () => {
  expect(Object.values(HOPS_MS).reduce((sum, ms) => sum + ms, 0)).toBe(BUDGET_MS);
  expect([BUDGET_MS, ROUND_TRIP_MS].filter((ms) => !BUCKETS.includes(ms / 1_000))).toEqual([]);
});

test("[PBU2] operators are told the same shares", () => {
  const rows = [...readFileSync("docs/operations/probes.md", "utf8").matchAll(/^\| (?<hop>[a-z -]+) \| (?<ms>\d+) \|/gm)].map(({ groups }) => [groups!["hop"], Number(groups!["ms"])]);
  expect(Object.fromEntries(rows)).toMatchObject(HOPS_MS);
});
