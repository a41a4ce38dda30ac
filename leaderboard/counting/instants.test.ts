import { expect, test } from "vitest";

import type { UnixMillis } from "../../shared/ids.ts";
import { instantAfter, type Source, timeOf } from "./instants.ts";

const NOON = Date.UTC(2026, 6, 1, 12) as UnixMillis;

/** `count` of one source in one millisecond. */
function instants(count: number, source: Source, time = NOON): number[] {
  const found: number[] = [];
  for (let last = 0; found.length < count; found.push(last)) last = instantAfter(last, time, source);
  return found;
}

test("[INST1] instants rise within a millisecond, and with the clock", () => {
  const found = [...instants(5_000, "edits"), instantAfter(instants(5_000, "edits").at(-1)!, (NOON + 60_000) as UnixMillis, "edits")];
  expect(found).toEqual([...new Set(found)].sort((a, b) => a - b));
  expect(found.map(timeOf).slice(0, 1_000)).toEqual(Array.from({ length: 1_000 }, () => NOON));
  expect(timeOf(found.at(-1)!)).toBe(NOON + 60_000);
});

test("[INST2] instants do not go back with the clock", () => {
  const last = instantAfter(0, NOON, "activities");
  expect(instantAfter(last, (NOON - 1_000) as UnixMillis, "activities")).toBe(last + 2);
});

test("[INST3] no edit has the instant of another activity, at any time", () => {
  const edits = new Set([0, NOON].flatMap((time) => instants(100, "edits", time as UnixMillis)));
  expect([0, NOON].flatMap((time) => instants(100, "activities", time as UnixMillis)).some((instant) => edits.has(instant))).toBe(false);
});

test("[INST4] instants are whole numbers that a double holds, for a hundred years", () => {
  expect(Number.isSafeInteger(instantAfter(0, Date.UTC(2100, 0, 1) as UnixMillis, "activities"))).toBe(true);
});
