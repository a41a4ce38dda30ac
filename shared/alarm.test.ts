import { expect, test } from "vitest";

import { Alarm } from "./alarm.ts";
import type { Millis } from "./ids.ts";
import { FakeClock } from "./testing/fake-clock.ts";

function alarms(...names: string[]) {
  const clock = new FakeClock(0);
  const [rung, ends] = [[] as string[], [] as (() => void)[]];
  const deps = { clock, endOfTurn: (run: () => void) => void ends.push(run) };
  const endTurn = (): void => ends.splice(0).forEach((run) => run());
  return { clock, rung, endTurn, set: names.map((name) => new Alarm(() => rung.push(name), deps)) };
}

test("[ALM1] all that are due in a turn ring together at its end", () => {
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

test("[ALM2] the time that it was last set to holds, sooner or later than the one before", () => {
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

test("[ALM3] one that is put off or called off while its turn ends does not ring, though its time has come", () => {
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

test("[ALM4] putting it off takes no timer of its own, and it may be set again while it rings", () => {
  const clock = new FakeClock(0);
  const rung: number[] = [];
  const alarm: Alarm = new Alarm(() => {
    rung.push(clock.now());
    if (rung.length < 3) alarm.setFor((clock.now() + 5) as Millis);
  }, { clock, endOfTurn: (run) => run() });
  for (let at = 1; at <= 10; at++) alarm.setFor(at as Millis);
  expect(clock.pending).toBe(1);
  clock.turn(100);
  expect(rung).toEqual([10, 15, 20]);
  expect(clock.pending).toBe(0);
});
