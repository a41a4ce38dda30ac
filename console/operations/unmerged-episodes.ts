/** Episodes of rooms whose edits a document service cannot merge, for example because a writer sends hostile edits. */

import type { ListedEvent } from "./answers.ts";
import { type Episode, text } from "./episode-spans.ts";

/** By the room, because another document service may continue after the first one. */
export function unmergedEpisodes(events: readonly ListedEvent[]): Episode[] {
  const open = new Map<string, ListedEvent>();
  const done: Episode[] = [];
  for (const event of events) {
    if (event.kind !== "room_unmerged") continue;
    const room = `${text(event, "tenant")} ${text(event, "room")}`;
    const first = open.get(room);
    if (text(event, "state") === "stalled") open.set(room, { ...event, seq: first?.seq ?? event.seq, at: first?.at ?? event.at });
    else if (first !== undefined) {
      open.delete(room);
      done.push(episodeOf(first, event.at));
    }
  }
  return [...done, ...[...open.values()].map((event) => episodeOf(event, undefined))];
}

function episodeOf(event: ListedEvent, until: string | undefined): Episode {
  const isPast = until !== undefined;
  const users = Array.isArray(event["users"]) ? (event["users"] as readonly unknown[]).map(String) : [];
  const writers = users.length === 0 ? "" : `; the edits are of ${users.join(", ")}`;
  return {
    key: `${event.kind} ${event.seq}`,
    at: event.at,
    until,
    tone: "warning",
    what: `${text(event, "room")} of ${text(event, "tenant")} ${isPast ? "could not be" : "cannot be"} merged into its document`,
    why: `its new edits take too much time or memory${writers}; check what they send. Other rooms are not affected`,
    by: event.by,
    isForVerdict: true,
  };
}
