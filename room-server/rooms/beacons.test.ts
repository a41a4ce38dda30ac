import { expect, test } from "vitest";

import type { Millis } from "../../shared/ids.ts";
import { Beacons } from "./announcements.ts";

const OPTIONS = { beaconMs: 1_000, beaconsWhenQuiet: 2, idleMsMax: 300_000 };
const at = (ms: number) => ms as Millis;

test("[BCN1] after the last commit the room announces its head a few times more, an interval apart, and then stays silent", () => {
  const beacons = new Beacons(OPTIONS, at(0));
  expect([500, 1_000, 1_050, 1_999, 2_000, 3_000, 60_000].map((ms) => beacons.due(at(ms)))).toEqual([
    false,
    true,
    false,
    false,
    true,
    false,
    false,
  ]);
  expect(beacons.isPending).toBe(false);
  beacons.committed(at(70_000));
  expect(beacons.isPending).toBe(true);
  expect(beacons.due(at(71_000))).toBe(true);
});

test("[BCN2] no beacon is needed while records follow each other", () => {
  const beacons = new Beacons(OPTIONS, at(0));
  for (let ms = 0; ms < 5_000; ms += 500) {
    beacons.committed(at(ms));
    expect(beacons.due(at(ms + 499))).toBe(false);
  }
});

test("[BCN3] a room without edits sends its head often enough for its replica, and needs no tick for it", () => {
  const beacons = new Beacons(OPTIONS, at(0));
  const dueSeconds = Array.from({ length: 1_200 }, (_, second) => second).filter((second) => beacons.due(at(second * 1_000)));
  expect(dueSeconds).toEqual([1, 2, 152, 302, 452, 602, 752, 902, 1_052]);
  expect(beacons.isPending).toBe(false);
});
