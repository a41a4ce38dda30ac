import { expect, test } from "vitest";

import type { Millis, RoomKey } from "../shared/ids.ts";
import { type ThreadLane, ThreadLanes, type ThreadTaskKind } from "./thread-lanes.ts";

const lanes = () => new ThreadLanes({ mergeMsMax: 10_000, mergeThreads: 2, readsWaitingMax: 2 });
const [A, B, OTHER] = ["demo.a", "demo.b", "other.a"] as RoomKey[] as [RoomKey, RoomKey, RoomKey];
const at = (ms: number) => ms as Millis;

/** Tasks of a lane, which are named when they start or are refused. */
function tasksOf(plan: ThreadLanes, lane: ThreadLane) {
  const told: string[] = [];
  const take = (kind: ThreadTaskKind, room: RoomKey, name: string): void =>
    plan.take(lane, { kind, room, start: () => told.push(name), refuse: () => told.push(`${name} is refused`) });
  return { told, take, release: (kind: ThreadTaskKind, room: RoomKey, ms: number) => plan.release(lane, { kind, room }, ms) };
}

test("[LAN1] each lane has separate threads, and tasks of a room start in order", () => {
  const plan = lanes();
  const [quick, writes, quarantine] = [tasksOf(plan, "quick"), tasksOf(plan, "writes"), tasksOf(plan, "quarantine")];
  for (const name of ["one", "two", "three", "four"]) quick.take("background", A, name);
  writes.take("write", A, "write");
  quarantine.take("background", A, "bad room");
  expect([quick.told, writes.told, quarantine.told, plan.waiting]).toEqual([["one", "two"], ["write"], ["bad room"], 2]);
  quick.release("background", A, 1);
  expect([quick.told.at(-1), plan.waiting]).toEqual(["three", 1]);
  for (const _ of ["two", "three", "four"]) quick.release("background", A, 1);
  quick.take("background", A, "five");
  expect([quick.told.at(-1), plan.hasFreeThread("quick")]).toEqual(["five", true]);
});

test("[LAN2] a first try may take one second, and no task more than the setting", () => {
  expect((["quick", "writes", "quarantine"] as const).map((lane) => lanes().msMax(lane))).toEqual([1_000, 10_000, 10_000]);
  expect(new ThreadLanes({ mergeMsMax: 300, mergeThreads: 1, readsWaitingMax: 2 }).msMax("quick")).toBe(300);
});

test("[LAN3] a quarantined room stays there until a merge of it is quick", () => {
  const plan = lanes();
  expect([plan.quarantine(A, at(0)), plan.quarantine(A, at(1))]).toEqual([true, false]);
  expect([plan.laneOf(A, at(2)), plan.laneOf(B, at(2)), plan.quarantinedRooms(at(2))]).toEqual(["quarantine", "quick", 1]);
  expect([plan.receiveMerged(A, 4_000), plan.laneOf(A, at(3))]).toEqual([false, "quarantine"]);
  expect([plan.receiveMerged(A, 40), plan.laneOf(A, at(4)), plan.quarantinedRooms(at(4))]).toEqual([true, "quick", 0]);
});

test("[LAN4] a room that is not tried again is forgotten after an hour", () => {
  const plan = lanes();
  plan.quarantine(A, at(0));
  plan.quarantine(B, at(1_000_000));
  expect([plan.quarantinedRooms(at(3_600_001)), plan.laneOf(A, at(3_600_001)), plan.laneOf(B, at(3_600_001))]).toEqual([
    1,
    "quick",
    "quarantine",
  ]);
});

test("[LAN5] a quarantined history leaves its room where it is, and a quarantined room takes its history with it", () => {
  const plan = lanes();
  plan.quarantineHistory(A, at(0));
  plan.quarantine(B, at(0));
  expect([plan.laneOf(A, at(1)), plan.laneOfHistory(A, at(1)), plan.quarantinedRooms(at(1))]).toEqual(["quick", "quarantine", 1]);
  expect([plan.laneOf(B, at(1)), plan.laneOfHistory(B, at(1))]).toEqual(["quarantine", "quarantine"]);
  expect([plan.receiveMerged(A, 40), plan.laneOfHistory(A, at(2)), plan.laneOfHistory(A, at(3_600_000))]).toEqual([
    false,
    "quarantine",
    "quick",
  ]);
  tasksOf(plan, "quarantine").take("read", A, "history");
  expect([plan.hasFreeThread("quarantine"), plan.hasFreeThread("quick")]).toEqual([false, true]);
});

