/**
 * Times of episodes, from events that report a beginning, an end, or an end with its duration. Several processes notice
 * the same failure, and their times are merged.
 */

import type { HealthTone, ListedEvent } from "./answers.ts";

/** `at`, `until`: dates. `until` is undefined until the episode ends. */
export type Episode = {
  readonly key: string;
  readonly at: string;
  readonly until: string | undefined;
  readonly tone: HealthTone;
  readonly what: string;
  readonly why: string;
  readonly by: string;
  /** Whether the verdict of the page names it while it goes on. Other ongoing problems are in the state of the fleet. */
  readonly isForVerdict?: boolean;
  /** Number of gateways that did not reach NATS; infinite if nats-server itself ended. */
  readonly gatewaysWithoutNats?: number;
  /** Names of lost processes whose place others have taken. */
  readonly replaced?: readonly string[];
  /** A lost process has no replacement, and nothing else in the verdict shows it. The verdict names it for some minutes. */
  readonly isMissing?: boolean;
};

export const text = (event: ListedEvent, name: string): string => String(event[name] ?? "");
export const number = (event: ListedEvent, name: string): number => Number(event[name] ?? 0);

/** Overlapping times of several processes. Dates in milliseconds; `until` is undefined while one of them goes on. */
export type EpisodeSpan = {
  readonly key: string;
  readonly from: number;
  readonly until: number | undefined;
  readonly by: readonly string[];
  readonly worstMs: number;
};

/** Clocks of machines differ, and processes notice the same failure at different times. */
const SAME_MS = 3_000;

/** Whether `a` begins clearly before `b`. */
export function isBefore(a: Pick<EpisodeSpan, "from">, b: Pick<EpisodeSpan, "from">): boolean {
  return a.from < b.from - SAME_MS;
}

/** Whether `a` ends when `b` ends or before. It may begin before it, because edits wait that were sent before. */
export function within(a: Pick<EpisodeSpan, "from" | "until">, b: Pick<EpisodeSpan, "from" | "until">): boolean {
  return overlaps(a, b) && (b.until === undefined || (a.until ?? Infinity) <= b.until + SAME_MS);
}

/** Events that are reported at the end, with the time that they took. */
export function spansOf(ended: readonly ListedEvent[]): EpisodeSpan[] {
  return merged(
    ended.map((event) => {
      const [until, took] = [Date.parse(event.at), number(event, "downMs")];
      return { key: `${event.kind} ${event.seq}`, from: until - took, until, by: [event.by], worstMs: took };
    }),
  );
}

export function merged(spans: readonly EpisodeSpan[]): EpisodeSpan[] {
  const all: EpisodeSpan[] = [];
  for (const span of spans.toSorted((a, b) => a.from - b.from)) {
    const last = all.at(-1);
    if (last === undefined || (last.until !== undefined && span.from > last.until + SAME_MS)) all.push(span);
    else
      all[all.length - 1] = {
        ...last,
        until: last.until === undefined || span.until === undefined ? undefined : Math.max(last.until, span.until),
        by: [...new Set([...last.by, ...span.by])],
        worstMs: Math.max(last.worstMs, span.worstMs),
      };
  }
  return all;
}

export function overlaps(a: Pick<EpisodeSpan, "from" | "until">, b: Pick<EpisodeSpan, "from" | "until">): boolean {
  return a.from <= (b.until ?? Infinity) + SAME_MS && b.from <= (a.until ?? Infinity) + SAME_MS;
}

/**
 * Each process reports the beginning and the end. `forMs`: how long it had lasted when it was reported. A process that has
 * ended reports no end: it belongs to the span of others at its beginning, and never makes a span go on.
 */
export function stateSpans(
  events: readonly ListedEvent[],
  isEnd: (event: ListedEvent) => boolean,
  isAlive: (by: string) => boolean,
): EpisodeSpan[] {
  const open = new Map<string, EpisodeSpan>();
  const done: EpisodeSpan[] = [];
  for (const event of events) {
    const [at, before] = [Date.parse(event.at), open.get(event.by)];
    const known = before ?? {
      key: `${event.kind} ${event.seq}`,
      from: at - number(event, "forMs"),
      by: [event.by],
      worstMs: 0,
      until: undefined,
    };
    const span = {
      ...known,
      worstMs: Math.max(known.worstMs, number(event, "worstMs")),
      until: isEnd(event) ? endOf(event, known.from) : undefined,
    };
    open.delete(event.by);
    if (isEnd(event)) done.push(span);
    else open.set(event.by, span);
  }
  const running = [...open.values()].filter(({ by }) => by.some(isAlive));
  const beginnings = [...open.values()].filter((span) => !running.includes(span)).map((span) => ({ ...span, until: span.from }));
  const spans = merged([...done, ...running, ...beginnings]);
  const isKnown = (span: EpisodeSpan): boolean => [...done, ...running].some((each) => overlaps(each, span));
  return spans.map((span) => (isKnown(span) ? span : { ...span, until: undefined }));
}

/** An end is reported some time after it, with the time that it all took. */
function endOf(event: ListedEvent, from: number): number {
  const took = number(event, "forMs");
  return took === 0 ? Date.parse(event.at) : from + took;
}

export function datesOf({ from, until }: Pick<EpisodeSpan, "from" | "until">): Pick<Episode, "at" | "until"> {
  return { at: new Date(from).toISOString(), until: until === undefined ? undefined : new Date(until).toISOString() };
}
