/** Samples of several gateways against a model that knows all connections at each moment. */

import { expect, test } from "vitest";

import type { TenantId, UnixMillis } from "../../shared/ids.ts";
import { Prng } from "../../shared/collections/prng.ts";
import { ConnectionSamples } from "./connection-samples.ts";

const MINUTE_MS = 60_000;
const NOON = Date.UTC(2026, 10, 28, 12) as UnixMillis;
const OPTIONS = { everyMs: MINUTE_MS, tenantsMax: 100, tenantsPerPartMax: 2 };
const at = (ms: number): UnixMillis => (NOON + ms) as UnixMillis;

type Open = Map<TenantId, { count: number }>;
const openOf = (counts: Readonly<Record<string, number>>): Open =>
  new Map(Object.entries(counts).map(([tenant, count]) => [tenant as TenantId, { count }]));

test("[USG17] the highest sum of samples is the highest number at one time, whichever gateway ticks first in its second", () => {
  const random = new Prng(5);
  const names = ["acme", "beta", "gamma"] as TenantId[];
  const gateways = Array.from({ length: 4 }, () => ({
    samples: new ConnectionSamples(OPTIONS, NOON),
    open: new Map() as Open,
    offsetMs: random.below(1_000),
  }));
  const [sums, peaks, expected] = [new Map<string, number>(), new Map<string, number>(), new Map<string, number>()];
  let sumOfHighest = 0;
  const highest = new Map<string, number>();
  for (let minute = 1; minute <= 200; minute++) {
    for (const [index, { samples, open, offsetMs }] of gateways.entries()) {
      for (const name of names) open.set(name, { count: random.below(50) });
      expect(samples.receiveTick(open, at(minute * MINUTE_MS + offsetMs))).toBe(0);
      expect(samples.receiveTick(open, at(minute * MINUTE_MS + offsetMs + 1_000)), "once for each moment").toBe(0);
      let parts = 0;
      for (let part = samples.next; part !== undefined; part = samples.next) {
        parts += 1;
        expect([part.moment, part.part]).toEqual([at(minute * MINUTE_MS), parts]);
        for (const [tenant, count] of part.tenants) {
          const key = `${part.moment} ${tenant}`;
          sums.set(key, (sums.get(key) ?? 0) + count);
          peaks.set(tenant, Math.max(peaks.get(tenant) ?? 0, sums.get(key)!));
        }
        samples.receiveStored(part);
      }
      for (const [tenant, { count }] of open) highest.set(`${index} ${tenant}`, Math.max(highest.get(`${index} ${tenant}`) ?? 0, count));
    }
    for (const name of names) {
      const together = gateways.reduce((sum, { open }) => sum + open.get(name)!.count, 0);
      expected.set(name, Math.max(expected.get(name) ?? 0, together));
    }
  }
  for (const count of highest.values()) sumOfHighest += count;
  expect([...peaks].toSorted()).toEqual([...expected].toSorted());
  expect(
    [...peaks.values()].reduce((sum, peak) => sum + peak, 0),
    "the sums of each gateway's highest are more",
  ).toBeLessThan(sumOfHighest);
});

test("[USG18] a sample that the store has not taken is replaced by the next, and the smallest of too many tenants are left out", () => {
  const samples = new ConnectionSamples({ ...OPTIONS, tenantsMax: 3 }, at(30_000));
  expect([samples.receiveTick(openOf({ a: 1 }), at(59_999)), samples.next]).toEqual([0, undefined]);
  expect(samples.receiveTick(openOf({ a: 1, b: 5, c: 3, d: 2, e: 4 }), at(60_500))).toBe(2);
  const first = samples.next!;
  expect(first).toEqual({ moment: at(60_000), part: 1, tenants: [["b", 5], ["e", 4]] }); // prettier-ignore
  samples.receiveStored(first);
  expect(samples.next?.tenants).toEqual([["c", 3]]);

  samples.receiveTick(openOf({ a: 7 }), at(180_000));
  expect([samples.next?.moment, samples.next?.tenants]).toEqual([at(180_000), [["a", 7]]]);
  samples.receiveStored(first);
  expect(samples.next, "a late answer about another sample").toBeDefined();
  samples.receiveStored(samples.next!);
  samples.receiveTick(openOf({ a: 9 }), at(120_000));
  expect(samples.next, "the clock was set back").toBeUndefined();
});
