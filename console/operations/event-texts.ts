/** Sentences about single events: what happened, and why. Events with a beginning and an end are in `episodes.ts`. */

import type { HealthTone, ListedEvent } from "./answers.ts";
import { counted, shortName } from "./format.ts";

/** `routine`: frequent events, such as rooms that open and close. */
export type EventTopic = "mode" | "move" | "takeover" | "problem" | "change" | "routine";
type EventTexts = { readonly topic: EventTopic; readonly tone: HealthTone; readonly what: string; readonly why: string };

const CAUSES: Readonly<Record<string, string>> = {
  "grew": "the room grew",
  "shrank": "the room shrank",
  "new-owner": "set by a new owner",
};
const PLACED: Readonly<Record<string, { readonly topic: EventTopic; readonly words: string }>> = {
  move: { topic: "move", words: "moved to" },
  promote: { topic: "routine", words: "taken over by" }, // The new owner's claim is counted in the row of the takeover.
  follow: { topic: "routine", words: "replicated to" },
  unfollow: { topic: "routine", words: "no longer replicated to" },
};
const ENDED: Readonly<Record<string, { readonly topic: EventTopic; readonly tone: HealthTone; readonly words: string }>> = {
  "handed-over": { topic: "move", tone: "calm", words: "handed over" },
  "released": { topic: "routine", tone: "calm", words: "closed: no members left" },
  "fenced": { topic: "routine", tone: "calm", words: "lost to another owner" }, // The row of the takeover names both servers.
  "failed": { topic: "move", tone: "warning", words: "closed after a failure" },
  "deleted": { topic: "routine", tone: "calm", words: "deleted" },
};

export function textsOf(event: ListedEvent): EventTexts {
  const text = (name: string): string => String(event[name] ?? "");
  const number = (name: string): number => Number(event[name] ?? 0);
  const { room = "", by } = event;
  switch (event.kind) {
    case "mode_transition":
      return {
        topic: "mode",
        tone: "calm",
        what: `${room}: ${text("from")} → ${text("to")}`,
        why: `${counted(number("participants"), "participant")}${
          number("peak") > number("participants") ? `, at most ${number("peak")} before` : ""
        }; ${CAUSES[text("cause")] ?? text("cause")}`,
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
    case "yjs_id_disputed":
      return {
        topic: "problem",
        tone: "warning",
        what: `${room}: ${text("user")} writes under a Yjs client id of ${text("introducedBy")}`,
        why: `edits of ${text("introducedBy")} may be ignored; Yjs client id ${number("yjsClient")}`,
      };
    case "edits_left_out":
      return {
        topic: "problem",
        tone: "warning",
        what: `${room} of ${text("tenant")}: ${counted(number("count"), "edit")} left out of the document`,
        why: `no Yjs updates, or over a limit; written by ${namesIn(event, "users")}; the history keeps them`,
      };
    case "room_storage":
    case "tenant_storage": {
      const isReached = text("state") === "reached";
      const whose = event.kind === "room_storage" ? room : `The tenant ${text("tenant")}`;
      return {
        topic: isReached ? "problem" : "change",
        tone: isReached ? "warning" : "calm",
        what: `${whose} ${isReached ? "can only be read: its storage is used up" : "can be written again"}`,
        why: `${number("bytes")} bytes of ${number("max")} are stored`,
      };
    }
    case "placement_leads":
      return {
        topic: "change",
        tone: "calm",
        what: `${shortName(by)} became placement leader`,
        why: number("generation") === 0 ? "no placement plan yet" : `newest placement plan: ${number("generation")}`,
      };
    case "webhook_given_up":
      return { topic: "problem", tone: "warning", what: `Webhook event dropped: ${text("endpoint")}`, why: text("reason") };
    default: // An event kind of a later version.
      return { topic: "change", tone: "calm", what: `${event.kind} ${room}`.trim(), why: "" };
  }
}

function namesIn(event: ListedEvent, name: string): string {
  const names = event[name];
  return Array.isArray(names) && names.length > 0 ? names.map(String).join(", ") : "an unknown user";
}
