import { expect, test } from "vitest";

import type { Millis } from "../../shared/ids.ts";
import { LineBucket } from "./line-bucket.ts";

const at = (ms: number): Millis => (1_000_000 + ms) as Millis;
const bucket = (): LineBucket => new LineBucket({ size: 10, perSecond: 10 }, at(0));

function takeAll(from: LineBucket, ms: number): number {
  let taken = 0;
  for (; from.mayTake(at(ms)); taken++) from.take(1, at(ms));
  return taken;
}

test("[LIB1] what is not known to have arrived leaves so much less room", () => {
  const line = bucket();
  line.take(6, at(0));
  expect(takeAll(line, 60_000)).toBe(4);
  expect(takeAll(line, 120_000)).toBe(0);
});

test("[LIB2] only what was on its way when the server was asked has arrived once it answers", () => {
  const line = bucket();
  line.take(6, at(0));
  line.asked();
  line.take(3, at(0));
  line.arrived(at(60_000));
  expect(takeAll(line, 120_000)).toBe(7);
});

test("[LIB3] a stall saves nothing up: from when the answer comes it fills as ever", () => {
  const line = bucket();
  takeAll(line, 0);
  line.asked();
  line.arrived(at(60_000));
  expect([takeAll(line, 60_000), takeAll(line, 60_500)]).toEqual([0, 5]);
});

test("[LIB4] it is asked soon once half of the room is on its way, and not after what was given back", () => {
  const line = bucket();
  line.take(4, at(0));
  expect(line.asksSoon).toBe(false);
  line.take(1, at(0));
  expect(line.asksSoon).toBe(true);
  line.giveBack(1);
  expect(line.asksSoon).toBe(false);
});

test("[LIB4] while nothing arrives it is looked again now and then, and not all the time", () => {
  const line = new LineBucket({ size: 10_000, perSecond: 1_000_000 }, at(0));
  line.take(10_000, at(0));
  expect(line.hasAt(1, at(60_000))).toBe(at(60_100));
});
