import { expect, test } from "vitest";

import type { Millis } from "../../shared/ids.ts";
import { laneRatesOf, SHED_LEVEL_MAX } from "../presence/shed-ladder.ts";
import type { Pressure } from "../ports.ts";
import { LoadShedder } from "./pressure.ts";

const options = { shedDelayMsMin: 100, shedOutboundBytesMin: 1_000, shedNatsLagMsMin: 200, shedPressureMs: 500, shedCalmMs: 2_000 };
const CALM: Pressure = { delayMs: 1, outboundBytes: 0, natsLagMs: 1 };
const EVERY_MS = 500;

/** The level after each telling. */
function levelsUnder(pressures: readonly Pressure[], shed = new LoadShedder(options)): number[] {
  return pressures.map((pressure, index) => {
    shed.receivePressure(pressure, (index * EVERY_MS) as Millis);
    return shed.level;
  });
}

test("[SHED1] any one pressure leads down the ladder, a step at a time, to its end and no further", () => {
  for (const pressure of [{ delayMs: 100 }, { outboundBytes: 1_000 }, { natsLagMs: 200 }]) {
    const levels = levelsUnder(Array.from({ length: 9 }, () => ({ ...CALM, ...pressure })));
    expect(levels).toEqual([0, 1, 2, 3, 4, 5, 6, 6, 6]);
  }
});

test("[SHED2] it goes up again a step at a time, each after a time of calm", () => {
  const levels = levelsUnder([...Array.from({ length: 3 }, () => ({ ...CALM, delayMs: 500 })), ...Array.from({ length: 12 }, () => CALM)]);
  expect(levels).toEqual([0, 1, 2, 2, 2, 2, 2, 1, 1, 1, 1, 0, 0, 0, 0]);
});

test("[SHED3] between pressure and calm it stays where it is", () => {
  const levels = levelsUnder([
    { ...CALM, delayMs: 500 },
    { ...CALM, delayMs: 500 },
    ...Array.from({ length: 20 }, () => ({ ...CALM, delayMs: 60 })),
  ]);
  expect(new Set(levels.slice(1))).toEqual(new Set([1]));
});

test("[SHED4] a change says where it led and why", () => {
  const shed = new LoadShedder(options);
  expect(shed.receivePressure({ ...CALM, delayMs: 900 }, 0 as Millis)).toBeUndefined();
  expect(shed.receivePressure({ ...CALM, natsLagMs: 900 }, 500 as Millis)).toEqual({ from: 0, to: 1, cause: "nats-lag" });
  expect(shed.receivePressure({ ...CALM, natsLagMs: 150 }, 1_000 as Millis)).toBeUndefined();
});

test("[SHED9] pressure that comes and goes without calm between leads down as well", () => {
  const levels = levelsUnder(Array.from({ length: 8 }, (_, index) => ({ ...CALM, delayMs: index % 2 === 0 ? 110 : 90 })));
  expect(levels).toEqual([0, 0, 1, 1, 2, 2, 3, 3]);
});

test("[SHED8] pressure that is over sooner than it counts leaves nothing out, however often it comes", () => {
  const levels = levelsUnder(Array.from({ length: 20 }, (_, index) => (index % 2 === 0 ? { ...CALM, delayMs: 500 } : CALM)));
  expect(new Set(levels)).toEqual(new Set([0]));
});

test("[SHED5] each level tells no more than the one before, spectators never more than editors, and all who comes and goes", () => {
  const depths = ["members-only", "without-viewports", "all"];
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
