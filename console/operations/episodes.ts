/**
 * Combines events into episodes with a beginning, an end and one cause: "trial1 was under pressure, worst level 4" from
 * 16:37:09 to 16:37:40 instead of eight changes of a level. An episode without an end is still going on. All events of an
 * episode are needed: the rows are built again from the known events after each answer.
 */

import type { HealthTone, ListedEvent } from "./answers.ts";
import { bytes, counted, droppedAt, duration, shortName } from "./format.ts";

/** `at`, `until`: dates. `until` is undefined until the episode ends. */
type Episode = {
  readonly key: string;
  readonly at: string;
  readonly until: string | undefined;
  readonly tone: HealthTone;
  readonly what: string;
  readonly why: string;
  readonly by: string;
};

const EPISODE_KINDS: ReadonlySet<string> = new Set([
  "shed_level",
  "room_budget",
  "nats_lost",
  "engine_restarted",
  "log_storage",
  "log_slow",
]);

export function isOfEpisode({ kind }: ListedEvent): boolean {
  return EPISODE_KINDS.has(kind);
}

/** `events`: those that `isOfEpisode` accepts, in the order of their dates. */
export function episodesOf(events: readonly ListedEvent[]): Episode[] {
  const outages = spansOf(events.filter(({ kind }) => kind === "nats_lost"));
  const storage = events.filter(({ kind }) => kind === "log_storage");
  return [
    ...pressures(events),
    ...engineEpisodes(events, outages),
    ...storageEpisodes(storage),
    ...slowEpisodes(
      events.filter(({ kind }) => kind === "log_slow"),
      { outages, lags: lagsOf(events), fullDisks: storageSpans(storage) },
    ),
  ];
}

const text = (event: ListedEvent, name: string): string => String(event[name] ?? "");
const number = (event: ListedEvent, name: string): number => Number(event[name] ?? 0);

/** The levels of one gateway or room from its first rise until it is back at 0. */
type Pressure = { readonly first: ListedEvent; readonly last: ListedEvent; readonly worst: ListedEvent; readonly lateMs: number };

function pressures(events: readonly ListedEvent[]): Episode[] {
  const open = new Map<string, Pressure>();
  const done: Episode[] = [];
  for (const event of events) {
    if (event.kind !== "shed_level" && event.kind !== "room_budget") continue;
    const subject = event.kind === "shed_level" ? `gateway ${event.by}` : `room ${text(event, "tenant")} ${text(event, "room")}`;
    const before = open.get(subject);
    const rises = number(event, "to") > number(event, "from");
    const pressure: Pressure = {
      first: before?.first ?? event,
      last: event,
      worst: before !== undefined && number(before.worst, "to") >= number(event, "to") ? before.worst : event,
      lateMs: Math.max(before?.lateMs ?? 0, rises ? number(event, "delayMs") : 0),
    };
    open.delete(subject);
    if (number(event, "to") === 0) done.push(pressureEpisode(pressure));
    else open.set(subject, pressure);
  }
  return [...done, ...[...open.values()].map(pressureEpisode)];
}

function pressureEpisode({ first, last, worst, lateMs }: Pressure): Episode {
  const [level, from] = [number(last, "to"), number(last, "from")];
  const highest = Math.max(number(worst, "to"), number(first, "from")); // The beginning may be older than the known events.
  const name = first.kind === "shed_level" ? `Gateway ${shortName(first.by)}` : text(first, "room");
  const direction = level > from ? `rose to level ${level}` : `eased to level ${level}`;
  const ongoing = level === highest ? direction : `${direction}, worst level ${highest}`;
  return {
    key: `${first.kind} ${first.seq}`,
    at: first.at,
    until: level === 0 ? last.at : undefined,
    tone: "warning",
    what: level === 0 ? `${name} was under pressure, worst level ${highest}` : `${name} is under pressure: ${ongoing}`,
    why: first.kind === "shed_level" ? causeOfShedding(worst, highest) : causeOfBudget(first, lateMs),
    by: first.by,
  };
}

function causeOfShedding(worst: ListedEvent, highest: number): string {
  const causes: Readonly<Record<string, string>> = {
    "delay": `its event loop was ${ms(number(worst, "delayMs"))} late`,
    "outbound": `clients had ${bytes(number(worst, "outboundBytes"))} unread`,
    "nats-lag": `NATS answered after ${ms(number(worst, "natsLagMs"))}`,
  };
  const cause = causes[text(worst, "cause")];
  return [...(cause === undefined ? [] : [cause]), `dropped ${droppedAt(highest)}`].join("; ");
}

function causeOfBudget(first: ListedEvent, lateMs: number): string {
  const late = lateMs === 0 ? "was late" : `was up to ${ms(lateMs)} late`;
  return `the event loop of ${shortName(first.by)} ${late}, and this room was among those that used most of its time`;
}

function ms(value: number): string {
  return duration(value / 1_000);
}

/** Overlapping times of several processes. Dates in milliseconds; `until` is undefined while one of them goes on. */
type Span = {
  readonly key: string;
  readonly from: number;
  readonly until: number | undefined;
  readonly by: readonly string[];
  readonly worstMs: number;
};

/** Clocks of machines differ, and processes notice the same failure at different times. */
const SAME_MS = 3_000;

/** Events that are reported at the end, with the time that they took. */
function spansOf(ended: readonly ListedEvent[]): Span[] {
  return merged(
    ended.map((event) => {
      const [until, took] = [Date.parse(event.at), number(event, "downMs")];
      return { key: `${event.kind} ${event.seq}`, from: until - took, until, by: [event.by], worstMs: took };
    }),
  );
}

