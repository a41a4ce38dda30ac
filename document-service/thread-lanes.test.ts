import { expect, test } from "vitest";

import type { Millis, RoomKey } from "../shared/ids.ts";
import { ThreadLanes } from "./thread-lanes.ts";

const lanes = () => new ThreadLanes({ mergeMsMax: 10_000, mergeThreads: 2, readsWaitingMax: 2 });
const [A, B] = ["demo.a", "demo.b"] as RoomKey[] as [RoomKey, RoomKey];
const at = (ms: number) => ms as Millis;

test("[LAN1] each lane has separate threads, and tasks of a lane start in order", () => {
  const plan = lanes();
  const started: string[] = [];
  for (const task of ["one", "two", "three", "four"]) plan.take("quick", () => started.push(task));
  plan.takeWrite(
    A,
    () => started.push("write"),
    () => {},
  );
  plan.take("quarantine", () => started.push("bad room"));
  expect([started, plan.waiting]).toEqual([["one", "two", "write", "bad room"], 2]);
  plan.release("quick");
  expect([started.at(-1), plan.waiting]).toEqual(["three", 1]);
  for (const _ of ["two", "three", "four"]) plan.release("quick");
  plan.take("quick", () => started.push("five"));
  expect(started.at(-1)).toBe("five");
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
  plan.take("quarantine", () => {});
  expect([plan.hasFreeThread("quarantine"), plan.hasFreeThread("quick")]).toEqual([false, true]);
});

test("[LAN6] of the writes that wait, the one of a room that used the thread less is next, and the room with the most is refused", () => {
  const plan = lanes();
  const told: string[] = [];
  const write = (room: RoomKey, name: string): void =>
    plan.takeWrite(
      room,
      () => told.push(name),
      () => told.push(`${name} is refused`),
    );
  for (const name of ["slow 1", "slow 2", "slow 3"]) write(A, name);
  write(B, "quick");
  expect([told, plan.waiting]).toEqual([["slow 1", "slow 3 is refused"], 2]);
  plan.releaseWrite(A, 100);
  plan.releaseWrite(B, 1);
  plan.releaseWrite(A, 100);
  expect([told.slice(2), plan.waiting]).toEqual([["quick", "slow 2"], 0]);
  write(B, "later");
  expect(told.at(-1)).toBe("later");
});
