/**
 * Builds the rows of the event list from the answers of the gateway, newest first. An event appears once, even when two
 * answers contain it.
 */

import type { EventsAnswer, ListedEvent, ListedTakeover, HealthTone } from "./answers.ts";
import { counted, shortName, droppedAt } from "./format.ts";
/** `routine`: frequent events, such as rooms that open and close. */
export type EventTopic = "mode" | "move" | "takeover" | "load" | "routine";
export type EventRow = {
  readonly seq: number;
  readonly at: string;
  readonly topic: EventTopic;
  readonly tone: HealthTone;
  readonly what: string;
  readonly why: string;
  readonly by: string;
};
/** `takeovers`: all known takeovers. Rows combine takeovers of several tenants. */
export type EventRows = { readonly rows: readonly EventRow[]; readonly takeovers: readonly ListedTakeover[]; readonly last: number };

export const NO_EVENTS: EventRows = { rows: [], takeovers: [], last: 0 };
const [ROWS_MAX, TAKEOVERS_MAX] = [300, 500];
/** Takeovers between the same two servers within this time form one row. */
const TAKEOVER_MS_MAX = 60_000;
const NAMES_MAX = 3;

/** An answer with a lower `last` means that the event stream was recreated: the rows start again. */
export function addEvents(known: EventRows, answer: EventsAnswer): EventRows {
  const before = answer.last < known.last ? NO_EVENTS : known;
  const takeovers = withNewestCounts(before.takeovers, answer.takeovers ?? []);
  const kept = before.rows.filter(({ topic }) => topic !== "takeover"); // Takeover rows are rebuilt, because their counts grow.
  const added = answer.events.filter(({ seq }) => seq > before.last).map(rowOf);
  const rows = [...kept, ...added, ...mergedTakeovers(takeovers).map(takeoverRow)].sort((a, b) => b.seq - a.seq);
  return { rows: rows.slice(0, ROWS_MAX), takeovers, last: answer.last };
}

/** Keeps the newest answer for each takeover. */
function withNewestCounts(known: readonly ListedTakeover[], grown: readonly ListedTakeover[]): readonly ListedTakeover[] {
  const bySeq = new Map([...known, ...grown].map((takeover) => [takeover.seq, takeover]));
  return [...bySeq.values()].slice(-TAKEOVERS_MAX);
}

/** A lost server had rooms of many tenants. They form one row per server that takes them over. */
function mergedTakeovers(takeovers: readonly ListedTakeover[]): ListedTakeover[] {
  const begun: ListedTakeover[] = [];
  for (const next of takeovers.toSorted((a, b) => a.seq - b.seq)) {
    const place = begun.findLastIndex((one) => one.from === next.from && one.by === next.by);
    const one = begun[place];
    if (one === undefined || Date.parse(next.at) - Date.parse(one.at) > TAKEOVER_MS_MAX) begun.push(next);
    else begun[place] = { ...one, count: one.count + next.count, rooms: [...one.rooms, ...next.rooms].slice(0, NAMES_MAX) };
  }
  return begun;
}

function takeoverRow({ seq, at, by, from, count, rooms }: ListedTakeover): EventRow {
  const more = count > rooms.length ? ` and ${counted(count - rooms.length, "more", "more")}` : "";
  const what = `${shortName(by)} took over ${counted(count, "room")} from ${shortName(from)}`;
  return { seq, at, by, topic: "takeover", tone: "warning", what, why: `${rooms.join(", ")}${more}` };
}

const NONE = "No events of this kind.";

export const EVENT_FILTERS = {
  notable: {
    label: "Notable",
    shows: ({ topic }: EventRow) => topic !== "routine",
    whenEmpty: "No notable events. Select All to see rooms that open and close.",
  },
  mode: { label: "Modes", shows: ({ topic }: EventRow) => topic === "mode", whenEmpty: NONE },
  move: { label: "Moves", shows: ({ topic }: EventRow) => topic === "move" || topic === "takeover", whenEmpty: NONE },
  all: { label: "All", shows: () => true, whenEmpty: NONE },
} as const;
export type EventFilter = keyof typeof EVENT_FILTERS;

