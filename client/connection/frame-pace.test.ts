import { expect, test } from "vitest";

import type { Millis } from "../../shared/ids.ts";
import { FramePace } from "./frame-pace.ts";

const at = (ms: number): Millis => (1_000_000 + ms) as Millis;
const paceOf = (burst: number, perSecond: number): FramePace => new FramePace({ burst, perSecond }, at(0));
const turns = (pace: FramePace, count: number, ms = 0): number[] => Array.from({ length: count }, () => pace.takeTurn(at(ms)) - at(0));

test("[FPA1] a part of the burst goes out at once, the rest below the rate, and what was not used comes back", () => {
  const pace = paceOf(10, 10);
  expect(turns(pace, 7)).toEqual([0, 0, 0, 0, 0, 0, 0]);
  pace.asked();
  pace.arrived(at(0));
  expect(turns(pace, 2)).toEqual([112, 223]);
  pace.asked();
  pace.arrived(at(60_000));
  expect(turns(pace, 8, 120_000).filter((ms) => ms === 120_000)).toHaveLength(7);
});

test("[FPA2] turns come in the order in which they are asked for, and none later than all before it take", () => {
  const asked = turns(paceOf(60, 30), 100);
  expect(asked).toEqual(asked.toSorted((a, b) => a - b));
  expect(asked.at(-1)).toBeLessThan(2_200);
});

test("[FPA2] the least that a server may allow is one at a time", () => {
  expect(turns(paceOf(1, 1), 3)).toEqual([0, 1_112, 2_223]);
});

test("[FPA3] a turn given back is another's, and never more than the burst is saved up", () => {
  const pace = paceOf(1, 1);
  expect(turns(pace, 2)).toEqual([0, 1_112]);
  pace.giveBack();
  expect(turns(pace, 1)).toEqual([1_112]);
  for (let given = 0; given < 5; given++) pace.giveBack();
  expect(turns(pace, 2)).toEqual([0, 1_112]);
});

test("[FPA4] while nothing arrives turns come ever later: a stall of 75 s brings the server little more than one burst", () => {
  const [pace, times] = [paceOf(60, 30), [0]];
  while (times.at(-1)! < 75_000) times.push(...turns(pace, 1, times.at(-1)));
  expect(times.length).toBeLessThan(2 * 60);
});
