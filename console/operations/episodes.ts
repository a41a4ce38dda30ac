/**
 * Combines events into episodes with a beginning, an end and one cause: "trial1 was throttled" from 16:37:09 to 16:37:40
 * instead of eight changes of a level. An episode without an end is still going on. All events of an episode are needed:
 * the rows are built again from the known events after each answer.
 */

import type { ListedEvent } from "./answers.ts";
import {
  datesOf,
  type Episode,
  isBefore,
  merged,
  number,
  overlaps,
  type EpisodeSpan,
  spansOf,
  stateSpans,
  text,
  within,
} from "./episode-spans.ts";
import { counted, duration, shortName } from "./format.ts";
import { pressureEpisodes } from "./pressure-episodes.ts";
import { processEpisodes } from "./process-episodes.ts";
import { refusalEpisodes } from "./refusal-episodes.ts";
import { unmergedEpisodes } from "./unmerged-episodes.ts";

const EPISODE_KINDS: ReadonlySet<string> = new Set([
  "shed_level",
  "room_budget",
  "connections_refused",
  "room_unmerged",
  "nats_lost",
  "redis_lost",
  "engine_restarted",
  "jwks_lost",
  "process_lost",
  "log_storage",
  "log_slow",
]);

export function isOfEpisode({ kind }: ListedEvent): boolean {
  return EPISODE_KINDS.has(kind);
}

/** `events`: those that `isOfEpisode` accepts, in the order of their dates. `isAlive`: whether the process still runs. */
export function episodesOf(events: readonly ListedEvent[], isAlive: (by: string) => boolean): Episode[] {
  const outages = spansOf(events.filter(({ kind }) => kind === "nats_lost"));
  const storage = events.filter(({ kind }) => kind === "log_storage");
  const slow = stateSpans(
    events.filter(({ kind }) => kind === "log_slow"),
    (event) => text(event, "state") === "normal",
    isAlive,
  );
  const fullDisks = stateSpans(storage, (event) => text(event, "state") === "stores", isAlive);
  const causes: SlowCauses = { outages, lags: lagsOf(events), fullDisks, late: latenessOf(events) };
  return [
    ...pressureEpisodes(events, outages),
    ...refusalEpisodes(events),
    ...unmergedEpisodes(events),
    ...processEpisodes(events),
    ...engineEpisodes(events, outages, slow),
    ...keyEpisodes(
      events.filter(({ kind }) => kind === "jwks_lost"),
      isAlive,
    ),
    ...storageEpisodes(storage, fullDisks, slow),
    ...slow.filter((span) => !isExplained(span, causes)).map((span) => slowEpisode(span, causes)),
  ];
}

const EXITS: Readonly<Record<string, string>> = { SIGKILL: "it was killed, or the machine had no memory left" };

/** Rooms and edits need no Redis. */
const REDIS_EFFECT = "leaderboards and new bans waited for it, edits did not";

/** An engine that died explains the outage that gateways saw, and a slow log, so they are one row. */
function engineEpisodes(events: readonly ListedEvent[], outages: readonly EpisodeSpan[], slow: readonly EpisodeSpan[]): Episode[] {
  const redisOutages = spansOf(events.filter(({ kind }) => kind === "redis_lost"));
  const restarts = events.filter(({ kind }) => kind === "engine_restarted");
  const explained = new Set<EpisodeSpan>();
  const engines = restarts.map((event): Episode => {
    const [span] = spansOf([event]) as [EpisodeSpan];
    const [engine, exit] = [text(event, "engine"), text(event, "exit")];
    const isRedis = engine === "redis-server";
    const outage = (isRedis ? redisOutages : outages).find((each) => overlaps(each, span));
    if (outage !== undefined) explained.add(outage);
    const unreached = outage === undefined ? [] : [unreachedIn(outage, isRedis ? "Redis" : "NATS")];
    const effects = isRedis ? [REDIS_EFFECT] : outage === undefined ? [] : [waitsIn(outage, slow)];
    return {
      ...datesOf(span),
      key: span.key,
      tone: "error",
      what: `${engine} stopped, and was restarted after ${ms(number(event, "downMs"))}`,
      why: [EXITS[exit] ?? `it ended with ${exit}`, ...unreached, ...effects].join("; "),
      by: event.by,
      ...(isRedis ? {} : { gatewaysWithoutNats: Number.POSITIVE_INFINITY }),
    };
  });
  const others = [
    ...outages.map((outage) => ({
      outage,
      what: unreachedIn(outage, "NATS"),
      tone: "error" as const,
      gatewaysWithoutNats: outage.by.length,
      why: `${waitsIn(outage, slow)}; check the NATS servers and the network`,
    })),
    ...redisOutages.map((outage) => ({
      outage,
      what: unreachedIn(outage, "Redis"),
      tone: "warning" as const,
      why: `${REDIS_EFFECT}; check Redis and its disk, and the network`,
    })),
  ];
  const unexplained = others
    .filter(({ outage }) => !explained.has(outage))
    .map(({ outage, ...shown }): Episode => ({ ...datesOf(outage), key: outage.key, ...shown, by: outage.by.join(", ") }));
  return [...engines, ...unexplained];
}

