import { expect, test } from "vitest";

import { solve } from "./unit-costs.bench.ts";

const load = (sent: number, received: number, each: number, delivery: number) => ({
  sent,
  received,
  micros: each * sent + delivery * received,
});

test("[UCO1] two loads that differ in their deliveries give the cost of an edit and of its delivery", () => {
  const solved = solve(load(300, 900, 120, 4), load(300, 5_700, 120, 4));
  expect([solved.each, solved.delivery].map(Math.round)).toEqual([120, 4]);
});

test("[UCO2] no cost is negative: where deliveries seem to save CPU, edits explain all of it", () => {
  expect(solve({ sent: 300, received: 900, micros: 30_000 }, { sent: 300, received: 5_700, micros: 24_000 })).toEqual({
    each: 90,
    delivery: 0,
  });
});
