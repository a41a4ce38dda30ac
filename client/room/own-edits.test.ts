import { expect, test } from "vitest";

import type { ClientId } from "../../shared/ids.ts";
import { OwnEdits } from "./incoming-edits.ts";

const [ANN, BEFORE] = ["ann" as ClientId, "before" as ClientId];

test("[OWE1] all edits under a client id of this page are own, and no others", () => {
  const own = new OwnEdits();
  own.add(ANN, 0, Infinity);
  own.add(ANN, 7, Infinity);
  expect([1, 7, 1_000_000].map((counter) => own.has(ANN, counter))).toEqual([true, true, true]);
  expect(own.has(BEFORE, 1)).toBe(false);
});

test("[OWE2] only recovered edits of earlier pages are own, in runs that may have gaps and repeat", () => {
  const own = new OwnEdits();
  for (const counter of [3, 4, 8]) own.add(BEFORE, counter - 1, counter);
  own.add(BEFORE, 3, 4);
  own.add(BEFORE, 8, 8);
  expect([2, 3, 4, 5, 7, 8, 9].filter((counter) => own.has(BEFORE, counter))).toEqual([3, 4, 8]);
});
