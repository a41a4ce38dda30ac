import { expect, test } from "vitest";

import type { Millis } from "../../shared/ids.ts";
import { decideSaving, SavingAnnouncer, showsTentative } from "./announcements.ts";

const options = { savingAfterMs: 100, refusingAfterMs: 10_000 };

test("[SAV1] a room is saved while every append is fast enough", () => {
  expect(decideSaving("saved", { appendMs: 0, oldestMs: 0 }, options)).toBe("saved");
  expect(decideSaving("saved", { appendMs: 100, oldestMs: 190 }, options)).toBe("saved");
});

test("[SAV2] a room is saving once an append is too slow, and its unacked edits are shown", () => {
  expect(decideSaving("saved", { appendMs: 101, oldestMs: 101 }, options)).toBe("saving");
  expect(decideSaving("saving", { appendMs: 10_000, oldestMs: 10_000 }, options)).toBe("saving");
  expect(showsTentative("saved")).toBe(false);
  expect(showsTentative("saving")).toBe(true);
});

test("[SAV3] a room refuses new edits once an append has taken too long", () => {
  expect(decideSaving("saving", { appendMs: 10_001, oldestMs: 10_001 }, options)).toBe("refusing");
  expect(showsTentative("refusing")).toBe(true);
});

test("[SAV4] consecutive slow appends count as one period, which ends when no edit has waited for long", () => {
  expect(decideSaving("refusing", { appendMs: 0, oldestMs: 9_000 }, options)).toBe("saving");
  expect(decideSaving("saving", { appendMs: 0, oldestMs: 101 }, options)).toBe("saving");
  expect(decideSaving("saving", { appendMs: 0, oldestMs: 100 }, options)).toBe("saved");
});

const at = (ms: number) => ms as Millis;

test("[SAV5] a change of state is announced at once, and again while the log is slow", () => {
  const delta = new SavingAnnouncer({ beaconMs: 1_000, beaconsWhenQuiet: 2 });
  expect([0, 100].map((ms) => delta.due("saved", at(ms)))).toEqual([undefined, undefined]);
  expect([200, 1_199, 1_200, 2_200, 3_200, 4_200].map((ms) => delta.due("saving", at(ms)))).toEqual([
    "changed",
    undefined,
    "again",
    "again",
    "again",
    "again",
  ]);
  expect(delta.due("refusing", at(4_300))).toBe("changed");
});

test("[SAV6] the end of a slow log is announced a few times more, and then no longer", () => {
  const delta = new SavingAnnouncer({ beaconMs: 1_000, beaconsWhenQuiet: 2 });
  delta.due("saving", at(0));
  expect([500, 1_000, 1_500, 2_500, 3_500, 60_000].map((ms) => delta.due("saved", at(ms)))).toEqual([
    "changed",
    undefined,
    "again",
    "again",
    undefined,
    undefined,
  ]);
  expect(delta.isPending).toBe(false);
});
