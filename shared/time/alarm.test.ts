import { expect, test } from "vitest";

import type { Millis } from "../ids.ts";
import { FakeClock } from "../testing/fake-clock.ts";
import { Alarm, Alarms } from "./alarm.ts";

function alarms(...names: string[]) {
  const clock = new FakeClock(0);
  const [rung, ends] = [[] as string[], [] as (() => void)[]];
  const deps = { clock, endOfTurn: (run: () => void) => void ends.push(run) };
  const all = new Alarms(deps);
  const endTurn = (): void => ends.splice(0).forEach((run) => run());
  return { clock, rung, endTurn, set: names.map((name) => new Alarm(() => rung.push(name), all)) };
}

test("[ALM1] all alarms that are due in a turn ring together at its end", () => {
  const { clock, rung, endTurn, set } = alarms("a", "b", "c");
  const [a, b, c] = set as [Alarm, Alarm, Alarm];
  a.setFor(10 as Millis);
  b.setFor(10 as Millis);
  clock.turn(10);
  c.setFor(10 as Millis); // At once.
  expect(rung).toEqual([]);
  endTurn();
  expect(rung).toEqual(["a", "b", "c"]);
});

test("[ALM2] an alarm keeps the time it was last set to, earlier or later than the one before", () => {
  const { clock, rung, endTurn, set } = alarms("a", "b");
  const [a, b] = set as [Alarm, Alarm];
  a.setFor(20 as Millis);
  a.setFor(10 as Millis);
  b.setFor(10 as Millis);
  b.setFor(30 as Millis);
  clock.turn(29);
  endTurn();
  expect(rung).toEqual(["a"]);
  clock.turn(100);
  endTurn();
  expect(rung).toEqual(["a", "b"]);
});

test("[ALM3] an alarm that is postponed or cancelled while its turn ends does not ring, even if its time has come", () => {
  const { clock, rung, endTurn, set } = alarms("a", "b", "c");
  const [a, b, c] = set as [Alarm, Alarm, Alarm];
  for (const alarm of [a, b, c]) alarm.setFor(10 as Millis);
  clock.turn(10);
  a.callOff();
  b.setFor(20 as Millis);
  c.setFor(Number.POSITIVE_INFINITY as Millis);
  endTurn();
  expect(rung).toEqual([]);
  clock.turn(10);
  endTurn();
  clock.turn(100);
  endTurn();
  expect(rung).toEqual(["b"]);
});

test("[ALM4] postponing an alarm takes no new timer, and an alarm may be set again while it rings", () => {
  const clock = new FakeClock(0);
  const rung: number[] = [];
  const alarm: Alarm = new Alarm(
    () => {
      rung.push(clock.now());
      if (rung.length < 3) alarm.setFor((clock.now() + 5) as Millis);
    },
    new Alarms({ clock, endOfTurn: (run) => run() }),
  );
  for (let at = 1; at <= 10; at++) alarm.setFor(at as Millis);
  expect(clock.pending).toBe(1);
  clock.turn(100);
  expect(rung).toEqual([10, 15, 20]);
  expect(clock.pending).toBe(0);
});

test("[ALM5] alarms for one time share a timer, which is cancelled with the last of them", () => {
  const { clock, rung, endTurn, set } = alarms("a", "b", "c");
  const [a, b, c] = set as [Alarm, Alarm, Alarm];
  for (const alarm of [a, b, c]) alarm.setFor(10 as Millis);
  expect(clock.pending).toBe(1);
  b.setFor(5 as Millis);
  expect(clock.pending).toBe(2);
  a.callOff();
  c.callOff();
  expect(clock.pending).toBe(1);
  clock.turn(20);
  endTurn();
  expect(rung).toEqual(["b"]);
});

test("[ALM6] an alarm that rings can cancel or postpone another alarm that is due at the same time", () => {
  const clock = new FakeClock(0);
  const rung: string[] = [];
  const all = new Alarms({ clock, endOfTurn: (run) => run() });
  const gone = new Alarm(() => rung.push("gone"), all);
  const later = new Alarm(() => rung.push(`later at ${clock.now()}`), all);
  const first = new Alarm(() => {
    rung.push("first");
    gone.callOff();
    later.setFor(30 as Millis);
  }, all);
  for (const alarm of [first, gone, later]) alarm.setFor(10 as Millis);
  clock.turn(10);
  expect(rung).toEqual(["first"]);
  clock.turn(100);
  expect(rung).toEqual(["first", "later at 30"]);
  expect(clock.pending).toBe(0);
});
