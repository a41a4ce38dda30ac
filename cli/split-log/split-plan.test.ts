import { expect, test } from "vitest";

import { partitionOf, subjectsOf } from "../../shared/bus/subjects.ts";
import type { RoomKey } from "../../shared/ids.ts";
import { judgeCopy, leaseAfter, originOf, planSplit, roomsLacking, strangersIn } from "./split-plan.ts";

const ROOMS = Array.from({ length: 500 }, (_, index) => `acme.room-${index}` as RoomKey);

test("[SPL1] each partition after a split has only rooms of its origin, and no room is in two of them", () => {
  for (const [from, to] of [
    [1, 3],
    [3, 9],
    [4, 8],
    [5, 20],
  ] as const) {
    for (const room of ROOMS) expect(originOf(partitionOf(room, to), { from, to })).toBe(partitionOf(room, from));
    const subjects = ROOMS.map((room) => subjectsOf("test").log(0, room));
    const kept = Array.from({ length: to }, (_, partition) => subjects.length - strangersIn(subjects, partition, { from, to }).length);
    expect(kept.reduce((sum, count) => sum + count, 0)).toBe(ROOMS.length);
    expect(Math.min(...kept)).toBeGreaterThan(0);
  }
});

test("[SPL2] a filler of the numbering is in every partition, because it belongs to no room", () => {
  expect(strangersIn(["test.log.0.=.filler"], 2, { from: 1, to: 3 })).toEqual([]);
});

test("[SPL3] a split begins from a settled number with a multiple of it", () => {
  expect(planSplit({ kind: "settled", count: 3 }, 9)).toEqual({ kind: "copy", from: 3, to: 9 });
  expect(planSplit({ kind: "settled", count: 3 }, 3)).toEqual({ kind: "nothing" });
});

test.each([
  [3, 8, /multiple of 3, not 8; set --log-partitions 9,/],
  [3, 1, /multiple of 3, not 1; set --log-partitions 6,/],
  [4, 5, /multiple of 4, not 5; set --log-partitions 8,/],
  [1, 4_097, /not 4097; set a number up to 4096/],
  [3, 4_096, /not 4096; set a number up to 4096/],
])("[SPL4] a split of %i partitions into %i is refused with the number to set", (count, wanted, reason) => {
  expect(planSplit({ kind: "settled", count }, wanted)).toEqual({ kind: "refuse", reason: expect.stringMatching(reason) });
});

test("[SPL5] a split that was not completed continues from its step; it can be cancelled only while records are copied", () => {
  const [copying, moving] = [{ kind: "copying", from: 3, to: 9 } as const, { kind: "moving", from: 3, to: 9 } as const];
  expect(planSplit(copying, 9)).toEqual({ kind: "copy", from: 3, to: 9 });
  expect(planSplit(moving, 9)).toEqual({ kind: "move", from: 3, to: 9 });
  expect(planSplit(copying, 3)).toEqual({ kind: "cancel", from: 3, to: 9 });
  expect(planSplit(moving, 3)).toEqual({ kind: "refuse", reason: expect.stringMatching(/--log-partitions 9\. Rooms have moved/) });
  for (const stated of [copying, moving])
    expect(planSplit(stated, 27)).toEqual({ kind: "refuse", reason: expect.stringMatching(/from 3 into 9 .*--log-partitions 9/) });
});

test("[SPL6] a log that states no number is not split", () => {
  expect(planSplit(undefined, 9)).toEqual({ kind: "refuse", reason: expect.stringMatching(/no log .*COROOM_ENVIRONMENT/) });
});

test("[SPL7] a copy is complete only with the messages and the subjects of its origin", () => {
  const origin = { messages: 5, subjects: 2 };
  expect(judgeCopy(origin, origin)).toBe("complete");
  expect(judgeCopy(origin, { messages: 4, subjects: 2 })).toBe("different");
  expect(judgeCopy(origin, { messages: 6, subjects: 2 })).toBe("different");
  expect(judgeCopy(origin, { messages: 5, subjects: 1 })).toBe("different");
});

test("[SPL8] a room lacks records when its copy has fewer than the origin", () => {
  const counts = (entries: Record<string, number>) => new Map(Object.entries(entries));
  expect(roomsLacking(counts({ a: 2, b: 1, c: 1 }), counts({ a: 2, b: 3, d: 1 }))).toEqual(["c"]);
  expect(roomsLacking(counts({ a: 2 }), counts({ a: 1 }))).toEqual(["a"]);
});

test("[SPL9] a lease keeps its floor, without its holder and its last record; only the origin keeps the sentinel", () => {
  const lease = { holder: "gone", floor: 7, said: { service: "gone", number: 3 }, last: { streamSeq: 9, id: "record" } };
  expect(leaseAfter(lease, true)).toEqual({ holder: "", floor: 7, said: { service: "gone", number: 3 } });
  expect(leaseAfter(lease, false)).toEqual({ holder: "", floor: 7 });
});
