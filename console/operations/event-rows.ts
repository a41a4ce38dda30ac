/**
 * Builds the rows of the event list from the answers of the gateway, newest first. An event appears once, even when two
 * answers contain it. Routine events and moves are kept apart: a thousand rooms that open or move displace no failure.
 */

import type { EventsAnswer, FleetAnswer, HealthTone, ListedEvent, ListedTakeover } from "./answers.ts";
import { episodesOf, isOfEpisode } from "./episodes.ts";
import { type EventTopic, textsOf } from "./event-texts.ts";
import { clockTime, counted, shortName } from "./format.ts";

/** `until`: end of an episode; "now" if it has not ended. Absent: the event has no duration. */
export type EventRow = {
  readonly key: string;
  readonly at: string;
  readonly until?: string;
  readonly topic: EventTopic;
  readonly tone: HealthTone;
  readonly what: string;
  readonly why: string;
  readonly by: string;
  /** See `Episode`. */
  readonly isForVerdict?: boolean;
  readonly gatewaysWithoutNats?: number;
  readonly replaced?: readonly string[];
  readonly isMissing?: boolean;
};
/** `takeovers`: all known takeovers. Rows combine takeovers of several tenants. */
export type EventRows = {
  /** As if all processes ran. The page shows those of `withEndedReporters`. */
  readonly rows: readonly EventRow[];
  readonly notable: readonly ListedEvent[];
  readonly routine: readonly EventRow[];
  readonly moves: readonly ListedEvent[];
  readonly takeovers: readonly ListedTakeover[];
  readonly last: number;
};

export const NO_EVENTS: EventRows = { rows: [], notable: [], routine: [], moves: [], takeovers: [], last: 0 };
const [NOTABLE_MAX, ROUTINE_MAX, MOVES_MAX, TAKEOVERS_MAX] = [500, 300, 300, 500];
/** Takeovers between the same two servers within this time form one row. */
export const TAKEOVER_MS_MAX = 60_000;
/** The owner and placement report the same move within this time. */
const MOVE_MS_MAX = 10_000;
const NAMES_MAX = 3;

/** An answer with a lower `last` means that the event stream was recreated: the rows start again. */
export function addEvents(known: EventRows, answer: EventsAnswer): EventRows {
  const before = answer.last < known.last ? NO_EVENTS : known;
  const takeovers = withNewestCounts(before.takeovers, answer.takeovers ?? []);
  const added = answer.events.filter(({ seq }) => seq > before.last);
  if (added.length === 0 && (answer.takeovers ?? []).length === 0) return { ...before, last: answer.last };
  const about = (list: EventList): ListedEvent[] => added.filter((event) => listOf(event) === list);
  const notable = [...before.notable, ...about("notable")].slice(-NOTABLE_MAX);
  const routine = [...before.routine, ...about("routine").map(rowOf)].slice(-ROUTINE_MAX);
  const moves = [...before.moves, ...about("move")].slice(-MOVES_MAX);
  const events = { notable, routine, moves, takeovers, last: answer.last };
  return { ...events, rows: rowsFrom(events, () => true) };
}

type EventList = "notable" | "routine" | "move";

/** A room that closed after a failure is notable, although its topic is a move. */
function listOf(event: ListedEvent): EventList {
  if (isOfEpisode(event)) return "notable";
  const { topic, tone } = textsOf(event);
  return tone === "calm" && (topic === "routine" || topic === "move") ? topic : "notable";
}

function rowsFrom({ notable, routine, moves, takeovers }: Omit<EventRows, "rows">, isAlive: (by: string) => boolean): EventRow[] {
  const episodes = episodesOf(
    notable.filter(isOfEpisode).toSorted((a, b) => Date.parse(a.at) - Date.parse(b.at)),
    isAlive,
  );
  const rows = [
    ...episodes.map((episode): EventRow => ({ ...episode, until: episode.until ?? "now", topic: "problem" })),
    ...notable.filter((event) => !isOfEpisode(event)).map(rowOf),
    ...mergedTakeovers(takeovers).map(takeoverRow),
    ...moveRows(moves),
    ...routine,
  ];
  return rows.reverse().sort((a, b) => Date.parse(b.at) - Date.parse(a.at));
}

/** Whether the process that reported an episode runs. Undefined: the answer does not name all processes. */
export function aliveIn({ reachesNats, gateways, servers, processes }: FleetAnswer): ((by: string) => boolean) | undefined {
  if (processes === undefined || !reachesNats) return undefined;
  const alive = new Set([
    ...gateways.map(({ gateway }) => gateway),
    ...servers.map(({ server }) => server),
    ...processes.map(({ instance }) => instance),
  ]);
  return (by) => by.split(", ").some((each) => alive.has(each));
}

