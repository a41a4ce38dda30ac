import fc from "fast-check";
import { expect, test } from "vitest";

import { type Count, decodeCountsReport, encodeCountsReport } from "../../shared/bus/counts-report.ts";
import type { Millis } from "../../shared/ids.ts";
import { SharedCounts } from "./shared-counts.ts";

const at = (ms: number): Millis => ms as Millis;
const limits = {
  "ip": 10,
  "tenant": 1_000,
  "tenant-rooms": 100,
  "room": 100,
  "tenant-edits": 500,
  "user-faults": 100,
  "address-faults": 100,
  "tenant-faults": 1_000,
  "full-room": 1,
  "user": 100,
  "user-edits": 100,
};
const gateway = (reportShare = 0): SharedCounts => new SharedCounts({ limits, reportShare, reportSilenceMsMax: 3_000 });
const ip = (count: number, key = "10.0.0.1"): Count => ({ kind: "ip", key, count });

test("[SHC1] a count is the sum of own and reported counts, and is full at its limit", () => {
  const counts = gateway();
  counts.add("ip", "10.0.0.1", 4);
  counts.receiveReport({ source: "b", counts: [ip(3)] }, at(0));
  expect(counts.isFull("ip", "10.0.0.1")).toBe(false);
  counts.receiveReport({ source: "c", counts: [ip(3)] }, at(0));
  expect([counts.elsewhere("ip", "10.0.0.1"), counts.isFull("ip", "10.0.0.1"), counts.isFull("ip", "10.0.0.2")]).toEqual([6, true, false]);
});

test("[SHC2] only the latest report of a gateway counts", () => {
  const counts = gateway();
  counts.receiveReport({ source: "b", counts: [ip(7), { kind: "room", key: "acme.notes", count: 5 }] }, at(0));
  counts.receiveReport({ source: "b", counts: [ip(2)] }, at(1_000));
  expect([counts.elsewhere("ip", "10.0.0.1"), counts.elsewhere("room", "acme.notes")]).toEqual([2, 0]);
});

test("[SHC3] the counts of a dead gateway expire after three seconds", () => {
  const counts = gateway();
  counts.receiveReport({ source: "b", counts: [ip(10)] }, at(0));
  counts.receiveTick(at(3_000));
  expect(counts.isFull("ip", "10.0.0.1")).toBe(true);
  counts.receiveTick(at(3_001));
  expect([counts.isFull("ip", "10.0.0.1"), counts.sources]).toEqual([false, 0]);
});

test("[SHC4] small counts are not reported, and the counts nearest to their limits are reported first", () => {
  const counts = gateway(0.1);
  counts.add("room", "acme.small", 9);
  counts.add("room", "acme.large", 60);
  counts.add("ip", "10.0.0.1", 9);
  expect(counts.report()).toEqual([ip(9), { kind: "room", key: "acme.large", count: 60 }]);
  counts.add("room", "acme.large", -55);
  expect(counts.report()).toEqual([ip(9)]);
});

type Step = { readonly kind: "add" | "report" | "die"; readonly gateway: number; readonly key: string; readonly by: number };
const steps = fc.array(
  fc.record<Step>({
    kind: fc.constantFrom("add", "add", "add", "report", "die"),
    gateway: fc.nat(3),
    key: fc.constantFrom("a", "b", "c"),
    by: fc.integer({ min: -3, max: 5 }),
  }),
  { maxLength: 120 },
);

test("[SHC5] once every live gateway has reported, each sees the true sum, less at most the share that need not be reported", () => {
  fc.assert(
    fc.property(steps, fc.constantFrom(0, 0.3), (given, reportShare) => {
      const all = [0, 1, 2, 3].map(() => gateway(reportShare));
      let now = 0;
      const sendReport = (from: number): void => {
        const report = decodeCountsReport(encodeCountsReport({ source: String(from), counts: all[from]!.report() }, 1e6))!;
        all.forEach((to, index) => index !== from && to.receiveReport(report, at(now)));
      };
      for (const { kind, gateway: index, key, by } of given) {
        now += 100;
        if (kind === "add") all[index]!.add("ip", key, Math.max(by, -all[index]!.here("ip", key)));
        if (kind === "report") sendReport(index);
        if (kind === "die") all[index] = gateway(reportShare); // Restarted without its counts.
      }
      now += 3_001;
      all.forEach((_, index) => sendReport(index));
      for (const key of ["a", "b", "c"]) {
        const total = all.reduce((sum, counts) => sum + counts.here("ip", key), 0);
        for (const counts of all) {
          counts.receiveTick(at(now));
          const seen = counts.here("ip", key) + counts.elsewhere("ip", key);
          expect(seen).toBeLessThanOrEqual(total);
          expect(total - seen).toBeLessThanOrEqual(3 * limits.ip * reportShare);
        }
      }
    }),
  );
});
