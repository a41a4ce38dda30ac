/** Episodes of refused connections: how many, why, and whose. Each close code has a cause that an operator can check. */

import type { ListedEvent } from "./answers.ts";
import { datesOf, type Episode, number, text } from "./episode-spans.ts";
import { counted, shortName } from "./format.ts";

/** By the name of the close code (`shared/wire/close-codes.ts`). */
const CAUSES: Readonly<Record<string, string>> = {
  tokenExpired: "their tokens have expired: check how long the application's tokens live, and its clock",
  unauthorized: "their tokens are not accepted: check that the application signs with the key that the gateways have",
  banned: "their users or addresses are banned",
  rateLimited: "they return too fast after faults",
  overloaded: "they come faster than the gateway admits them, or it cannot check tokens: read its log",
  tenantFull: "the tenant or the user has as many connections as allowed",
  helloTimeout: "they send no HELLO: check what connects",
  badFrame: "they do not follow the protocol: check what connects",
  frameTooLarge: "they send frames that are too large: check what connects",
  otherProtocol: "they are clients of y-websocket or Hocuspocus: give them the address of the bridge",
  versionUnsupported: "they use a protocol version that the gateway does not support: update them",
};

export function refusalEpisodes(events: readonly ListedEvent[]): Episode[] {
  const open = new Map<string, ListedEvent>();
  const done: Episode[] = [];
  for (const event of events) {
    if (event.kind !== "connections_refused") continue;
    const first = open.get(event.by);
    open.delete(event.by);
    if (text(event, "state") === "normal") done.push(episodeOf(first ?? event, event, true));
    else open.set(event.by, event);
  }
  return [...done, ...[...open.values()].map((event) => episodeOf(event, event, false))];
}

/** `newest` has the numbers of the whole episode. */
function episodeOf(first: ListedEvent, newest: ListedEvent, isPast: boolean): Episode {
  const from = Date.parse(first.at) - number(first, "forMs");
  const close = text(newest, "close");
  const [tenant, address] = [text(newest, "ofTenant"), text(newest, "address")];
  return {
    ...datesOf({ from, until: isPast ? from + number(newest, "forMs") : undefined }),
    key: `${first.kind} ${first.seq}`,
    tone: "warning",
    what: `Gateway ${shortName(first.by)} ${isPast ? `refused ${counted(number(newest, "count"), "connection")}` : "refuses many connections"}`,
    why: [
      CAUSES[close] ?? `close code ${close}`,
      ...(tenant === "" ? [] : [`most are of the tenant ${tenant}`]),
      ...(address === "" ? [] : [`most come from ${address}`]),
    ].join("; "),
    by: first.by,
    isForVerdict: true,
  };
}