/** An episode of a process that was killed has no end. It is not shown as one that goes on. */
export function withEndedReporters(events: EventRows, fleet: FleetAnswer | undefined): readonly EventRow[] {
  const isAlive = fleet === undefined ? undefined : aliveIn(fleet);
  if (isAlive === undefined) return events.rows;
  return rowsFrom(events, isAlive).map((row): EventRow => {
    if (row.until !== "now" || isAlive(row.by)) return row;
    const { until: _, ...rest } = row;
    return { ...rest, why: `${row.why}; ${shortName(row.by)} reported it and has ended, so its end is not known` };
  });
}

/** Moments to mark in charts, in seconds since the Unix epoch. */
export function marksOf(rows: readonly EventRow[]): readonly { readonly at: number; readonly text: string }[] {
  return rows
    .filter(({ tone }) => tone === "warning" || tone === "error")
    .map(({ at, what }) => ({ at: Date.parse(at) / 1_000, text: what }))
    .reverse();
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
  return { key: `takeover ${seq}`, at, by, topic: "takeover", tone: "warning", what, why: `${rooms.join(", ")}${more}` };
}

/**
 * A server that stops hands over hundreds of rooms. Handovers of one server within a minute are one row. A handover that
 * placement reports as its move is shown as that, with target and reason.
 */
function moveRows(moves: readonly ListedEvent[]): EventRow[] {
  const groups: ListedEvent[][] = [];
  const placed = moves.filter(({ kind }) => kind === "room_placed");
  for (const event of moves) {
    if (isHandover(event) && placed.some((move) => isSameMove(move, event))) continue;
    const group = groups.findLast(([first]) => first!.by === event.by && isHandover(first!));
    const goesOn = group !== undefined && Date.parse(event.at) - Date.parse(group[0]!.at) <= TAKEOVER_MS_MAX;
    if (goesOn && isHandover(event)) group.push(event);
    else groups.push([event]);
  }
  return groups.map((group) => (group.length === 1 ? rowOf(group[0]!) : handoversRow(group, moves)));
}

function isHandover({ kind, why }: ListedEvent): boolean {
  return kind === "room_ended" && why === "handed-over";
}

function isSameMove(move: ListedEvent, { tenant, room, at }: ListedEvent): boolean {
  return move.tenant === tenant && move.room === room && Math.abs(Date.parse(move.at) - Date.parse(at)) <= MOVE_MS_MAX;
}

/** Older moves than the known ones may belong to the oldest row. */
function handoversRow(events: readonly ListedEvent[], moves: readonly ListedEvent[]): EventRow {
  const first = events[0]!;
  const rooms = [...new Map(events.map(({ tenant, room = "" }) => [`${tenant} ${room}`, room])).values()];
  const least = moves.length === MOVES_MAX && first === moves[0] ? "at least " : "";
  const more = rooms.length > NAMES_MAX ? ` and ${counted(rooms.length - NAMES_MAX, "more", "more")}` : "";
  const what = `${shortName(first.by)} handed over ${least}${counted(rooms.length, "room")}`;
  return { ...rowOf(first), what, why: `${rooms.slice(0, NAMES_MAX).join(", ")}${more}` };
}

function rowOf(event: ListedEvent): EventRow {
  const { seq, at, by } = event;
  return { key: `event ${seq}`, at, by, ...textsOf(event) };
}

const NONE = "No events of this kind.";

export const EVENT_FILTERS = {
  notable: {
    label: "Notable",
    shows: ({ topic }: EventRow) => topic !== "routine",
    whenEmpty: "No notable events. Select All to see rooms that open and close.",
  },
  problem: { label: "Problems", shows: ({ topic }: EventRow) => topic === "problem" || topic === "takeover", whenEmpty: "No problems." },
  mode: { label: "Modes", shows: ({ topic }: EventRow) => topic === "mode", whenEmpty: NONE },
  move: { label: "Moves", shows: ({ topic }: EventRow) => topic === "move" || topic === "takeover", whenEmpty: NONE },
  all: { label: "All", shows: () => true, whenEmpty: NONE },
} as const;
export type EventFilter = keyof typeof EVENT_FILTERS;

/** "16:37:09", "16:37:09 to 16:37:40", "since 16:37:09", with the day of the beginning unless it is today, and of another end. */
export function timesOf({ at, until }: Pick<EventRow, "at" | "until">, now: Date): string {
  const from = new Date(at);
  const day = dayUnless(now, from);
  if (until === "now") return `${day}since ${clockTime(from)}`;
  const begin = clockTime(from);
  const to = until === undefined ? from : new Date(until);
  const end = `${dayUnless(from, to)}${clockTime(to)}`;
  return end === begin ? `${day}${begin}` : `${day}${begin} to ${end}`;
}

function dayUnless(known: Date, at: Date): string {
  return at.toDateString() === known.toDateString() ? "" : `${at.toLocaleDateString("en", { month: "short", day: "numeric" })} `;
}

/** `wanted`: text in any case. */
export function isFound({ what, why, by }: EventRow, wanted: string): boolean {
  return `${what} ${why} ${by}`.toLowerCase().includes(wanted.trim().toLowerCase());
}
