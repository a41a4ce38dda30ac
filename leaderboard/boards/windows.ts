/**
 * The windows of boards, in UTC: hour, day, ISO week, month, year, and all time. A window's id contains its kind and
 * its place (`2026-W07`), so keys and addresses need only the id. The calendar counts days from 1970-01-01, after
 * Hinnant's "chrono-compatible date algorithms".
 */

import type { UnixMillis } from "../../shared/ids.ts";

export const WINDOW_KINDS = ["hour", "day", "week", "month", "year", "all"] as const;
export type WindowKind = (typeof WINDOW_KINDS)[number];

/** `end`: the first instant after the window; Infinity: it never closes. */
export type Window = { readonly kind: WindowKind; readonly id: string; readonly start: number; readonly end: number };

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

/** Milliseconds after its start for which a window stays in Redis. Later reads use the archive. */
export const KEPT_MS: Readonly<Record<WindowKind, number>> = {
  hour: 2 * HOUR_MS,
  day: 2 * DAY_MS,
  week: 14 * DAY_MS,
  month: 62 * DAY_MS,
  year: 400 * DAY_MS,
  all: Number.POSITIVE_INFINITY,
};

export const ALL_TIME: Window = { kind: "all", id: "all", start: 0, end: Number.POSITIVE_INFINITY };

/** The windows of these kinds that contain an instant, in the order of the kinds. All begin and end on an hour. */
export function windowsAt(time: UnixMillis, kinds: readonly WindowKind[] = WINDOW_KINDS): Window[] {
  return kinds.map((kind) => windowAt(kind, time));
}

export function windowAt(kind: WindowKind, time: UnixMillis): Window {
  const day = Math.floor(time / DAY_MS);
  const { year, month } = dateOf(day);
  switch (kind) {
    case "hour":
      return hourWindow(Math.floor(time / HOUR_MS));
    case "day":
      return dayWindow(day);
    case "week":
      return weekWindow(day - weekdayOf(day));
    case "month":
      return monthWindow(year, month);
    case "year":
      return yearWindow(year);
    case "all":
      return ALL_TIME;
  }
}

const PATTERNS: readonly [RegExp, (parts: number[]) => Window][] = [
  [/^all$/, () => ALL_TIME],
  [/^(\d{4})$/, ([year]) => yearWindow(year!)],
  [/^(\d{4})-(\d{2})$/, ([year, month]) => monthWindow(year!, month!)],
  [/^(\d{4})-W(\d{2})$/, ([year, week]) => weekWindow(firstMondayOf(year!) + (week! - 1) * 7)],
  [/^(\d{4})-(\d{2})-(\d{2})$/, ([year, month, day]) => dayWindow(dayOf(year!, month!, day!))],
  [/^(\d{4})-(\d{2})-(\d{2})T(\d{2})$/, ([year, month, day, hour]) => hourWindow(dayOf(year!, month!, day!) * 24 + hour!)],
];

/** The window with this id, the current window of this kind, or the window before it (`last-week`). */
export function parseWindowName(name: string, now: UnixMillis): Window | undefined {
  const kind = WINDOW_KINDS.find((known) => known === name || (known !== "all" && `last-${known}` === name));
  if (kind === undefined) return parseWindow(name);
  const current = windowAt(kind, now);
  return kind === name ? current : windowAt(kind, (current.start - 1) as UnixMillis);
}

/** Undefined: the id names no window, for example `2026-W54`, `2026-02-30` or `2026-1`. */
export function parseWindow(id: string): Window | undefined {
  for (const [pattern, build] of PATTERNS) {
    const parts = pattern.exec(id)?.slice(1).map(Number);
    if (parts === undefined) continue;
    const window = build(parts);
    return window.id === id ? window : undefined; // A day past the end of a month rolls over into another window's id.
  }
  return undefined;
}