test("[LAN6] of the writes that wait, the one of a room that used the thread less is next, and the room with the most is refused", () => {
  const plan = lanes();
  const { told, take, release } = tasksOf(plan, "writes");
  for (const name of ["slow 1", "slow 2", "slow 3"]) take("write", A, name);
  take("write", B, "quick");
  expect([told, plan.waiting]).toEqual([["slow 1", "slow 3 is refused"], 2]);
  release("write", A, 100);
  release("write", B, 1);
  release("write", A, 100);
  expect([told.slice(2), plan.waiting]).toEqual([["quick", "slow 2"], 0]);
  take("write", B, "later");
  expect(told.at(-1)).toBe("later");
});

test.each(["quick", "quarantine"] as const)(
  "[LAN7] in %s, a merge or a read of another tenant waits for the tasks that run, however many slow rooms of one tenant wait",
  (lane) => {
    for (const kind of ["read", "awaited", "background"] as const) {
      const plan = new ThreadLanes({ mergeMsMax: 10_000, mergeThreads: 2, readsWaitingMax: 100 });
      const { told, take, release } = tasksOf(plan, lane);
      const room = (index: number) => `demo.${index}` as RoomKey;
      for (let index = 0; index < 40; index++) take(kind, room(index), `slow ${index}`);
      release(kind, room(0), 900);
      for (let round = 0; round < 3; round++) {
        take(kind, OTHER, `other ${round}`);
        release(kind, room(1 + round), 900);
        expect(told.at(-1)).toBe(`other ${round}`);
        release(kind, OTHER, 5);
        expect(told.at(-1)).toMatch("slow");
      }
    }
  },
);

test("[LAN8] merges are never refused, and do not count as waiting reads", () => {
  const plan = lanes();
  const { told, take } = tasksOf(plan, "quick");
  for (let merge = 0; merge < 50; merge++) take(merge % 2 === 0 ? "awaited" : "background", A, "merge");
  for (const name of ["read 1", "read 2", "read 3"]) take("read", B, name);
  expect([told, plan.waiting]).toEqual([["merge", "merge", "read 3 is refused"], 50]);
});

test("[LAN9] tasks that clients wait for go before background merges that wait, and leave them a part of the time", () => {
  const plan = new ThreadLanes({ mergeMsMax: 10_000, mergeThreads: 1, readsWaitingMax: 100 });
  const { told, take, release } = tasksOf(plan, "quick");
  const kinds = ["background", "awaited", "read"] as const;
  for (let task = 0; task < 60; task++) take("background", A, "background");
  for (const kind of ["awaited", "read"] as const) take(kind, B, kind);
  release("background", A, 100);
  release("read", B, 100);
  expect(told).toEqual(["background", "read", "awaited"]);
  for (let task = 0; task < 60; task++) for (const kind of ["awaited", "read"] as const) take(kind, B, kind);
  for (let turn = 0; turn < 90; turn++)
    release(
      kinds.find((kind) => kind === told.at(-1))!,
      A,
      100,
    );
  const counts = kinds.map((kind) => told.slice(3).filter((name) => name === kind).length);
  expect(counts).toEqual([10, 40, 40]);
});

test.each(["quick", "quarantine"] as const)(
  "[LAN10] in %s, a task that a client waits for goes before those of every kind of a tenant that used more",
  (lane) => {
    const plan = new ThreadLanes({ mergeMsMax: 10_000, mergeThreads: 1, readsWaitingMax: 100 });
    const { told, take, release } = tasksOf(plan, lane);
    for (let task = 0; task < 5; task++) for (const kind of ["read", "awaited"] as const) take(kind, A, `slow ${kind}`);
    for (const kind of ["read", "awaited"] as const) take(kind, OTHER, `other ${kind}`);
    release("read", A, 900);
    release("read", OTHER, 5);
    release("awaited", OTHER, 5);
    release("awaited", A, 900);
    expect(told.map((name) => name.split(" ")[0])).toEqual(["slow", "other", "other", "slow", "slow"]);
  },
);