/** A Redis whose disk is full is reached, but does not answer. */
function unreachedIn({ by, worstMs }: EpisodeSpan, engine: "NATS" | "Redis"): string {
  const missed = engine === "NATS" ? "did not reach NATS" : "got no answers from Redis";
  return `${counted(by.length, "gateway")} ${missed} for up to ${ms(worstMs)}`;
}

/** The wait that the room servers report for the same time. A wait that began much earlier has another cause. */
function waitsIn(cause: EpisodeSpan, slow: readonly EpisodeSpan[]): string {
  const caused = slow.filter((span) => overlaps(span, cause) && !isBefore(span, cause));
  const worstMs = Math.max(0, ...caused.map((span) => span.worstMs));
  return worstMs === 0 ? "edits waited" : `edits waited up to ${ms(worstMs)}`;
}

/** Gateways that get no keys from the JWKS address. Clients with new tokens cannot connect. */
function keyEpisodes(events: readonly ListedEvent[], isAlive: (by: string) => boolean): Episode[] {
  const reasons = new Map(events.map((event) => [`jwks_lost ${event.seq}`, text(event, "reason")]));
  return stateSpans(events, (event) => text(event, "state") === "found", isAlive).map((span) => ({
    ...datesOf(span),
    key: span.key,
    tone: "error",
    what: `${counted(span.by.length, "gateway")} ${span.until === undefined ? "cannot" : "could not"} check new tokens`,
    why: `COROOM_JWKS_URL gives no keys: ${reasons.get(span.key)}`,
    by: span.by.join(", "),
    isForVerdict: true,
  }));
}

const STORAGE: Readonly<Record<string, string>> = {
  broken: "a nats-server could not write: its disk was full or broken",
  full: "JetStream refused records: its storage or disk was full",
};
/** For an episode that goes on. */
const REMEDIES: Readonly<Record<string, string>> = {
  broken: ". Free space on the disk, then restart that nats-server: it stores nothing before",
  full: ". Free space on the disk, or raise max_file_store",
};

function storageEpisodes(events: readonly ListedEvent[], spans: readonly EpisodeSpan[], slow: readonly EpisodeSpan[]): Episode[] {
  const causes = new Map(events.map((event) => [`log_storage ${event.seq}`, text(event, "state")]));
  return spans.map((span) => {
    const cause = causes.get(span.key) ?? "full";
    const isOver = span.until !== undefined;
    const waited = slow.some((each) => isOver && overlaps(each, span)) ? `; ${waitsIn(span, slow)}` : "";
    return {
      ...datesOf(span),
      key: span.key,
      tone: "error",
      what: isOver ? "The log stored no edits" : "The log stores no edits",
      why: `${STORAGE[cause] ?? cause}; reported by ${counted(span.by.length, "room server")}${waited}${isOver ? "" : (REMEDIES[cause] ?? "")}`,
      by: span.by.join(", "),
    };
  });
}

/** Times in which gateways measured a slow NATS. */
function lagsOf(events: readonly ListedEvent[]): EpisodeSpan[] {
  return merged(
    events.flatMap((event) => {
      if (event.kind !== "shed_level" || text(event, "cause") !== "nats-lag") return [];
      const [until, worstMs] = [Date.parse(event.at), number(event, "natsLagMs")];
      return [{ key: `lag ${event.seq}`, from: until - worstMs, until, by: [event.by], worstMs }];
    }),
  );
}

/** A room server reports its delay together with each room that it throttles more. Smaller delays explain no slow log. */
const LATE_MS_MIN = 250;

function latenessOf(events: readonly ListedEvent[]): EpisodeSpan[] {
  return merged(
    events.flatMap((event) => {
      const worstMs = number(event, "delayMs");
      if (event.kind !== "room_budget" || worstMs < LATE_MS_MIN) return [];
      const until = Date.parse(event.at);
      return [{ key: `late ${event.seq}`, from: until - worstMs, until, by: [event.by], worstMs }];
    }),
  );
}

/** What may have made the log slow, the most certain cause first. */
type SlowCauses = {
  readonly fullDisks: readonly EpisodeSpan[];
  readonly outages: readonly EpisodeSpan[];
  readonly late: readonly EpisodeSpan[];
  readonly lags: readonly EpisodeSpan[];
};

/** Whether the row of another episode names the wait. */
function isExplained(span: EpisodeSpan, { fullDisks, outages }: SlowCauses): boolean {
  return [...fullDisks, ...outages].some((each) => within(span, each));
}

function causeOfSlow(span: EpisodeSpan, { fullDisks, outages, late, lags }: SlowCauses): string {
  if (fullDisks.some((each) => overlaps(each, span))) return "the log stored no edits at the beginning";
  if (outages.some((each) => overlaps(each, span))) return "NATS was unreachable at the beginning";
  const server = late.find((each) => overlaps(each, span) && each.by.some((by) => span.by.includes(by)));
  if (server !== undefined)
    return `the event loop of ${shortName(server.by[0]!)} was up to ${ms(server.worstMs)} late at that time; check its CPU load`;
  const lag = lags.find((each) => overlaps(each, span));
  if (lag === undefined) return "check the disks of the nats-servers and their network";
  return `NATS answered gateways after up to ${ms(lag.worstMs)} at that time; check the CPU load of the nats-servers and their network`;
}

function slowEpisode(span: EpisodeSpan, causes: SlowCauses): Episode {
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
}

function ms(value: number): string {
  return duration(value / 1_000);
}
