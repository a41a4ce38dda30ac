import { expect, test } from "vitest";

import type { UnixMillis } from "../../shared/ids.ts";
import { ALL_TIME, type Window, windowAt } from "../boards/windows.ts";
import { RoomTotals } from "./room-windows.ts";

const HOUR = windowAt("hour", Date.UTC(2026, 6, 1, 12) as UnixMillis);
const DAY = windowAt("day", Date.UTC(2026, 6, 1, 12) as UnixMillis);

const all = (...windows: readonly Window[]) => windows.map((window) => ({ window, members: "all" }));

test("[TOT1] totals that are asked for during an update are sent after it, and count as unsent until then", () => {
  const totals = new RoomTotals();
  totals.add(HOUR, "all");
  expect(totals.send()).toEqual(all(HOUR));
  totals.add(DAY, "all");
  expect([totals.send(), totals.isSending, totals.areSent]).toEqual([[], true, false]);
  expect(totals.receiveSent()).toEqual(all(DAY));
  expect([totals.isSending, totals.areSent]).toEqual([true, false]);
  expect(totals.receiveSent()).toEqual([]);
  expect([totals.isSending, totals.areSent]).toEqual([false, true]);
});

test("[TOT2] a window whose points rise during an update is sent again with the next one", () => {
  const totals = new RoomTotals();
  totals.add(HOUR, "all");
  totals.send();
  totals.add(HOUR, "all");
  totals.add(ALL_TIME, "all");
  expect([totals.receiveSent(), totals.areSent]).toEqual([[], false]);
  expect(totals.send()).toEqual(all(HOUR, ALL_TIME));
});

test("[TOT3] only members whose points rose are sent, and all members of a window if some are not known or too many rose", () => {
  const totals = new RoomTotals();
  totals.add(HOUR, ["ann", "bob"]);
  totals.add(HOUR, ["bob", "cy"]);
  totals.add(DAY, ["ann"]);
  totals.add(DAY, "all");
  totals.add(DAY, ["bob"]);
  totals.add(
    ALL_TIME,
    Array.from({ length: 10_001 }, (_, index) => `user-${index}`),
  );
  expect(totals.send()).toEqual([{ window: HOUR, members: new Set(["ann", "bob", "cy"]) }, ...all(DAY, ALL_TIME)]);
});
