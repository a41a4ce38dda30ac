import fc from "fast-check";
import { expect, test } from "vitest";

import type { UnixMillis } from "../../shared/ids.ts";
import { parseWindow, parseWindowName, WINDOW_KINDS, windowAt, windowsAt } from "./windows.ts";

const time = fc.integer({ min: 0, max: Date.UTC(2400, 0) }).map((millis) => millis as UnixMillis);
const at = (text: string) => Date.parse(text) as UnixMillis;

test("[WIN1] hour, day, month and year follow the calendar in UTC", () => {
  fc.assert(
    fc.property(time, (now) => {
      const iso = new Date(now).toISOString();
      expect(windowsAt(now).map(({ id }) => id)).toEqual([
        iso.slice(0, 13),
        iso.slice(0, 10),
        windowAt("week", now).id,
        iso.slice(0, 7),
        iso.slice(0, 4),
        "all",
      ]);
      for (const { kind, start, end } of windowsAt(now)) {
        expect(start <= now && now < end, kind).toBe(true);
        if (kind === "month" || kind === "year") expect(new Date(end).toISOString()).toMatch(/-01T00:00:00.000Z$/);
      }
    }),
  );
});

test.each([
  ["2020-12-31T23:59:59Z", "2020-W53"],
  ["2021-01-03T23:59:59.999Z", "2020-W53"],
  ["2021-01-04T00:00:00Z", "2021-W01"],
  ["2024-12-30T00:00:00Z", "2025-W01"],
  ["2026-12-31T12:00:00Z", "2026-W53"],
  ["2027-01-01T12:00:00Z", "2026-W53"],
  ["2016-01-03T12:00:00Z", "2015-W53"],
  ["1970-01-01T00:00:00Z", "1970-W01"],
])("[WIN2] %s lies in ISO week %s", (instant, week) => {
  expect(windowAt("week", at(instant)).id).toBe(week);
});

test("[WIN3] a window ends where the next one starts, and its id leads back to it", () => {
  fc.assert(
    fc.property(time, fc.constantFrom(...WINDOW_KINDS), (now, kind) => {
      const window = windowAt(kind, now);
      expect(parseWindow(window.id)).toEqual(window);
      if (kind !== "all") expect(windowAt(kind, window.end as UnixMillis).start).toBe(window.end);
    }),
  );
});

test("[WIN6] the last window of a kind ends where the current one starts, and all time has none", () => {
  fc.assert(
    fc.property(time, fc.constantFrom("hour", "day", "week", "month", "year"), (now, kind) => {
      const [current, last] = [parseWindowName(kind, now)!, parseWindowName(`last-${kind}`, now)!];
      expect([last.kind, last.end]).toEqual([kind, current.start]);
      expect(parseWindowName(last.id, now)).toEqual(last);
    }),
  );
  expect(parseWindowName("last-week", at("2021-01-04T00:00:00Z"))?.id).toBe("2020-W53");
  for (const name of ["last-all", "last-", "last", "last-2026"]) expect(parseWindowName(name, at("2026-07-01T12:00:00Z"))).toBeUndefined();
});

test("[WIN4] every window begins and ends on an hour, so one hour lies in the same windows", () => {
  fc.assert(
    fc.property(time, fc.integer({ min: 0, max: 3_599_999 }), (now, within) => {
      const hour = windowAt("hour", now).start;
      expect(windowsAt((hour + within) as UnixMillis)).toEqual(windowsAt(hour as UnixMillis));
    }),
  );
});

test.each([
  "",
  "2026-13",
  "2026-00",
  "2026-02-30",
  "2026-W00",
  "2025-W53",
  "2026-W54",
  "2026-1",
  "2026-01-01T24",
  "2026-01-01T1",
  "ALL",
  "all ",
  "20260101",
  "2026-01-01T01:00",
  "-2026",
])("[WIN5] %j names no window", (id) => {
  expect(parseWindow(id)).toBeUndefined();
});
