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
  const sendBucket = bucket();
  sendBucket.take(6, at(0));
  expect(takeAll(sendBucket, 60_000)).toBe(4);
  expect(takeAll(sendBucket, 120_000)).toBe(0);
});

test("[LIB2] a PONG confirms only the frames that were sent before its PING", () => {
  const sendBucket = bucket();
  sendBucket.take(6, at(0));
  sendBucket.markAsked();
  sendBucket.take(3, at(0));
  sendBucket.receiveArrival(at(60_000));
  expect(takeAll(sendBucket, 120_000)).toBe(7);
});

test("[LIB3] a stall saves nothing: after the PONG the bucket fills at the usual rate", () => {
  const sendBucket = bucket();
  takeAll(sendBucket, 0);
  sendBucket.markAsked();
  sendBucket.receiveArrival(at(60_000));
  expect([takeAll(sendBucket, 60_000), takeAll(sendBucket, 60_500)]).toEqual([0, 5]);
});

test("[LIB4] a PING is due once half of the burst is unconfirmed, and not after frames that were returned", () => {
  const sendBucket = bucket();
  sendBucket.take(4, at(0));
  expect(sendBucket.needsArrival).toBe(false);
  sendBucket.take(1, at(0));
  expect(sendBucket.needsArrival).toBe(true);
  sendBucket.giveBack(1);
  expect(sendBucket.needsArrival).toBe(false);
});

test("[LIB4] while nothing arrives the bucket is checked at intervals, not continuously", () => {
  const sendBucket = new SendBucket({ size: 10_000, perSecond: 1_000_000 }, at(0));
  sendBucket.take(10_000, at(0));
  expect(sendBucket.hasAt(1, at(60_000))).toBe(at(60_100));
});
