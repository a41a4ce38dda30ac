import fc from "fast-check";
import { expect, test } from "vitest";

import { type Count, COUNT_KINDS, type CountKind, decodeCountsReport, encodeCountsReport } from "./counts-report.ts";

const kinds = Object.keys(COUNT_KINDS) as CountKind[];
const counts = fc.array(fc.record({ kind: fc.constantFrom(...kinds), key: fc.stringMatching(/^[a-z0-9.:]{1,40}$/), count: fc.nat() }), {
  maxLength: 50,
});

test("[CNT1] a report decodes to what was encoded", () => {
  fc.assert(
    fc.property(
      counts,
      (given) =>
        void expect(decodeCountsReport(encodeCountsReport({ source: "gw-1", counts: given }, 1e6))).toEqual({
          source: "gw-1",
          counts: given,
        }),
    ),
  );
});

test("[CNT2] bytes that are not a report are refused", () => {
  fc.assert(fc.property(fc.uint8Array({ maxLength: 60 }), (bytes) => void decodeCountsReport(bytes)));
  const whole = encodeCountsReport({ source: "gw-1", counts: [{ kind: "ip", key: "10.0.0.1", count: 3 }] }, 1e6);
  for (let length = 0; length < whole.length; length++) expect(decodeCountsReport(whole.subarray(0, length))).toBeUndefined();
  expect(decodeCountsReport(Uint8Array.of(...whole, 0))).toBeUndefined();
});

test("[CNT3] a report keeps to its maximum size: it includes the first counts and omits the rest", () => {
  const given: Count[] = Array.from({ length: 1_000 }, (_, index) => ({ kind: "room", key: `acme.room-${index}`, count: 1_000 - index }));
  const bytes = encodeCountsReport({ source: "gw-1", counts: given }, 2_000);
  expect(bytes.byteLength).toBeLessThan(2_100);
  const decoded = decodeCountsReport(bytes)!.counts;
  expect(decoded.length).toBeGreaterThan(50);
  expect(decoded).toEqual(given.slice(0, decoded.length));
});
