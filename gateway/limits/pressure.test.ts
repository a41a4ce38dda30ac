import { expect, test } from "vitest";

import type { Millis } from "../../shared/ids.ts";
import { laneRatesOf, SHED_LEVEL_MAX } from "../presence/shed-ladder.ts";
import type { Pressure } from "../ports.ts";
import { LoadShedder } from "./pressure.ts";

const options = { shedDelayMsMin: 100, shedOutboundBytesMin: 1_000, shedNatsLagMsMin: 200, shedPressureMs: 500, shedCalmMs: 2_000 };
const CALM: Pressure = { delayMs: 1, outboundBytes: 0, natsLagMs: 1 };
const EVERY_MS = 500;

/** The shed level after each measurement. */
function levelsUnder(pressures: readonly Pressure[], shed = new LoadShedder(options)): number[] {
  return pressures.map((pressure, index) => {
    shed.receivePressure(pressure, (index * EVERY_MS) as Millis);
    return shed.level;
  });
}

test("[SHED1] any single pressure raises the shed level one step at a time, up to the highest level", () => {
  for (const pressure of [{ delayMs: 100 }, { outboundBytes: 1_000 }, { natsLagMs: 200 }]) {
    const levels = levelsUnder(Array.from({ length: 9 }, () => ({ ...CALM, ...pressure })));
    expect(levels).toEqual([0, 1, 2, 3, 4, 5, 6, 6, 6]);
  }
});

test("[SHED2] the level falls one step at a time, each step after a period of calm", () => {
  const levels = levelsUnder([...Array.from({ length: 3 }, () => ({ ...CALM, delayMs: 500 })), ...Array.from({ length: 12 }, () => CALM)]);
  expect(levels).toEqual([0, 1, 2, 2, 2, 2, 2, 1, 1, 1, 1, 0, 0, 0, 0]);
});

test("[SHED3] the level does not change between pressure and calm", () => {
  const levels = levelsUnder([
    { ...CALM, delayMs: 500 },
    { ...CALM, delayMs: 500 },
    ...Array.from({ length: 20 }, () => ({ ...CALM, delayMs: 60 })),
  ]);
  expect(new Set(levels.slice(1))).toEqual(new Set([1]));
});

test("[SHED4] a change names both levels and its cause", () => {
  const shed = new LoadShedder(options);
  expect(shed.receivePressure({ ...CALM, delayMs: 900 }, 0 as Millis)).toBeUndefined();
  expect(shed.receivePressure({ ...CALM, natsLagMs: 900 }, 500 as Millis)).toEqual({ from: 0, to: 1, cause: "nats-lag" });
  expect(shed.receivePressure({ ...CALM, natsLagMs: 150 }, 1_000 as Millis)).toBeUndefined();
});

test("[SHED9] pressure that returns without a period of calm raises the level as well", () => {
  const levels = levelsUnder(Array.from({ length: 8 }, (_, index) => ({ ...CALM, delayMs: index % 2 === 0 ? 110 : 90 })));
  expect(levels).toEqual([0, 0, 1, 1, 2, 2, 3, 3]);
});

test("[SHED8] pressure shorter than its minimum time never raises the level, however often it returns", () => {
  const levels = levelsUnder(Array.from({ length: 20 }, (_, index) => (index % 2 === 0 ? { ...CALM, delayMs: 500 } : CALM)));
  expect(new Set(levels)).toEqual(new Set([0]));
});

test("[SHED5] no level sends more than the level below it, and spectators never receive more than editors", () => {
  const depths = ["without-viewports", "all"];
  for (let level = 0; level <= SHED_LEVEL_MAX; level++) {
    const { editors, spectators } = laneRatesOf(level);
    expect(depths.indexOf(spectators.depth)).toBeLessThanOrEqual(depths.indexOf(editors.depth));
    expect(spectators.everyMs).toBeGreaterThanOrEqual(editors.everyMs);
    if (level === 0) continue;
    for (const name of ["editors", "spectators"] as const) {
      const before = laneRatesOf(level - 1)[name];
      expect(depths.indexOf(laneRatesOf(level)[name].depth)).toBeLessThanOrEqual(depths.indexOf(before.depth));
      expect(laneRatesOf(level)[name].everyMs).toBeGreaterThanOrEqual(before.everyMs);
    }
  }
});
