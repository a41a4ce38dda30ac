import fc from "fast-check";
import { expect, test } from "vitest";

import type { RoomKey } from "../ids.ts";
import { FairQueue, UsedTime } from "./fair-queue.ts";

const [A, B, OTHER] = ["acme.a", "acme.b", "other.a"] as RoomKey[] as [RoomKey, RoomKey, RoomKey];

/** Takes all tasks, each of which uses the thread for the time that `msOf` gives. Tasks are named after their room. */
function drain(queue: FairQueue<string>, msOf: (room: RoomKey) => number): string[] {
  const taken: string[] = [];
  for (let task = queue.next(); task !== undefined; task = queue.next()) {
    taken.push(task);
    const room = task.split(" ")[0] as RoomKey;
    queue.charge(room, msOf(room));
  }
  return taken;
}

test("[FRQ1] rooms with tasks of the same length take turns, and the tasks of a room keep their order", () => {
  const queue = new FairQueue<string>(10);
  for (const [room, name] of [[A, 1], [A, 2], [A, 3], [B, 4], [B, 5]] as const) queue.add(room, `${room} ${name}`); // prettier-ignore
  expect(drain(queue, () => 10)).toEqual(["acme.a 1", "acme.b 4", "acme.a 2", "acme.b 5", "acme.a 3"]);
});

test("[FRQ2] a task of a room with short tasks is the next, however many of a room with long tasks wait", () => {
  const queue = new FairQueue<string>(100);
  for (let task = 0; task < 50; task++) queue.add(A, `${A} ${task}`);
  for (let round = 0; round < 10; round++) {
    expect(queue.next()).toBe(`${A} ${round}`);
    queue.add(B, `${B} ${round}`);
    queue.charge(A, 100);
    expect(queue.next()).toBe(`${B} ${round}`);
    queue.charge(B, 1);
  }
});

test("[FRQ3] in a full queue the last task of the room with the most is refused, in the tenant with the most, and never for one with as many", () => {
  const queue = new FairQueue<string>(3);
  for (const name of ["1", "2", "3"]) expect(queue.add(A, name)).toBeUndefined();
  expect([queue.add(A, "4"), queue.add(B, "5"), queue.add(B, "6"), queue.add(OTHER, "7")]).toEqual(["4", "3", "6", "2"]);
  expect([queue.length, queue.add("third.a" as RoomKey, "8")]).toEqual([3, "1"]);
  expect([queue.length, queue.add("fourth.a" as RoomKey, "9")]).toEqual([3, "9"]);
});

test("[FRQ4] a tenant with many rooms uses the thread no longer than one with a single room", () => {
  const queue = new FairQueue<string>(100);
  for (let room = 0; room < 20; room++) queue.add(`acme.${room}` as RoomKey, `acme.${room} x`);
  for (let task = 0; task < 5; task++) queue.add(OTHER, `${OTHER} ${task}`);
  const taken = drain(queue, () => 100);
  expect(taken.slice(0, 10).filter((task) => task.startsWith("other"))).toHaveLength(5);
  expect(taken).toHaveLength(25);
});

test("[FRQ5] every task is taken or refused once, and one of a room with short tasks waits for one of each other room at most", () => {
  const step = fc.record({ room: fc.integer({ min: 0, max: 5 }), takes: fc.integer({ min: 0, max: 2 }) });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), fc.integer({ min: 1, max: 20 }), (steps, tasksMax) => {
      const queue = new FairQueue<number>(tasksMax);
      const rooms: RoomKey[] = [];
      const ended: number[] = [];
      /** By waiting task of the first room: the tasks of each other room since it waits. */
      const passed = new Map<number, Map<RoomKey, number>>();
      let running: number | undefined;
      const take = (): void => {
        if (running !== undefined) queue.charge(rooms[running]!, rooms[running] === "acme.0" ? 0 : 100);
        running = queue.next();
        if (running === undefined) return;
        ended.push(running);
        passed.delete(running);
        const room = rooms[running]!;
        if (room !== "acme.0") for (const counts of passed.values()) counts.set(room, (counts.get(room) ?? 0) + 1);
      };
      for (const { room, takes } of steps) {
        const task = rooms.push(`acme.${room}` as RoomKey) - 1;
        const refused = queue.add(rooms[task]!, task);
        if (room === 0) passed.set(task, new Map());
        if (refused !== undefined) {
          ended.push(refused);
          passed.delete(refused);
        }
        for (let turn = 0; turn < takes; turn++) take();
        expect(queue.length).toBeLessThanOrEqual(tasksMax);
        for (const counts of passed.values()) for (const count of counts.values()) expect(count).toBe(1);
      }
      do take();
      while (running !== undefined);
      expect(ended.toSorted((a, b) => a - b)).toEqual(rooms.map((_, task) => task));
    }),
  );
});

test("[FRQ6] the time of 10,000 keys is known, and that of those which others have reached is forgotten", () => {
  const used = new UsedTime<number>();
  for (let key = 0; key < 10_001; key++) used.add(key, 100 + key);
  expect([used.size, used.least([1, 0])], "the first key has used nothing that is known").toEqual([10_000, 0]);
  expect([used.least([5_000, 6_000]), used.size]).toEqual([5_000, 5_000]);
});
