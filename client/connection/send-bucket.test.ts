import { expect, test } from "vitest";

import type { Millis } from "../../shared/ids.ts";
import { SendBucket } from "./client-rates.ts";

const at = (ms: number): Millis => (1_000_000 + ms) as Millis;
const bucket = (): SendBucket => new SendBucket({ size: 10, perSecond: 10 }, at(0));

function takeAll(from: SendBucket, ms: number): number {
  let taken = 0;
  for (; from.mayTake(at(ms)); taken++) from.take(1, at(ms));
  return taken;
}

test("[LIB1] unconfirmed frames reduce what the bucket allows", () => {
  const line = bucket();
  line.take(6, at(0));
  expect(takeAll(line, 60_000)).toBe(4);
  expect(takeAll(line, 120_000)).toBe(0);
});

test("[LIB2] a PONG confirms only the frames that were sent before its PING", () => {
  const line = bucket();
  line.take(6, at(0));
  line.markAsked();
  line.take(3, at(0));
  line.receiveArrival(at(60_000));
  expect(takeAll(line, 120_000)).toBe(7);
});

test("[LIB3] a stall saves nothing: after the PONG the bucket fills at the usual rate", () => {
  const line = bucket();
  takeAll(line, 0);
  line.markAsked();
  line.receiveArrival(at(60_000));
  expect([takeAll(line, 60_000), takeAll(line, 60_500)]).toEqual([0, 5]);
});

test("[LIB4] a PING is due once half of the burst is unconfirmed, and not after frames that were returned", () => {
  const line = bucket();
  line.take(4, at(0));
  expect(line.needsArrival).toBe(false);
  line.take(1, at(0));
  expect(line.needsArrival).toBe(true);
  line.giveBack(1);
  expect(line.needsArrival).toBe(false);
});

test("[LIB4] while nothing arrives the bucket is checked at intervals, not continuously", () => {
  const line = new SendBucket({ size: 10_000, perSecond: 1_000_000 }, at(0));
  line.take(10_000, at(0));
  expect(line.hasAt(1, at(60_000))).toBe(at(60_100));
});