const CAUSES: Readonly<Record<string, string>> = {
  "grew": "the room grew",
  "shrank": "the room shrank",
  "new-owner": "set by a new owner",
  "delay": "its event loop is slow",
  "outbound": "clients receive too slowly",
  "nats-lag": "NATS is slow",
  "calm": "the load is normal again",
};
const PLACED: Readonly<Record<string, { readonly topic: EventTopic; readonly words: string }>> = {
  move: { topic: "move", words: "moved to" },
  promote: { topic: "move", words: "taken over by" },
  follow: { topic: "routine", words: "replicated to" },
  unfollow: { topic: "routine", words: "no longer replicated to" },
};
const ENDED: Readonly<Record<string, { readonly topic: EventTopic; readonly tone: HealthTone; readonly words: string }>> = {
  "handed-over": { topic: "move", tone: "calm", words: "handed over" },
  "released": { topic: "routine", tone: "calm", words: "closed: no members left" },
  "fenced": { topic: "move", tone: "warning", words: "lost to another owner" },
  "failed": { topic: "move", tone: "warning", words: "closed after a failure" },
  "deleted": { topic: "routine", tone: "calm", words: "deleted" },
};

function rowOf(event: ListedEvent): EventRow {
  const { seq, at, by } = event;
  return { seq, at, by, ...textsOf(event) };
}

type RowTexts = Pick<EventRow, "topic" | "tone" | "what" | "why">;

function textsOf(event: ListedEvent): RowTexts {
  const text = (name: string): string => String(event[name] ?? "");
  const number = (name: string): number => Number(event[name] ?? 0);
  const { room = "", by } = event;
  switch (event.kind) {
    case "mode_transition":
      return {
        topic: "mode",
        tone: "calm",
        what: `${room}: ${text("from")} → ${text("to")}`,
        why: `${counted(number("participants"), "participant")}; ${CAUSES[text("cause")] ?? text("cause")}`,
      };
    case "room_claimed":
      return { topic: "routine", tone: "calm", what: `${room} owned by ${shortName(by)}`, why: `epoch ${number("epoch")}` };
    case "room_ended": {
      const { topic, tone, words } = ENDED[text("why")] ?? { topic: "routine", tone: "calm", words: text("why") };
      return {
        topic,
        tone,
        what: `${room} ${words}`,
        why: [text("reason"), `by ${shortName(by)}`].filter((part) => part !== "").join("; "),
      };
    }
    case "room_placed": {
      const { topic, words } = PLACED[text("action")] ?? { topic: "routine", words: text("action") };
      return { topic, tone: "calm", what: `${room} ${words} ${shortName(text("server"))}`, why: text("reason") };
    }
    case "room_budget":
      return {
        topic: "load",
        tone: number("to") > number("from") ? "warning" : "calm",
        what: number("to") === 0 ? `${room} is no longer throttled` : `${room} is throttled: level ${number("to")}`,
        why: `event loop of ${shortName(by)} was ${Math.round(number("delayMs"))} ms late`,
      };
    case "yjs_id_disputed":
      return {
        topic: "load",
        tone: "warning",
        what: `${room}: ${text("user")} writes under a Yjs client id of ${text("introducedBy")}`,
        why: `edits of ${text("introducedBy")} may be ignored; Yjs client id ${number("yjsClient")}`,
      };
    case "log_storage":
      return {
        topic: "load",
        tone: text("state") === "stores" ? "calm" : "warning",
        what: text("state") === "stores" ? "The log stores edits again" : "The log stores no edits",
        why: `reported by ${shortName(by)}: ${text("state")}`,
      };
    case "shed_level":
      return {
        topic: "load",
        tone: number("to") > number("from") ? "warning" : "calm",
        what:
          number("to") === 0
            ? `Gateway ${shortName(by)} sends all updates again`
            : `Gateway ${shortName(by)} drops ${droppedAt(number("to"))}`,
        why: CAUSES[text("cause")] ?? text("cause"),
      };
    case "placement_leads":
      return {
        topic: "load",
        tone: "calm",
        what: `${shortName(by)} became placement leader`,
        why: number("generation") === 0 ? "no placement plan yet" : `newest placement plan: ${number("generation")}`,
      };
    case "webhook_given_up":
      return { topic: "load", tone: "warning", what: `Webhook event dropped: ${text("endpoint")}`, why: text("reason") };
    default: // An event kind of a later version.
      return { topic: "load", tone: "calm", what: `${event.kind} ${room}`.trim(), why: "" };
  }
}
