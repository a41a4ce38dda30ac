import { expect, test } from "vitest";

import type { Millis, RoomKey } from "../../shared/ids.ts";
import { BUDGET_LEVEL_MAX, budgetOf, FairShare } from "./fair-share.ts";

const options = { shareDelayMsMin: 100, shareCalmMs: 2_000 };
const hot = "acme.hot" as RoomKey;
const costs = new Map<RoomKey, number>([
  [hot, 5_000],
  ...Array.from({ length: 200 }, (_, index): [RoomKey, number] => [`acme.room${index}` as RoomKey, 20]),
]);
const seconds = (count: number) => (count * 1_000) as Millis;

test("[FAIR1] the room that costs half of the total is throttled; ordinary rooms are not", () => {
  const share = new FairShare(options);
  expect(share.receiveCosts(costs, 150, seconds(1))).toEqual([{ room: hot, from: 0, to: 1 }]);
  expect(share.receiveCosts(costs, 150, seconds(2))).toEqual([{ room: hot, from: 1, to: 2 }]);
  expect([1, 2, 3].map((level) => share.heldAt(level))).toEqual([0, 1, 0]);
});

test("[FAIR2] the room is throttled more, down to the last level, and stays there while the server is late", () => {
  const share = new FairShare(options);
  for (let second = 1; second <= BUDGET_LEVEL_MAX; second++) expect(share.receiveCosts(costs, 500, seconds(second))).toHaveLength(1);
  expect(share.receiveCosts(costs, 500, seconds(9))).toEqual([]);
  expect(share.full).toEqual([hot]);
});

test("[FAIR3] a server on time raises the level once per calm interval, until no room is throttled", () => {
  const share = new FairShare(options);
  for (let second = 1; second <= 2; second++) share.receiveCosts(costs, 500, seconds(second));
  const given = [3, 4, 5, 6, 7, 8, 9].map((second) => share.receiveCosts(costs, 10, seconds(second)).map(({ to }) => to));
  expect(given).toEqual([[], [], [1], [], [0], [], []]);
  expect([1, 2].map((level) => share.heldAt(level))).toEqual([0, 0]);
});

test("[FAIR4] no level changes while the delay is between half the limit and the limit, or while all rooms cost nothing", () => {
  const share = new FairShare(options);
  share.receiveCosts(costs, 500, seconds(1));
  for (let second = 2; second < 20; second++) expect(share.receiveCosts(costs, 60, seconds(second))).toEqual([]);
  expect(share.receiveCosts(new Map([[hot, 0]]), 500, seconds(20))).toEqual([]);
});

test("[FAIR5] each step includes all measures of the step before, and acks are delayed before joins are refused", () => {
  for (let level = 1; level <= BUDGET_LEVEL_MAX; level++) {
    const [before, after] = [budgetOf(level - 1), budgetOf(level)];
    expect(after.tickFactor).toBeGreaterThanOrEqual(before.tickFactor);
    expect(after.perSecondMax).toBeLessThanOrEqual(before.perSecondMax);
    expect(after.shed).toBeGreaterThan(before.shed);
    expect(after.gathersEdits).toBe(after.shed >= 7);
  }
  expect([4, 5].map((level) => budgetOf(level))).toMatchObject([
    { gathersEdits: true, shed: 7 },
    { gathersEdits: true, shed: 8 },
  ]);
});

test("[FAIR11] rooms that use little of a core are not throttled while something else makes the server late", () => {
  const share = new FairShare(options);
  const quiet = new Map<RoomKey, number>([["acme.notes" as RoomKey, 110]]);
  for (let second = 1; second <= 9; second++) expect(share.receiveCosts(quiet, 500, seconds(second))).toEqual([]);
  expect(share.receiveCosts(new Map([...quiet, [hot, 260]]), 500, seconds(10))).toEqual([{ room: hot, from: 0, to: 1 }]);
});

test("[FAIR12] a throttled room that costs next to nothing regains its levels, also while other rooms keep the server late", () => {
  const share = new FairShare(options);
  for (let second = 1; second <= BUDGET_LEVEL_MAX; second++) share.receiveCosts(costs, 500, seconds(second));
  expect(share.full).toEqual([hot]);
  const other = "acme.other" as RoomKey;
  for (let second = 10; second < 30; second++) share.receiveCosts(new Map([[hot, 110], [other, 900]]), 500, seconds(second)); // prettier-ignore
  expect([...share.held]).toEqual([[other, BUDGET_LEVEL_MAX]]);
  for (let second = 30; second < 50; second++) share.receiveCosts(new Map(), 500, seconds(second));
  expect([...share.held]).toEqual([]);
});
