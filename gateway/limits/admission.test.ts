import fc from "fast-check";
import { expect, test } from "vitest";

import type { Millis } from "../../shared/ids.ts";
import { Admission } from "./admission.ts";

const at = (ms: number): Millis => ms as Millis;

test("[ADM1] so many come in at once, so many wait, the rest are turned away", () => {
  const door = new Admission<number>({ connectsPerSecondMax: 40, connectQueueMax: 3 }, at(0));
  expect([1, 2, 3, 4, 5, 6, 7].map((guest) => door.knock(guest, at(0)))).toEqual([
    "come-in",
    "come-in",
    "wait",
    "wait",
    "wait",
    "turn-away",
    "turn-away",
  ]);
});

test("[ADM2] those who wait come in at the rate, in the order they came; nobody passes them", () => {
  const door = new Admission<number>({ connectsPerSecondMax: 20, connectQueueMax: 10 }, at(0));
  for (const guest of [0, 1, 2, 3, 4]) door.knock(guest, at(0));
  expect(door.admit(at(49))).toEqual([]);
  expect(door.knock(9, at(50))).toBe("wait");
  expect(door.admit(at(50))).toEqual([{ guest: 1, waitedMs: 50 }]);
  door.leave(2);
  expect([100, 150, 200].flatMap((ms) => door.admit(at(ms))).map(({ guest }) => guest)).toEqual([3, 4, 9]);
  expect(door.waiting).toBe(0);
});

test("[ADM3] in no second more come in than allowed and a twentieth, however they knock", () => {
  fc.assert(
    fc.property(fc.array(fc.nat(40), { minLength: 1, maxLength: 200 }), (pauses) => {
      const door = new Admission<number>({ connectsPerSecondMax: 40, connectQueueMax: 20 }, at(0));
      const entered: number[] = [];
      let now = 0;
      pauses.forEach((pause, guest) => {
        now += pause;
        entered.push(...door.admit(at(now)).map(() => now));
        if (door.knock(guest, at(now)) === "come-in") entered.push(now);
        expect(door.waiting).toBeLessThanOrEqual(20);
      });
      entered.forEach((from, index) => expect(entered.slice(index).filter((ms) => ms < from + 1_000).length).toBeLessThanOrEqual(42));
    }),
  );
});
