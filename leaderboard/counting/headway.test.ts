import { expect, test } from "vitest";

import type { UnixMillis } from "../../shared/ids.ts";
import { Headway } from "./headway.ts";

const date = (ms: number) => ms as UnixMillis;

test("[HEAD1] all before the question is counted once both streams are counted to where they ended then", () => {
  const headway = new Headway({ edits: 3, activities: 0 }, date(50));
  headway.aimAt({ edits: 5, activities: 2 }, date(100));
  headway.aimAt({ edits: 9, activities: 9 }, date(200)); // One question at a time.
  headway.receive("edits", 7);
  expect([headway.count(headway.received), headway.through, headway.hasCaughtUp]).toEqual([false, 50, false]);
  headway.receive("activities", 2);
  expect([headway.count(headway.received), headway.through, headway.hasCaughtUp]).toEqual([true, 100, true]);
});

test("[HEAD2] catching up is said once, and without a question nothing is known to be counted", () => {
  const headway = new Headway({ edits: 0, activities: 0 }, date(0));
  expect(headway.count({ edits: 9, activities: 9 })).toBe(false);
  headway.aimAt({ edits: 0, activities: 0 }, date(10));
  expect(headway.count({ edits: 0, activities: 0 })).toBe(true);
  headway.aimAt({ edits: 1, activities: 0 }, date(20));
  expect(headway.count({ edits: 1, activities: 0 })).toBe(false);
  expect(headway.through).toBe(20);
});

test("[HEAD3] what was removed before it was read is not waited for", () => {
  const headway = new Headway({ edits: 0, activities: 0 }, date(0));
  headway.aimAt({ edits: 2, activities: 7 }, date(100));
  headway.aimAt({ edits: 3, activities: 4 }, date(200));
  expect(headway.count({ edits: 2, activities: 3 })).toBe(false);
  expect([headway.count({ edits: 2, activities: 4 }), headway.through]).toEqual([true, 100]);
});
