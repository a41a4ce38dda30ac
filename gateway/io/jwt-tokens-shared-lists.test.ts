import { expect, test } from "vitest";
import { LISTS_MAX, SharedLists } from "./jwt-tokens.ts";

test("[SHL1] equal lists of one entry become one list; other lists are returned unchanged", () => {
  const lists = new SharedLists();
  const [first, second] = [lists.share(["notes"]), lists.share(["notes"])];
  expect([first, second === first, lists.share(["other"])]).toEqual([["notes"], true, ["other"]]);
  for (const list of [[], ["a", "b"]]) expect(lists.share(list)).toBe(list);
});

test("[SHL2] at the maximum all shared lists are forgotten", () => {
  const lists = new SharedLists();
  const first = lists.share(["0"]);
  for (let entry = 1; entry < LISTS_MAX; entry++) lists.share([String(entry)]);
  expect(lists.share(["0"])).toBe(first);
  lists.share(["one more"]);
  expect([lists.share(["0"]) === first, lists.share(["0"])]).toEqual([false, ["0"]]);
});
