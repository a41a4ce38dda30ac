import { expect, test } from "vitest";

import type { Millis } from "../../shared/ids.ts";
import { ActivitiesEnd } from "./room-feed.ts";

const at = (ms: number) => ms as Millis;

test("[ENDS1] a room counts at once if the stream is known to end above what is counted, and otherwise the stream is asked once", () => {
  const ends = new ActivitiesEnd<string>();
  expect(ends.confirm("a", 0)).toEqual([{ kind: "confirmed", waiter: "a" }]);
  expect(ends.confirm("b", 5)).toEqual([{ kind: "read-activities-end" }]);
  expect(ends.confirm("c", 7)).toEqual([]);
  expect(ends.receiveEnd(7, at(0))).toEqual([
    { kind: "confirmed", waiter: "b" },
    { kind: "confirmed", waiter: "c" },
  ]);
  expect(ends.confirm("d", 7)).toEqual([{ kind: "confirmed", waiter: "d" }]);
});

test("[ENDS2] a stream that ends below what is counted is asked again after a second, because a new leader may not know its end", () => {
  const ends = new ActivitiesEnd<string>();
  ends.confirm("a", 5);
  expect([ends.receiveEnd(3, at(100)), ends.dueAt, ends.tick(at(1_099))]).toEqual([[], 1_100, []]);
  expect(ends.tick(at(1_100))).toEqual([{ kind: "read-activities-end" }]);
  expect(ends.receiveEnd(5, at(1_101))).toEqual([{ kind: "confirmed", waiter: "a" }]);
});

test("[ENDS3] a stream that still ends below is read, and then continues after the highest counted number", () => {
  const ends = new ActivitiesEnd<string>();
  ends.confirm("a", 5);
  ends.confirm("b", 9);
  ends.receiveEnd(3, at(0));
  ends.tick(at(1_000));
  expect(ends.receiveEnd(3, at(1_001))).toEqual([{ kind: "read-activities-now" }]);
  expect(ends.receiveReadNow()).toEqual([{ kind: "skip-activities", end: 3, through: 9 }]);
  expect(ends.receiveSkipped(9).map(({ kind }) => kind)).toEqual(["confirmed", "confirmed"]);
  expect(ends.dueAt).toBeUndefined();
});

test("[ENDS4] a room that begins to wait after the first answer is requested in a separate round", () => {
  const ends = new ActivitiesEnd<string>();
  ends.confirm("a", 5);
  ends.receiveEnd(3, at(0));
  ends.confirm("b", 9);
  ends.tick(at(1_000));
  ends.receiveEnd(3, at(1_001));
  expect(ends.receiveReadNow()).toEqual([{ kind: "skip-activities", end: 3, through: 5 }]);
  expect(ends.receiveSkipped(5)).toEqual([{ kind: "confirmed", waiter: "a" }, { kind: "read-activities-end" }]);
});