function hourWindow(hour: number): Window {
  const id = `${isoDay(Math.floor(hour / 24))}T${digits(((hour % 24) + 24) % 24, 2)}`;
  return { kind: "hour", id, start: hour * HOUR_MS, end: (hour + 1) * HOUR_MS };
}

function dayWindow(day: number): Window {
  return { kind: "day", id: isoDay(day), start: day * DAY_MS, end: (day + 1) * DAY_MS };
}

/** A week belongs to the year of its Thursday. */
function weekWindow(monday: number): Window {
  const { year } = dateOf(monday + 3);
  const week = (monday - firstMondayOf(year)) / 7 + 1;
  return { kind: "week", id: `${digits(year, 4)}-W${digits(week, 2)}`, start: monday * DAY_MS, end: (monday + 7) * DAY_MS };
}

function monthWindow(year: number, month: number): Window {
  const [first, next] = [dayOf(year, month, 1), month < 12 ? dayOf(year, month + 1, 1) : dayOf(year + 1, 1, 1)];
  const date = dateOf(first);
  return { kind: "month", id: `${digits(date.year, 4)}-${digits(date.month, 2)}`, start: first * DAY_MS, end: next * DAY_MS };
}

function yearWindow(year: number): Window {
  return { kind: "year", id: digits(year, 4), start: dayOf(year, 1, 1) * DAY_MS, end: dayOf(year + 1, 1, 1) * DAY_MS };
}

/** The Monday of a year's week 1, which is the week with its January 4. */
function firstMondayOf(year: number): number {
  const fourth = dayOf(year, 1, 4);
  return fourth - weekdayOf(fourth);
}

/** 0 for Monday. 1970-01-01 was a Thursday. */
function weekdayOf(day: number): number {
  return (((day + 3) % 7) + 7) % 7;
}

/** Days since 1970-01-01. The year is assumed to begin in March, so that the leap day is its last day. */
function dayOf(year: number, month: number, day: number): number {
  const marchYear = month <= 2 ? year - 1 : year;
  const era = Math.floor(marchYear / 400);
  const yearOfEra = marchYear - era * 400;
  const dayOfYear = Math.floor((153 * (month + (month > 2 ? -3 : 9)) + 2) / 5) + day - 1;
  return era * 146_097 + yearOfEra * 365 + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100) + dayOfYear - 719_468;
}

function dateOf(days: number): { year: number; month: number; day: number } {
  const shifted = days + 719_468;
  const era = Math.floor(shifted / 146_097);
  const dayOfEra = shifted - era * 146_097;
  const yearOfEra = Math.floor(
    (dayOfEra - Math.floor(dayOfEra / 1_460) + Math.floor(dayOfEra / 36_524) - Math.floor(dayOfEra / 146_096)) / 365,
  );
  const dayOfYear = dayOfEra - (365 * yearOfEra + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100));
  const marchMonth = Math.floor((5 * dayOfYear + 2) / 153);
  const month = marchMonth < 10 ? marchMonth + 3 : marchMonth - 9;
  return { year: yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month, day: dayOfYear - Math.floor((153 * marchMonth + 2) / 5) + 1 };
}

function isoDay(days: number): string {
  const { year, month, day } = dateOf(days);
  return `${digits(year, 4)}-${digits(month, 2)}-${digits(day, 2)}`;
}

function digits(number: number, length: number): string {
  return String(number).padStart(length, "0");
}

/** Minimum time for which Redis keeps an archived window, so that a reader that has just begun can finish. */
const KEPT_MS_MIN = 60_000;

/**
 * Returns the date from which Redis may remove an archived window. A window that the archive already had (`there`)
 * expires early: Redis may have been restored from a backup made before the window closed, and readers ask Redis first.
 */
export function keptUntil(outcome: "written" | "there", { start, kind }: Window, wallNow: UnixMillis): UnixMillis {
  return Math.max(outcome === "there" ? 0 : start + KEPT_MS[kind], wallNow + KEPT_MS_MIN) as UnixMillis;
}
