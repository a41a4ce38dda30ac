import fc from "fast-check";
import { expect, test } from "vitest";

import type { Millis } from "../../shared/ids.ts";
import { ConnectionRates, RatePool } from "./connection-rates.ts";

const options = {
  editRates: { fresh: { burst: 3, perSecond: 1 }, repeats: { burst: 5, perSecond: 2 } },
  controlRate: { burst: 4, perSecond: 1 },
  presenceRate: { burst: 2, perSecond: 3 },
  byteRate: { burst: 100, perSecond: 30 },
  catchUpRate: { burst: 50, perSecond: 20 },
};

const asked = fc.record({
  what: fc.constantFrom("bytes", "control", "edit", "presence", "catch-up"),
  amount: fc.integer({ min: 0, max: 60 }),
  afterMs: fc.integer({ min: 0, max: 3_000 }),
});

test("[RATE12] rates that return to the pool when they are full behave like rates that are kept", () => {
  fc.assert(
    fc.property(fc.array(asked, { maxLength: 60 }), (questions) => {
      const kept = new ConnectionRates(options);
      const spare = new RatePool(options);
      let looked = spare.take();
      const [seenByKept, seenByLooked] = [
        { joinedAt: 0 as Millis, first: 1, through: 0 },
        { joinedAt: 0 as Millis, first: 1, through: 0 },
      ];
      let now = 0 as Millis;
      const take = (rates: ConnectionRates, seen: typeof seenByKept, { what, amount }: (typeof questions)[number]): unknown => {
        switch (what) {
          case "bytes":
            return rates.takeBytes(amount, now);
          case "control":
            return rates.takeControl(now);
          case "edit":
            return rates.takeEdit(amount, seen, now);
          case "presence":
            return rates.takePresence(now);
          default:
            if (!rates.mayCatchUp(now)) return false;
            return rates.receiveCaughtUp(amount, now);
        }
      };
      for (const question of questions) {
        now = (now + question.afterMs) as Millis;
        if (looked.receiveTick(now) === "untouched") {
          spare.giveBack(looked);
          looked = spare.take();
        }
        expect(take(looked, seenByLooked, question)).toEqual(take(kept, seenByKept, question));
      }
    }),
    { numRuns: 300 },
  );
});

test("[RATE13] the pool hands out returned rates before it creates new ones, and keeps at most 1,024", () => {
  const spare = new RatePool(options);
  const all = Array.from({ length: 1_030 }, () => spare.take());
  expect(new Set(all).size).toBe(1_030);
  for (const rates of all) spare.giveBack(rates);
  const again = Array.from({ length: 1_030 }, () => spare.take());
  expect(again.filter((rates) => all.includes(rates))).toHaveLength(1_024);
});
