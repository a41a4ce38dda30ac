/** Episodes of processes that were killed, crashed or cut off: how many of a role, for how long, and whether others ran. */

import type { ListedEvent } from "./answers.ts";
import { datesOf, type Episode, type EpisodeSpan, merged, number, text } from "./episode-spans.ts";
import { counted, shortName, someOf } from "./format.ts";

/** By role: its name, and the effect while no process of it runs. */
const ROLES: Readonly<Record<string, readonly [name: string, effect: string]>> = {
  "gateway": ["gateway", "no client could connect"],
  "room-server": ["room server", "nothing could be edited"],
  "document-service": ["document service", "clients that opened a document waited"],
  "leaderboard": ["leaderboard", "boards were not updated"],
  "placement": ["placement process", "no room was moved or got a replica"],
};

/** Losses of one role at the same time are one row. A loss without a replacement goes on only if no other process of the role ran. */
export function processEpisodes(events: readonly ListedEvent[]): Episode[] {
  const losses = events.filter(({ kind }) => kind === "process_lost");
  const roles = new Set(losses.map((event) => text(event, "role")));
  return [...roles].flatMap((role) =>
    episodesOfRole(
      role,
      losses.filter((event) => text(event, "role") === role),
    ),
  );
}

function episodesOfRole(role: string, events: readonly ListedEvent[]): Episode[] {
  const backs = events.filter((event) => text(event, "state") === "back");
  const lost = events.filter((event) => text(event, "state") === "lost");
  const spans = lost.map((event): EpisodeSpan => {
    const instance = text(event, "instance");
    const from = Date.parse(event.at) - number(event, "forMs");
    const back = backs.find((each) => text(each, "instance") === instance && each.seq > event.seq);
    const until = back !== undefined ? from + number(back, "forMs") : number(event, "running") === 0 ? undefined : from;
    return { key: `process_lost ${event.seq}`, from, until, by: [instance], worstMs: 0 };
  });
  const isReplaced = (instance: string): boolean => backs.some((event) => text(event, "instance") === instance);
  return merged(spans).map((span) =>
    episodeOf(
      role,
      span,
      lost.filter((event) => span.by.includes(text(event, "instance"))),
      span.by.filter(isReplaced),
    ),
  );
}

/** `span.by`: the lost processes. */
function episodeOf(role: string, span: EpisodeSpan, lost: readonly ListedEvent[], replaced: readonly string[]): Episode {
  const [name, effect] = ROLES[role] ?? [role, "nothing did its work"];
  const running = Math.min(...lost.map((event) => number(event, "running")));
  const names = someOf(span.by.map(shortName));
  const isOne = span.by.length === 1;
  const isReplaced = replaced.length === span.by.length;
  const isShown = role === "room-server" || (running === 0 && role !== "leaderboard"); // By its heartbeats, which ended.
  const ran = running === 0 ? `no other ran: ${effect}` : `${counted(running, "other")} ran on`;
  return {
    ...datesOf(span),
    key: span.key,
    tone: running === 0 ? "error" : "warning",
    what: `${isOne ? `${capitalized(name)} ${names}` : counted(span.by.length, name)} stopped without notice`,
    why: `${isOne ? "" : `${names}; `}killed, crashed or cut off from NATS; ${ran}${isReplaced ? "" : "; not replaced"}; check the log and the machine`,
    by: [...new Set(lost.map(({ by }) => by))].join(", "),
    replaced,
    isMissing: !isReplaced && !isShown,
  };
}

function capitalized(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
