import { expect, test } from "vitest";

import type { GatewayId, Millis } from "../../shared/ids.ts";
import { nextMoment, phaseOf, SLOTS_MAX } from "../../shared/presence/send-timing.ts";
import { PresenceTicks } from "./presence-ticks.ts";

const TICK_MS = 50;
const gateway = "gw" as GatewayId;
const at = (ms: number) => ms as Millis;

test("[PTK1] few rooms send their deltas at one moment of the tick, and many are spread over five", () => {
  const ticks = new PresenceTicks({ presenceTickMs: TICK_MS });
  const momentsOf = (rooms: number): number[] => {
    ticks.receiveRoomCount(rooms);
    return [...new Set(Array.from({ length: rooms }, (_, place) => ticks.momentsOf(place).next(at(1_001))))].sort((a, b) => a - b);
  };
  expect(momentsOf(50)).toEqual([1_050]);
  expect(momentsOf(10_000)).toEqual([1_010, 1_020, 1_030, 1_040, 1_050]);
  expect(momentsOf(10_000)).toHaveLength(SLOTS_MAX);
});

test("[PTK2] a timer that is late does not skip a tick", () => {
  const moments = new PresenceTicks({ presenceTickMs: TICK_MS }).momentsOf(0);
  for (const lateMs of [0, 0.3, 7, 48]) expect(moments.after(at(1_000 + lateMs), 1)).toBe(1_050);
  expect(moments.after(at(1_000.2), 4)).toBe(1_200);
});

test("[PTK3] presence from a gateway that follows the timing arrives before the tick, for any clock difference and network delay", () => {
  for (const clockDifferenceMs of [0, 13, 49.5, 7_777])
    for (const wayMs of [0.2, 3, 30]) {
      const ticks = new PresenceTicks({ presenceTickMs: TICK_MS });
      ticks.receiveBatch(gateway, Math.floor(1_234 + clockDifferenceMs), at(1_234 + wayMs));
      const { tickMs, sendAtMs } = ticks.timingOf(gateway);
      const sentAtMs = nextMoment(20_000 + clockDifferenceMs, tickMs, sendAtMs) - clockDifferenceMs;
      const arrivesAtMs = sentAtMs + wayMs;
      const waitsMs = nextMoment(arrivesAtMs, TICK_MS, 0) - arrivesAtMs;
      expect(waitsMs).toBeGreaterThan(3);
      expect(waitsMs).toBeLessThan(9);
    }
});

test("[PTK4] the slot of a room is the same distance from the tick for gateway and room server", () => {
  const ticks = new PresenceTicks({ presenceTickMs: TICK_MS });
  ticks.receiveRoomCount(10_000);
  const { slots } = ticks.timingOf(gateway);
  for (const place of [0, 1, 4, 123_456_789]) expect(ticks.momentsOf(place).next(at(2_000)) - 2_000).toBe(phaseOf(place, TICK_MS, slots));
});
