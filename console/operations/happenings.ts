/** What happened to rooms and servers, as rows that a person reads: folded from what each answer brings, newest first. */

import type { EventsSince, OperationsEvent, Takeover, Tone } from "./answers.ts";
import { counted, shortName } from "./format.ts";
import { leftOut } from "./left-out.ts";

/** routine: what happens all day long, such as rooms that open and close. */
export type Topic = "mode" | "move" | "takeover" | "load" | "routine";
export type Happening = {
  readonly seq: number;
  readonly at: string;
  readonly topic: Topic;
  readonly tone: Tone;
  readonly what: string;
  readonly why: string;
  readonly by: string;
};
/** `takeovers`: each is told by one of the rows, with those of other tenants at the same time. */
export type Happenings = { readonly rows: readonly Happening[]; readonly takeovers: readonly Takeover[]; readonly last: number };

export const NOTHING_YET: Happenings = { rows: [], takeovers: [], last: 0 };
const [ROWS_MAX, TAKEOVERS_MAX] = [300, 500];
/** Rooms of one server that come to another within this of the first are one takeover. */
const TAKEOVER_MS_MAX = 60_000;
const NAMES_MAX = 3;

/** An answer that ends before what is known: the events were begun anew, and so are the rows. */
export function fold(known: Happenings, answer: EventsSince): Happenings {
  const before = answer.last < known.last ? NOTHING_YET : known;
  const takeovers = withNewest(before.takeovers, answer.takeovers ?? []);
  const told = before.rows.filter(({ topic }) => topic !== "takeover"); // A takeover's row is made anew: its count grows.
  const news = answer.events.filter(({ seq }) => seq > before.last).map(happeningOf);
  const rows = [...told, ...news, ...together(takeovers).map(toldTakeover)].sort((a, b) => b.seq - a.seq);
  return { rows: rows.slice(0, ROWS_MAX), takeovers, last: answer.last };
}

/** Each as it was told last. */
function withNewest(known: readonly Takeover[], grown: readonly Takeover[]): readonly Takeover[] {
  const bySeq = new Map([...known, ...grown].map((takeover) => [takeover.seq, takeover]));
  return [...bySeq.values()].slice(-TAKEOVERS_MAX);
}

/** A server that is lost had rooms of many tenants: they are one row for each server that takes them. */
function together(takeovers: readonly Takeover[]): Takeover[] {
  const begun: Takeover[] = [];
  for (const next of takeovers.toSorted((a, b) => a.seq - b.seq)) {
    const place = begun.findLastIndex((one) => one.from === next.from && one.by === next.by);
    const one = begun[place];
    if (one === undefined || Date.parse(next.at) - Date.parse(one.at) > TAKEOVER_MS_MAX) begun.push(next);
    else begun[place] = { ...one, count: one.count + next.count, rooms: [...one.rooms, ...next.rooms].slice(0, NAMES_MAX) };
  }
  return begun;
}

function toldTakeover({ seq, at, by, from, count, rooms }: Takeover): Happening {
  const more = count > rooms.length ? ` and ${counted(count - rooms.length, "more", "more")}` : "";
  const what = `${shortName(by)} took over ${counted(count, "room")} from ${shortName(from)}`;
  return { seq, at, by, topic: "takeover", tone: "warning", what, why: `${rooms.join(", ")}${more}` };
}

const NONE = "Nothing of the kind.";

export const SHOWN = {
  notable: {
    label: "Notable",
    shows: ({ topic }: Happening) => topic !== "routine",
    whenEmpty: "Nothing to speak of. Rooms that open and close are under All.",
  },
  mode: { label: "Modes", shows: ({ topic }: Happening) => topic === "mode", whenEmpty: NONE },
  move: { label: "Moves", shows: ({ topic }: Happening) => topic === "move" || topic === "takeover", whenEmpty: NONE },
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

type Told = Pick<Happening, "topic" | "tone" | "what" | "why">;

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
