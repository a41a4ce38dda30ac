import { expect, test } from "vitest";

import { Prng } from "../../shared/collections/prng.ts";
import type { Millis, TenantId } from "../../shared/ids.ts";
import { dayAfter, dayCount, dayOf, daysBetween, parseDay, type UsageDay } from "../../shared/time/usage-day.ts";
import { TopTenants } from "./top-tenants.ts";
import { addUsage, noUsage, OTHER_TENANTS, type UsageCounts } from "./usage-counts.ts";
import { UsageDays } from "./usage-days.ts";
import { UsageMeter } from "./usage-meter.ts";

const [acme, beta, gamma] = ["acme", "beta", "gamma"] as TenantId[] as [TenantId, TenantId, TenantId];
const [MONDAY, TUESDAY] = ["2026-11-30", "2026-12-01"] as UsageDay[] as [UsageDay, UsageDay];
const at = (ms: number): Millis => ms as Millis;
const edits = (count: number): UsageCounts => ({ ...noUsage(), edits: count });

test("[USG1] connections count by the time that they are open, whenever counts are taken", () => {
  const meter = new UsageMeter({ tenantsMax: 10 });
  meter.receiveOpened(acme, at(0));
  meter.receiveOpened(acme, at(0));
  meter.receiveOpened(beta, at(500));
  expect(meter.takeCounts(at(1_000)).get(acme)).toMatchObject({ connections: 2, connectionMs: 2_000 });
  meter.receiveClosed(beta, at(1_200));
  meter.receiveOpened(acme, at(2_000));
  meter.receiveClosed(acme, at(3_000));
  const counts = meter.takeCounts(at(3_000));
  expect(counts.get(acme)).toMatchObject({ connections: 1, connectionMs: 2 * 2_000 + 1_000 });
  expect(counts.get(beta)).toMatchObject({ connections: 0, connectionMs: 200 });
  expect([...meter.openConnections].map(([tenant, { count }]) => [tenant, count])).toEqual([[acme, 2]]);
  for (const end of [4_000, 5_000]) meter.receiveClosed(acme, at(end));
  expect([meter.takeCounts(at(9_000)).get(acme)?.connectionMs, meter.openConnections.size]).toEqual([3_000, 0]);
  expect(meter.takeCounts(at(10_000)).size).toBe(0);
});

test("[USG2] a meter with as many tenants as allowed counts all further ones together, and loses nothing", () => {
  const meter = new UsageMeter({ tenantsMax: 3 });
  for (let index = 0; index < 1_000; index++) meter.add(`t${index}` as TenantId, "edits", 1);
  const counts = meter.takeCounts(at(1));
  expect([...counts].map(([tenant, usage]) => [tenant, usage.edits])).toEqual([
    ["t0", 1],
    ["t1", 1],
    ["t2", 1],
    [OTHER_TENANTS, 997],
  ]);
});

test("[USG3] a batch stays the same until it is stored; later usage is in later batches with higher numbers, by day", () => {
  const days = new UsageDays({ tenantDaysMax: 10, tenantsPerBatchMax: 2 });
  for (const tenant of [acme, beta, gamma]) days.receiveUsage(MONDAY, tenant, edits(1));
  const first = days.nextBatch();
  expect([first?.day, first?.number, [...first!.tenants.keys()]]).toEqual([MONDAY, 1, [acme, beta]]);
  days.receiveUsage(MONDAY, acme, edits(7));
  days.receiveUsage(TUESDAY, acme, edits(5));
  expect(days.nextBatch(), "sent again").toBe(first);
  expect(first!.tenants.get(acme)).toEqual(edits(1));
  const stored: [string, number, string, number][] = [];
  for (let batch = days.nextBatch(); batch !== undefined; batch = days.nextBatch()) {
    for (const [tenant, usage] of batch.tenants) stored.push([batch.day, batch.number, tenant, usage.edits]);
    days.receiveStored();
  }
  expect(stored).toEqual([
    [MONDAY, 1, acme, 1],
    [MONDAY, 1, beta, 1],
    [MONDAY, 2, gamma, 1],
    [MONDAY, 2, acme, 7],
    [TUESDAY, 3, acme, 5],
  ]);
  expect(days.waiting).toBe(0);
});

