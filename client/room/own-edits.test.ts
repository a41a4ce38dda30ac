import { expect, test } from "vitest";

import type { ClientId } from "../../shared/ids.ts";
import { OwnEdits } from "./own-edits.ts";

const [ANN, BEFORE] = ["ann" as ClientId, "before" as ClientId];

test("[OWE1] all that is made under an id of the page's is its own, and nobody else's", () => {
  const own = new OwnEdits();
  own.add(ANN, 0, Infinity);
  own.add(ANN, 7, Infinity);
  expect([1, 7, 1_000_000].map((counter) => own.has(ANN, counter))).toEqual([true, true, true]);
  expect(own.has(BEFORE, 1)).toBe(false);
});

test("[OWE2] of pages before it only what was given back is its own, in runs that may have holes and be told again", () => {
  const own = new OwnEdits();
  for (const counter of [3, 4, 8]) own.add(BEFORE, counter - 1, counter);
  own.add(BEFORE, 3, 4);
  own.add(BEFORE, 8, 8);
  expect([2, 3, 4, 5, 7, 8, 9].filter((counter) => own.has(BEFORE, counter))).toEqual([3, 4, 8]);
});
