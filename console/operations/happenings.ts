/** What happened to rooms and servers, as rows that a person reads: folded from what each answer brings, newest first. */

import type { EventsSince, OperationsEvent, Tone } from "./answers.ts";
import { counted, shortName } from "./format.ts";
import { leftOut } from "./left-out.ts";

/** routine: what happens all day long, such as rooms that open and close. */
export type Topic = "mode" | "move" | "load" | "routine";
export type Happening = {
  readonly seq: number;
  readonly at: string;
  readonly topic: Topic;
  readonly tone: Tone;
  readonly what: string;
  readonly why: string;
  readonly by: string;
  readonly takeover?: Takeover;
};
/** `rooms`: names of the first few. */
export type Takeover = { readonly from: string; readonly count: number; readonly rooms: readonly string[] };
export type Happenings = { readonly rows: readonly Happening[]; readonly last: number };

export const NOTHING_YET: Happenings = { rows: [], last: 0 };
const ROWS_MAX = 300;
/** Rooms of one server that come to another within this of the first are one takeover. */
const TAKEOVER_MS_MAX = 60_000;
const NAMES_MAX = 3;

/** An answer that ends before what is known: the events were begun anew, and so are the rows. */
export function fold(known: Happenings, { events, last }: EventsSince): Happenings {
  const { rows: before, last: newest } = last < known.last ? NOTHING_YET : known;
  const rows = before.toReversed();
  for (const event of events) if (event.seq > newest) add(rows, happeningOf(event));
  return { rows: rows.reverse().slice(0, ROWS_MAX), last };
}

/** A server that is lost had hundreds of rooms: they are one row for each server that takes them. */
function add(rows: Happening[], next: Happening): void {
  const place = next.takeover === undefined ? -1 : rows.findLastIndex((row) => isSameTakeover(row, next));
  const row = rows[place];
  if (row?.takeover === undefined || next.takeover === undefined) return void rows.push(next);
  const { from, count, rooms } = row.takeover;
  const takeover = { from, count: count + next.takeover.count, rooms: [...rooms, ...next.takeover.rooms].slice(0, NAMES_MAX) };
  rows[place] = { ...row, ...toldTakeover(row.by, takeover) };
}

function isSameTakeover(row: Happening, next: Happening): boolean {
  return row.takeover?.from === next.takeover?.from && row.by === next.by && Date.parse(next.at) - Date.parse(row.at) <= TAKEOVER_MS_MAX;
}

const NONE = "Nothing of the kind.";

export const SHOWN = {
  notable: {
    label: "Notable",
    shows: ({ topic }: Happening) => topic !== "routine",
    whenEmpty: "Nothing to speak of. Rooms that open and close are under All.",
  },
  mode: { label: "Modes", shows: ({ topic }: Happening) => topic === "mode", whenEmpty: NONE },
  move: { label: "Moves", shows: ({ topic }: Happening) => topic === "move", whenEmpty: NONE },
  all: { label: "All", shows: () => true, whenEmpty: NONE },
} as const;
export type Shown = keyof typeof SHOWN;

const CAUSES: Readonly<Record<string, string>> = {
  "grew": "it grew",
  "shrank": "it shrank",
  "new-owner": "a new owner found it so",
  "delay": "its event loop is late",
  "outbound": "clients are behind",
  "nats-lag": "NATS is slow",
  "calm": "it is calm again",
};
const PLACED: Readonly<Record<string, { readonly topic: Topic; readonly words: string }>> = {
  move: { topic: "move", words: "moved to" },
  promote: { topic: "move", words: "taken over by" },
  follow: { topic: "routine", words: "copied to" },
  unfollow: { topic: "routine", words: "no longer copied to" },
};
const ENDED: Readonly<Record<string, { readonly topic: Topic; readonly tone: Tone; readonly words: string }>> = {
  "handed-over": { topic: "move", tone: "calm", words: "handed over" },
  "released": { topic: "routine", tone: "calm", words: "closed: nobody is in it" },
  "fenced": { topic: "move", tone: "warning", words: "lost to another owner" },
  "failed": { topic: "move", tone: "warning", words: "given up" },
  "deleted": { topic: "routine", tone: "calm", words: "deleted" },
};

function happeningOf(event: OperationsEvent): Happening {
  const { seq, at, by } = event;
  return { seq, at, by, ...told(event) };
}

type Told = Pick<Happening, "topic" | "tone" | "what" | "why" | "takeover">;

function toldTakeover(by: string, takeover: Takeover): Told {
  const { from, count, rooms } = takeover;
  const more = count > rooms.length ? ` and ${counted(count - rooms.length, "more", "more")}` : "";
  return {
    topic: "move",
    tone: "warning",
    what: `${shortName(by)} took over ${counted(count, "room")} from ${shortName(from)}`,
    why: `${rooms.join(", ")}${more}`,
    takeover,
  };
}

function told(event: OperationsEvent): Told {
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
      if (event["from"] !== undefined) return toldTakeover(by, { from: text("from"), count: 1, rooms: [room] });
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
        what: number("to") === 0 ? `${room} is held back no more` : `${room} is held back: level ${number("to")}`,
        why: `${shortName(by)} was ${Math.round(number("delayMs"))} ms late`,
      };
    case "shed_level":
      return {
        topic: "load",
        tone: number("to") > number("from") ? "warning" : "calm",
        what:
          number("to") === 0
            ? `Gateway ${shortName(by)} leaves out nothing any more`
            : `Gateway ${shortName(by)} leaves out ${leftOut(number("to"))}`,
        why: CAUSES[text("cause")] ?? text("cause"),
      };
    case "placement_leads":
      return { topic: "load", tone: "calm", what: `${shortName(by)} leads placement`, why: `plan ${number("generation")}` };
    case "webhook_given_up":
      return { topic: "load", tone: "warning", what: `Webhook of ${text("endpoint")} given up`, why: text("reason") };
    default: // Of a later version than this page.
      return { topic: "load", tone: "calm", what: `${event.kind} ${room}`.trim(), why: "" };
  }
}
