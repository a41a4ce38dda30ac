import fc from "fast-check";
import { expect, test } from "vitest";

import { PEAK_TENANTS_MAX, type StoragePeaks, USAGE_FIELDS_MAX } from "../../shared/bus/storage-messages.ts";
import type { TenantId } from "../../shared/ids.ts";
import { NO_TENANT_LIMIT } from "../../shared/settings/tenant-bytes.ts";
import { FakeClock } from "../../shared/testing/fake-clock.ts";
import { dayAfter, type UsageDay } from "../../shared/time/usage-day.ts";
import { NO_STORAGE_QUESTIONS, SILENT_STORAGE } from "../testing/one-partition.ts";
import { StorageHost } from "./storage-host.ts";
import { TenantBytes } from "./tenant-bytes.ts";
import { TenantPeaks } from "./tenant-peaks.ts";

const MONDAY = "2026-11-30" as UsageDay;
const counts = (bytes: Readonly<Record<string, number>>) => new Map(Object.entries(bytes) as [TenantId, number][]);
const sentBy = (peaks: TenantPeaks) => peaks.messages.map(({ day, tenants }) => [day, Object.fromEntries(tenants)]);

test("[STB7] a day shows the highest bytes of each tenant, and the previous day is repeated until the next one ends", () => {
  const peaks = new TenantPeaks();
  peaks.receiveBytes(MONDAY, counts({ acme: 700, zoo: 5 }));
  peaks.receiveBytes(MONDAY, counts({ acme: 300.4, gone: 0, negative: -1 }));
  expect(sentBy(peaks)).toEqual([[MONDAY, { acme: 700, zoo: 5 }]]);
  const tuesday = dayAfter(MONDAY, 1);
  peaks.receiveBytes(tuesday, counts({ acme: 300.4 }));
  peaks.receiveBytes(MONDAY, counts({ zoo: 9 })); // The clock was set back over midnight.
  expect(new Map(sentBy(peaks) as [UsageDay, object][])).toEqual(
    new Map([
      [MONDAY, { acme: 700, zoo: 9 }],
      [tuesday, { acme: 300 }],
    ]),
  );
  peaks.receiveBytes(tuesday, counts({ acme: 200 }));
  const wednesday = dayAfter(MONDAY, 2);
  peaks.receiveBytes(wednesday, counts({ acme: 100 }));
  expect(sentBy(peaks).map(([day]) => day)).toEqual([tuesday, wednesday]);
});

test("[STB8] messages are bounded, hold the largest tenants first, and one tenant more than a day in Redis", () => {
  const peaks = new TenantPeaks();
  const tenants = Array.from({ length: USAGE_FIELDS_MAX + 100 }, (_, index) => [`t${index}` as TenantId, index + 1] as const);
  peaks.receiveBytes(MONDAY, new Map(tenants));
  const sent = peaks.messages;
  expect(sent.every(({ tenants: part }) => part.length <= PEAK_TENANTS_MAX)).toBe(true);
  const bytes = sent.flatMap(({ tenants: part }) => part.map(([, each]) => each));
  expect([bytes.length, bytes]).toEqual([USAGE_FIELDS_MAX + 1, bytes.toSorted((one, other) => other - one)]);
});

/** What happens in an order that nobody controls. `to`: whether each message of the service reaches Redis. */
const step = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({ kind: fc.constant("report" as const), partition: fc.nat(2), tenant: fc.nat(2), bytes: fc.nat(1_000) }),
  },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant("measure" as const), service: fc.nat(1), reaches: fc.array(fc.boolean()) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("restart" as const), service: fc.nat(1) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("midnight" as const) }) },
);

