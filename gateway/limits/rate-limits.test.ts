import { expect, test } from "vitest";

import type { Millis } from "../../shared/ids.ts";
import { EditRate } from "./connection-rates.ts";

const at = (ms: number): Millis => ms as Millis;
const rates = { fresh: { burst: 3, perSecond: 1 }, repeats: { burst: 5, perSecond: 4 } };

function takeAll(take: () => boolean): number {
  let taken = 0;
  while (taken < 1_000 && take()) taken += 1;
  return taken;
}

test("[RATE3] resent edits use nothing of the rate for new edits", () => {
  const rate = new EditRate(rates, at(0));
  const seen = { joinedAt: at(-60_000), first: 1, through: 4 };
  for (const counter of [1, 2, 3, 4]) expect(rate.takeEdit(counter, seen, at(0))).toBe(true);
  for (const counter of [5, 6, 7]) expect(rate.takeEdit(counter, seen, at(0))).toBe(true);
  expect(rate.takeEdit(8, seen, at(0))).toBe(false);
});

test("[RATE4] an edit that is resent repeatedly is limited as well", () => {
  const rate = new EditRate(rates, at(0));
  const seen = { joinedAt: at(-60_000), first: 1, through: 1 };
  expect(takeAll(() => rate.takeEdit(1, seen, at(0)))).toBe(5);
});

test("[RATE5] directly after a join, edits that another connection may have sent count as resent", () => {
  const rate = new EditRate(rates, at(0));
  let counter = 0;
  const seen = { joinedAt: at(0), first: 1, through: 0 };
  expect(takeAll(() => rate.takeEdit((counter += 1), seen, at(0)))).toBe(3 + 5);
  const later = new EditRate(rates, at(0));
  counter = 0;
  expect(takeAll(() => later.takeEdit((counter += 1), { joinedAt: at(-60_000), first: 1, through: 0 }, at(0)))).toBe(3);
});

test("[RATE6] after an edit with a much higher counter, edits with lower counters that were never sent still count as new", () => {
  const rate = new EditRate(rates, at(0));
  const seen = { joinedAt: at(-60_000), first: 1, through: 0 };
  expect(rate.takeEdit(Number.MAX_SAFE_INTEGER, seen, at(0))).toBe(true);
  let counter = 0;
  expect(takeAll(() => rate.takeEdit((counter += 1), seen, at(0)))).toBe(2); // The edit far ahead was the first of three.
  expect([1, 2].map((sent) => rate.takeEdit(sent, seen, at(0)))).toEqual([true, true]);
});

test("[RATE7] a client that joins repeatedly sends new edits at no more than twice the rate", () => {
  const rate = new EditRate(rates, at(0));
  let counter = 0;
  const sentAt = (now: number): number => {
    const seen = { joinedAt: at(now), first: 1, through: 0 };
    return takeAll(() => rate.takeEdit((counter += 1), seen, at(now)));
  };
  expect([sentAt(0), sentAt(1_000), sentAt(2_000), sentAt(3_000)]).toEqual([3 + 5, 2, 2, 2]);
});
