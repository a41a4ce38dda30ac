import fc from "fast-check";
import { expect, test } from "vitest";

import { SharedEditRate } from "./shared-edit-rate.ts";

const acme = "acme";

function takeAll(edits: SharedEditRate<string>, asked: number): number {
  let taken = 0;
  for (let time = 0; time < asked; time++) if (edits.take(acme)) taken += 1;
  return taken;
}

test("[TED1] a tenant or user on this gateway alone has its complete limit each second", () => {
  const edits = new SharedEditRate(100, () => 0);
  expect(takeAll(edits, 150)).toBe(100);
  expect(edits.endSecond()).toEqual([[acme, 150]]);
  expect(takeAll(edits, 150)).toBe(100);
});

test("[TED2] a tenant without edits is forgotten", () => {
  const edits = new SharedEditRate(100, () => 0);
  takeAll(edits, 1);
  expect([edits.endSecond(), edits.endSecond(), edits.endSecond()]).toEqual([[[acme, 1]], [[acme, 0]], []]);
});

test("[TED3] after their reports all gateways together accept no more than the limit, and no fewer edits than requested below it", () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 1, max: 400 }), { minLength: 1, maxLength: 6 }), (asked) => {
      const limit = 300;
      const all = asked.map(
        (_, own) => new SharedEditRate(limit, () => asked.reduce((sum, count, index) => sum + (index === own ? 0 : count), 0)),
      );
      all.forEach((edits, index) => takeAll(edits, asked[index]!));
      for (const edits of all) edits.endSecond();
      const taken = all.reduce((sum, edits, index) => sum + takeAll(edits, asked[index]!), 0);
      const total = asked.reduce((sum, count) => sum + count, 0);
      expect(taken).toBeLessThanOrEqual(Math.min(total, limit));
      expect(taken).toBeGreaterThan(Math.min(total, limit) - asked.length); // Each gateway rounds down.
    }),
  );
});