test("[STB9] over lost messages, restarts, two services at once and midnights a day never shows more than was measured, and no less than its service holds", () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const started = () => ({ bytes: new TenantBytes(3, NO_TENANT_LIMIT), peaks: new TenantPeaks() });
      const services = [started(), started()];
      const last = new Map<number, Map<TenantId, number>>(); // By partition, as its reader reports it.
      const [redis, highest, held] = [
        new Map<string, number>(),
        new Map<string, number>(),
        [new Map<string, number>(), new Map<string, number>()],
      ];
      const raise = (to: Map<string, number>, key: string, bytes: number): void => void (bytes > (to.get(key) ?? 0) && to.set(key, bytes));
      const receive = ({ day, tenants }: StoragePeaks): void =>
        tenants.forEach(([tenant, bytes]) => raise(redis, `${day} ${tenant}`, bytes));
      let day = MONDAY;
      for (const each of steps) {
        if (each.kind === "midnight") day = dayAfter(day, 1);
        else if (each.kind === "restart") [services[each.service], held[each.service]] = [started(), new Map()];
        else if (each.kind === "report") {
          const tenants = new Map(last.get(each.partition)).set(`t${each.tenant}` as TenantId, each.bytes);
          last.set(each.partition, tenants);
          for (const { bytes } of services) bytes.receiveCounts(each.partition, tenants);
        } else {
          const { bytes, peaks } = services[each.service]!;
          const all = bytes.all;
          if (all === undefined) continue; // A partition was not reported since the start.
          for (const tenant of ["t0", "t1", "t2"] as TenantId[]) {
            const sum = [...last.values()].reduce((total, tenants) => total + (tenants.get(tenant) ?? 0), 0);
            expect(all.get(tenant) ?? 0).toBe(sum);
            for (const record of [highest, held[each.service]!]) raise(record, `${day} ${tenant}`, sum);
          }
          peaks.receiveBytes(day, all);
          peaks.messages.forEach((message, index) => each.reaches[index] === true && receive(message));
        }
      }
      for (const [key, bytes] of redis) expect(bytes).toBeLessThanOrEqual(highest.get(key) ?? 0);
      for (const [index, { peaks }] of services.entries()) {
        for (const message of [...peaks.messages, ...peaks.messages]) receive(message);
        const days = new Set([...held[index]!.keys()].map((key) => key.split(" ")[0]!));
        const recent = [...days].slice(-2); // The days come in order.
        for (const [key, bytes] of held[index]!)
          if (recent.includes(key.split(" ")[0]!)) expect(redis.get(key)).toBeGreaterThanOrEqual(bytes);
      }
      for (const [key, bytes] of redis) expect(bytes).toBeLessThanOrEqual(highest.get(key) ?? 0);
    }),
  );
});

test("[STB10] only the service that reads the first partition sends usage: as soon as it knows all partitions, and then every minute", async () => {
  const clock = new FakeClock(Date.UTC(2026, 10, 30, 12));
  const sent: StoragePeaks[] = [];
  const partition = { isHeld: true, bytes: undefined as number | undefined };
  const measured = {
    get isHeld() {
      return partition.isHeld;
    },
    stored: {
      adoptFull: () => {},
      full: new Map(),
      get tenants() {
        return partition.bytes === undefined ? undefined : counts({ acme: partition.bytes });
      },
    },
    takeLimitChanges: () => [],
    measure: () => Promise.resolve(undefined),
  };
  const gauge = { set: () => {} };
  const host = new StorageHost(
    [measured] as never,
    { storage: { ...SILENT_STORAGE, publishPeaks: (peaks) => void sent.push(peaks) }, storageQuestions: NO_STORAGE_QUESTIONS },
    { roomBytesMax: 0, tenantBytesMax: NO_TENANT_LIMIT },
    {
      clock,
      metrics: { storedBytes: gauge, fullRooms: gauge, fullTenants: gauge },
      operations: { report: () => {} },
      partitionOf: () => 0,
    } as never,
  );
  await clock.advance(100_000);
  expect(sent, "the stores are not listed yet").toEqual([]);
  partition.bytes = 10;
  await clock.advance(3_000);
  expect(sent).toEqual([{ day: MONDAY, tenants: [["acme", 10]] }]);
  partition.bytes = 30;
  await clock.advance(60_000);
  expect(sent.slice(1)).toEqual([{ day: MONDAY, tenants: [["acme", 30]] }]);
  partition.isHeld = false;
  await clock.advance(120_000);
  expect(sent.length).toBe(2);
  host.stop();
});