test("[USG4] while Redis is away for days, a gateway holds a bounded number of tenants, and the sum stays right", () => {
  const random = new Prng(7);
  const days = new UsageDays({ tenantDaysMax: 20, tenantsPerBatchMax: 3 });
  let [given, asOther] = [0, 0];
  for (let day = 0; day < 40; day++) {
    for (let index = 0; index < 30; index++) {
      const isNamed = days.receiveUsage(dayAfter(MONDAY, day), `t${random.below(1_000)}` as TenantId, edits(1));
      [given, asOther] = [given + 1, asOther + (isNamed ? 0 : 1)];
    }
    days.nextBatch();
    expect(days.waiting, "and one entry for others on each day").toBeLessThanOrEqual(20 + day + 1);
  }
  const total = noUsage();
  for (let batch = days.nextBatch(); batch !== undefined; batch = days.nextBatch()) {
    for (const usage of batch.tenants.values()) addUsage(total, usage);
    days.receiveStored();
  }
  expect(asOther).toBeGreaterThan(1_000);
  expect(total.edits).toBe(given);
});

test("[USG5] stored counts are whole numbers", () => {
  const days = new UsageDays({ tenantDaysMax: 10, tenantsPerBatchMax: 10 });
  days.receiveUsage(MONDAY, acme, { ...noUsage(), connectionMs: 10.4 });
  days.receiveUsage(MONDAY, acme, { ...noUsage(), connectionMs: 0.3 });
  expect(days.nextBatch()!.tenants.get(acme)!.connectionMs).toBe(11);
});

test("[USG6] days are days of the calendar in UTC", () => {
  expect(dayOf(Date.UTC(2026, 10, 30, 23, 59, 59, 999))).toBe(MONDAY);
  expect(dayOf(Date.UTC(2026, 11, 1))).toBe(TUESDAY);
  expect(parseDay("2028-02-29")).toBe("2028-02-29");
  for (const wrong of ["2026-02-29", "2026-13-01", "2026-1-1", "today", "", "2026-11-30T00:00:00Z"])
    expect(parseDay(wrong)).toBeUndefined();
  expect(daysBetween("2026-02-27" as UsageDay, "2026-03-02" as UsageDay)).toEqual(["2026-02-27", "2026-02-28", "2026-03-01", "2026-03-02"]);
  expect(daysBetween(TUESDAY, MONDAY)).toEqual([]);
  expect([dayCount(MONDAY, TUESDAY), dayCount(MONDAY, MONDAY), dayCount(TUESDAY, MONDAY)]).toEqual([2, 1, 0]);
});

test("[USG7] free names go to the first tenants with usage; then the busiest other replaces the least busy named one, one in a period", () => {
  const top = new TopTenants({ namedMax: 2, knownMax: 100 });
  expect([acme, beta, gamma, acme].map((tenant) => top.labelOf(tenant))).toEqual([acme, beta, OTHER_TENANTS, acme]);
  top.receiveUse(acme, 1_000);
  top.receiveUse(beta, 100);
  top.receiveUse(gamma, 200);
  expect(top.endPeriod(), "not more than twice as much").toBeUndefined();
  top.receiveUse(beta, 100);
  top.receiveUse(gamma, 300);
  expect(top.endPeriod()).toBe(beta);
  expect([...top.named]).toEqual([acme, gamma]);
  expect(top.labelOf(beta)).toBe(OTHER_TENANTS);
  for (let period = 0; period < 20; period++) expect(top.endPeriod(), "nothing happens without usage").toBeUndefined();
});

test("[USG8] hostile tenant names do not raise the number of named tenants", () => {
  const random = new Prng(11);
  const top = new TopTenants({ namedMax: 5, knownMax: 50 });
  let replaced = 0;
  for (let period = 0; period < 100; period++) {
    for (let index = 0; index < 200; index++) {
      const tenant = `t${period}-${random.below(1e9)}` as TenantId;
      const label = top.labelOf(tenant);
      expect(label === OTHER_TENANTS || top.named.has(label)).toBe(true);
      top.receiveUse(tenant, random.below(1_000_000));
      top.receiveUse(acme, 5_000);
    }
    if (top.endPeriod() !== undefined) replaced += 1;
    expect(top.named.size).toBeLessThanOrEqual(5);
  }
  expect(replaced, "some names change, at most one in a period").toBeGreaterThan(10);
});
