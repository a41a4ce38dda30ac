import { expect, test } from "vitest";

import type { Millis, TenantId } from "../../shared/ids.ts";
import { TenantRates, UserRates } from "./reader-rates.ts";

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

test("[TRT1] a tenant that takes a shared rate completely leaves an eighth to each tenant that takes less", () => {
  const rates = new TenantRates({ burst: 80, perSecond: 80 }, 10, at(0));
  const takenBy = (tenant: string, now: Millis): number => {
    let taken = 0;
    while (rates.take(tenant as TenantId, now)) taken += 1;
    return taken;
  };
  expect(takenBy("evil", 0 as Millis), "alone").toBe(80);
  expect(takenBy("acme", 0 as Millis)).toBe(0);
  expect(takenBy("evil", 100 as Millis), "an eighth of 8").toBe(1);
  expect(takenBy("acme", 100 as Millis)).toBe(7);
  for (const now of [200, 300, 400, 500] as Millis[]) takenBy("evil", now);
  expect(takenBy("acme", 500 as Millis)).toBeGreaterThan(0);
  expect(takenBy("evil", 10_000 as Millis), "alone again").toBe(80);
  const few = new TenantRates({ burst: 2, perSecond: 1 }, 10, at(0));
  expect([0, 0, 0, 1_000, 1_000].map((now) => few.take("acme" as TenantId, at(now)))).toEqual([true, true, false, true, false]);
});
