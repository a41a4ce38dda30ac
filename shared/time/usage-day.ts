/** Days in UTC, such as 2026-11-28. Their order as text is their order in time. */

declare const usageDay: unique symbol;
export type UsageDay = string & { readonly [usageDay]: true };

const DAY_MS = 86_400_000;

/** `at`: milliseconds since 1970, UTC. */
export function dayOf(at: number): UsageDay {
  // oxlint-disable-next-line no-restricted-globals -- formats a given time and reads no clock
  return new Date(at).toISOString().slice(0, 10) as UsageDay;
}

/** Undefined: not a day of the calendar since 1970. */
export function parseDay(text: string): UsageDay | undefined {
  if (!/^\d{4}-\d{2}-\d{2}$/.test(text)) return undefined;
  const day = text as UsageDay;
  const start = startOf(day);
  return !(start >= 0) || dayOf(start) !== day ? undefined : day;
}

/** The day that comes `days` after this one. */
export function dayAfter(day: UsageDay, days: number): UsageDay {
  return dayOf(startOf(day) + days * DAY_MS);
}

/** Milliseconds since 1970, UTC. */
export function startOf(day: UsageDay): number {
  // oxlint-disable-next-line no-restricted-globals -- reads a given text and no clock
  return Date.parse(`${day}T00:00:00Z`);
}

/** The number of days from the first to the last one, both included. 0 or less if the last comes before the first. */
export function dayCount(first: UsageDay, last: UsageDay): number {
  return Math.round((startOf(last) - startOf(first)) / DAY_MS) + 1;
}

/** The days from the first to the last one, both included. Empty if the last comes before the first. */
export function daysBetween(first: UsageDay, last: UsageDay): UsageDay[] {
  return Array.from({ length: Math.max(0, dayCount(first, last)) }, (_, index) => dayAfter(first, index));
}
