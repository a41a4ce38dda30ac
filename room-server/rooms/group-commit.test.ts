import { expect, test } from "vitest";

import type { ClientId, Millis, Seq, UserId } from "../../shared/ids.ts";
import { GroupCommit } from "./intake.ts";

const options = { unackedEditsMax: 5, unackedBytesMax: 100, recordBytesMax: 40 };
const now = 0 as Millis;
const edit = (counter: number, bytes = 10) => ({
  author: { user: "ann" as UserId, client: "annannannannann1" as ClientId },
  counter,
  ackedThrough: 0,
  parentSeq: 0 as Seq,
  payload: new Uint8Array(bytes),
});
const counters = (edits: Iterable<{ counter: number }>) => [...edits].map(({ counter }) => counter);

test("[GRP1] one append is in flight at a time; edits that wait meanwhile share the next", () => {
  const group = new GroupCommit(options);
  group.add(edit(1), now);
  expect(counters(group.takeNext(now))).toEqual([1]);
  group.add(edit(2), now);
  group.add(edit(3), now);
  expect(counters(group.takeNext(now))).toEqual([]);
  group.settle();
  expect(counters(group.takeNext(now))).toEqual([2, 3]);
});

test("[GRP2] a record keeps the order and its maximum of bytes", () => {
  const group = new GroupCommit(options);
  for (const [counter, bytes] of [
    [1, 30],
    [2, 10],
    [3, 1],
    [4, 40],
  ] as const)
    group.add(edit(counter, bytes), now);
  for (const expected of [[1, 2], [3], [4]]) {
    expect(counters(group.takeNext(now))).toEqual(expected);
    group.settle();
  }
});

test("[GRP3] edits and bytes that the log does not have yet are bounded, including those in flight", () => {
  const byEdits = new GroupCommit(options);
  for (let counter = 1; counter <= 5; counter++) byEdits.add(edit(counter, 1), now);
  byEdits.takeNext(now);
  expect(byEdits.hasRoomFor(new Uint8Array(1))).toBe(false);
  byEdits.settle();
  expect(byEdits.hasRoomFor(new Uint8Array(1))).toBe(true);

  const byBytes = new GroupCommit(options);
  for (let counter = 1; counter <= 3; counter++) byBytes.add(edit(counter, 30), now);
  expect(byBytes.hasRoomFor(new Uint8Array(10))).toBe(true);
  expect(byBytes.hasRoomFor(new Uint8Array(11))).toBe(false);
  byBytes.takeNext(now);
  expect(byBytes.hasRoomFor(new Uint8Array(11)), "in flight").toBe(false);
  byBytes.settle();
  expect([byBytes.hasRoomFor(new Uint8Array(40)), byBytes.hasRoomFor(new Uint8Array(41))], "stored").toEqual([true, false]);
});

test("[GRP4] the group commit reports how long the append in flight takes and how long the oldest edit has waited", () => {
  const group = new GroupCommit(options);
  expect(group.delays(5 as Millis)).toEqual({ appendMs: 0, oldestMs: 0 });
  group.add(edit(1), 5 as Millis);
  group.takeNext(6 as Millis);
  group.add(edit(2), 9 as Millis);
  expect(group.delays(20 as Millis)).toEqual({ appendMs: 14, oldestMs: 15 });
  group.settle();
  expect(group.delays(20 as Millis)).toEqual({ appendMs: 0, oldestMs: 11 });
  expect(counters(group.edits())).toEqual([2]);
});

test("[GRP5] a payload is copied, so that the network's buffer is not kept", () => {
  const group = new GroupCommit(options);
  const buffer = new Uint8Array(64 * 1024);
  group.add({ ...edit(1), payload: buffer.subarray(100, 110) }, now);
  expect(group.takeNext(now)[0]?.payload.buffer.byteLength).toBe(10);
});

test("[GRP6] a throttled room begins a record a fixed time after the previous one, and all gathered edits share it", () => {
  const group = new GroupCommit(options);
  group.gatherFor(80);
  group.add(edit(1), 0 as Millis);
  expect(counters(group.takeNext(0 as Millis)), "the first does not wait").toEqual([1]);
  group.settle();
  for (const [counter, ms] of [
    [2, 10],
    [3, 60],
  ] as const) {
    group.add(edit(counter), ms as Millis);
    expect(counters(group.takeNext(ms as Millis))).toEqual([]);
  }
  expect(counters(group.takeNext(80 as Millis))).toEqual([2, 3]);
  group.settle();
  group.add(edit(4), 81 as Millis);
  group.gatherFor(0);
  expect(counters(group.takeNext(81 as Millis))).toEqual([4]);
});