function merged(spans: readonly Span[]): Span[] {
  const all: Span[] = [];
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

function overlaps(a: Pick<Span, "from" | "until">, b: Pick<Span, "from" | "until">): boolean {
  return a.from <= (b.until ?? Infinity) + SAME_MS && b.from <= (a.until ?? Infinity) + SAME_MS;
}

const EXITS: Readonly<Record<string, string>> = { SIGKILL: "it was killed, or the machine had no memory left" };

/** An engine that died explains the outage of NATS, so both are one row. */
function engineEpisodes(events: readonly ListedEvent[], outages: readonly Span[]): Episode[] {
  const restarts = events.filter(({ kind }) => kind === "engine_restarted");
  const explained = new Set<Span>();
  const engines = restarts.map((event): Episode => {
    const [span] = spansOf([event]) as [Span];
    const [engine, exit] = [text(event, "engine"), text(event, "exit")];
    const outage = engine === "nats-server" ? outages.find((each) => overlaps(each, span)) : undefined;
    if (outage !== undefined) explained.add(outage);
    const meanwhile =
      outage === undefined
        ? ""
        : `; ${counted(outage.by.length, "gateway")} did not reach NATS for up to ${ms(outage.worstMs)}, and edits waited`;
    return {
      ...datesOf(span),
      key: span.key,
      tone: "error",
      what: `${engine} stopped, and was restarted after ${ms(number(event, "downMs"))}`,
      why: `${EXITS[exit] ?? `it ended with ${exit}`}${meanwhile}`,
      by: event.by,
    };
  });
  const others = outages
    .filter((outage) => !explained.has(outage))
    .map((outage): Episode => ({
      ...datesOf(outage),
      key: outage.key,
      tone: "error",
      what: `${counted(outage.by.length, "gateway")} did not reach NATS for up to ${ms(outage.worstMs)}`,
      why: "edits waited; check the NATS servers and the network",
      by: outage.by.join(", "),
    }));
  return [...engines, ...others];
}

function storageSpans(events: readonly ListedEvent[]): Span[] {
  return stateSpans(events, (event) => text(event, "state") === "stores");
}

function storageEpisodes(events: readonly ListedEvent[]): Episode[] {
  const causes = new Map(events.map((event) => [`log_storage ${event.seq}`, text(event, "state")]));
  return storageSpans(events).map((span) => ({
    ...datesOf(span),
    key: span.key,
    tone: "error",
    what: span.until === undefined ? "The log stores no edits" : "The log stored no edits",
    why: `${causes.get(span.key) === "broken" ? "a nats-server could not write: its disk was full or broken" : "JetStream refused records: its storage or disk was full"}; reported by ${counted(span.by.length, "room server")}`,
    by: span.by.join(", "),
  }));
}

/** Times in which gateways measured a slow NATS. */
function lagsOf(events: readonly ListedEvent[]): Span[] {
  return merged(
    events.flatMap((event) => {
      if (event.kind !== "shed_level" || text(event, "cause") !== "nats-lag") return [];
      const [until, worstMs] = [Date.parse(event.at), number(event, "natsLagMs")];
      return [{ key: `lag ${event.seq}`, from: until - worstMs, until, by: [event.by], worstMs }];
    }),
  );
}

/** What may have made the log slow, the most certain cause first. */
type SlowCauses = { readonly fullDisks: readonly Span[]; readonly outages: readonly Span[]; readonly lags: readonly Span[] };

function causeOfSlow(span: Span, { fullDisks, outages, lags }: SlowCauses): string {
  if (fullDisks.some((each) => overlaps(each, span))) return "the log stored no edits at that time";
  if (outages.some((each) => overlaps(each, span))) return "NATS was unreachable at that time";
  const lag = lags.find((each) => overlaps(each, span));
  if (lag === undefined) return "check the disks of the nats-servers and their network";
  return `NATS answered gateways after up to ${ms(lag.worstMs)} at that time; check the CPU load of the nats-servers and their network`;
}

function slowEpisodes(events: readonly ListedEvent[], causes: SlowCauses): Episode[] {
  return stateSpans(events, (event) => text(event, "state") === "normal").map((span) => {
    const servers = `reported by ${counted(span.by.length, "room server")}`;
    return {
      ...datesOf(span),
      key: span.key,
      tone: "warning",
      what:
        span.until === undefined
          ? `The log is slow: an edit waited ${ms(span.worstMs)}`
          : `The log was slow: edits waited up to ${ms(span.worstMs)}`,
      why: `${causeOfSlow(span, causes)}; ${servers}`,
      by: span.by.join(", "),
    };
  });
}

/** Each process reports the beginning and the end. `forMs`: how long it had lasted when it was reported. */
function stateSpans(events: readonly ListedEvent[], isEnd: (event: ListedEvent) => boolean): Span[] {
  const open = new Map<string, Span>();
  const done: Span[] = [];
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
  return merged([...done, ...open.values()]);
}

/** An end is reported some time after it, with the time that it all took. */
function endOf(event: ListedEvent, from: number): number {
  const took = number(event, "forMs");
  return took === 0 ? Date.parse(event.at) : from + took;
}

function datesOf({ from, until }: Span): Pick<Episode, "at" | "until"> {
  return { at: new Date(from).toISOString(), until: until === undefined ? undefined : new Date(until).toISOString() };
}
