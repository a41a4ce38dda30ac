import { expect, test } from "vitest";

import type { Millis } from "../../shared/ids.ts";
import { UserRates } from "./reader-rates.ts";

const at = (millis: number) => millis as Millis;

test("[RATE10] each reader has its own rate, which refills with time", () => {
  const rates = new UserRates({ burst: 2, perSecond: 1 }, 10);
  expect([rates.take("ann", at(0)), rates.take("ann", at(0)), rates.take("ann", at(0))]).toEqual([true, true, false]);
  expect(rates.take("bob", at(0))).toBe(true);
  expect([rates.take("ann", at(1_000)), rates.take("ann", at(1_000))]).toEqual([true, false]);
});

test("[RATE11] at the maximum of remembered readers, the least recent reader is forgotten", () => {
  const rates = new UserRates({ burst: 1, perSecond: 1 }, 2);
  for (const reader of ["ann", "bob", "ann", "cy"]) rates.take(reader, at(0)); // bob is forgotten
  expect([rates.take("ann", at(0)), rates.take("cy", at(0)), rates.take("bob", at(0))]).toEqual([false, false, true]);
});
