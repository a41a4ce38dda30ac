import { expect, test } from "vitest";

import type { Millis } from "../../shared/ids.ts";
import { FrameSendRate } from "./client-rates.ts";

const at = (ms: number): Millis => (1_000_000 + ms) as Millis;
const rateOf = (burst: number, perSecond: number): FrameSendRate => new FrameSendRate({ burst, perSecond }, at(0));
const turns = (rate: FrameSendRate, count: number, ms = 0): number[] => Array.from({ length: count }, () => rate.takeTurn(at(ms)) - at(0));

test("[FPA1] most of the burst goes out at once, the rest below the rate, and unused turns come back", () => {
  const rate = rateOf(10, 10);
  expect(turns(rate, 7)).toEqual([0, 0, 0, 0, 0, 0, 0]);
  rate.markAsked();
  rate.receiveArrival(at(0));
  expect(turns(rate, 2)).toEqual([112, 223]);
  rate.markAsked();
  rate.receiveArrival(at(60_000));
  expect(turns(rate, 8, 120_000).filter((ms) => ms === 120_000)).toHaveLength(7);
});

test("[FPA2] turns are given in the order of the requests, and none comes later than all turns before it require", () => {
  const asked = turns(rateOf(60, 30), 100);
  expect(asked).toEqual(asked.toSorted((a, b) => a - b));
  expect(asked.at(-1)).toBeLessThan(2_200);
});

test("[FPA2] the smallest limit that a server may set is one frame at a time", () => {
  expect(turns(rateOf(1, 1), 3)).toEqual([0, 1_112, 2_223]);
});

test("[FPA3] a returned turn goes to the next request, and saved turns never exceed the burst", () => {
  const rate = rateOf(1, 1);
  expect(turns(rate, 2)).toEqual([0, 1_112]);
  rate.giveBack();
  expect(turns(rate, 1)).toEqual([1_112]);
  for (let given = 0; given < 5; given++) rate.giveBack();
  expect(turns(rate, 2)).toEqual([0, 1_112]);
});

test("[FPA4] turns come at growing intervals while nothing arrives: after a stall of 75 s the server receives little more than one burst", () => {
  const [rate, times] = [rateOf(60, 30), [0]];
  while (times.at(-1)! < 75_000) times.push(...turns(rate, 1, times.at(-1)));
  expect(times.length).toBeLessThan(2 * 60);
});
