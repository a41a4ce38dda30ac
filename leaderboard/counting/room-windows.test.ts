import { expect, test } from "vitest";

import type { UnixMillis } from "../../shared/ids.ts";
import { ALL_TIME, windowAt } from "../boards/windows.ts";
import { RoomTotals } from "./room-windows.ts";

const HOUR = windowAt("hour", Date.UTC(2026, 6, 1, 12) as UnixMillis);
const DAY = windowAt("day", Date.UTC(2026, 6, 1, 12) as UnixMillis);

test("[TOT1] totals that are asked for during an update are sent after it, and count as unsent until then", () => {
  const totals = new RoomTotals();
  totals.add(HOUR);
  expect(totals.send()).toEqual([HOUR]);
  totals.add(DAY);
  expect([totals.send(), totals.isSending, totals.areSent]).toEqual([[], true, false]);
  expect(totals.receiveSent()).toEqual([DAY]);
  expect([totals.isSending, totals.areSent]).toEqual([true, false]);
  expect(totals.receiveSent()).toEqual([]);
  expect([totals.isSending, totals.areSent]).toEqual([false, true]);
});

test("[TOT2] a window whose points rise during an update is sent again with the next one", () => {
  const totals = new RoomTotals();
  totals.add(HOUR);
  totals.send();
  totals.add(HOUR);
  totals.add(ALL_TIME);
  expect([totals.receiveSent(), totals.areSent]).toEqual([[], false]);
  expect(totals.send()).toEqual([HOUR, ALL_TIME]);
});
