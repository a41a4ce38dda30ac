/** What the operations console asks: how servers and rooms are, and what has happened to them. */

import { type GatewayAccount, LISTED_ROOMS_MAX } from "../../shared/bus/fleet-messages.ts";
import type { OperationsEvent } from "../../shared/bus/operations-events.ts";
import type { Clock } from "../../shared/clock.ts";
import { tenantOf } from "../../shared/ids.ts";
import { cursorText, pageOf, parseCursor } from "../operations/room-page.ts";
import type { Fleet, OpenRooms, RecentEvents } from "../ports.ts";
import { decodeParameter } from "./ask-services.ts";
import { type AuthorizedAnswer, placeOf } from "./authority.ts";
import { errorAnswer, jsonAnswer } from "./http-routes.ts";
import type { HeardServices, Services } from "./nats-services.ts";
import { dateOf, shownEvent, shownListed, shownRoom, shownServer, shownTakeover } from "./operations-shown.ts";

/** `account`: of this gateway, as it knows without asking anybody. `documents`, `leaderboards`: the services heard of lately. */
export type OperationsPorts = {
  readonly fleet: Fleet;
  readonly openRooms: OpenRooms;
  readonly events: RecentEvents;
  readonly account: () => GatewayAccount;
  readonly documents: Pick<Services, "urls">;
  readonly leaderboards: Pick<HeardServices, "urls" | "withoutRedis">;
};
type HeardGateways = { readonly gateways: readonly GatewayAccount[]; readonly reachesNats: boolean };

const ROOMS_DEFAULT = 50;
const SEARCH_LENGTH_MAX = 128;
/** As many as are kept. */
const EVENTS_MAX = 500;
export const NOT_OPEN = errorAnswer(
  404,
  "not-open",
  "nobody has this room open, so no server has it: look whether its name and tenant are right",
);
const NO_NATS = errorAnswer(503, "unavailable", "this gateway does not reach NATS, so it hears of no room: look at the NATS servers");
const BAD_CURSOR = errorAnswer(400, "bad-request", "after: as `next` of the page before says it");

export function showFleet(ports: OperationsPorts, environment: string, clock: Clock): AuthorizedAnswer {
  const { fleet, documents, leaderboards } = ports;
  return async () => {
    const { gateways, reachesNats, leader } = await hearAll(ports);
    return jsonAnswer(200, {
      environment,
      at: dateOf(clock.wallNow()),
      reachesNats,
      servers: fleet.servers().map(shownServer),
      serversLost: fleet.serversLost().map((lost) => ({ ...lost, at: dateOf(lost.at) })),
      gateways,
      placement: leader === undefined ? {} : { leader },
      services: {
        documents: documents.urls().length,
        leaderboards: leaderboards.urls().length,
        leaderboardsWithoutRedis: leaderboards.withoutRedis(),
      },
    });
  };
}

export function listRooms(ports: OperationsPorts): AuthorizedAnswer {
  const { fleet, openRooms } = ports;
  return async ({ query }, authority) => {
    const place = placeOf({ tenant: query.get("tenant") ?? undefined }, authority, "look");
    if ("status" in place) return place;
    const [after, limit] = [query.get("after"), Number(query.get("limit") ?? ROOMS_DEFAULT)];
    const cursor = after === null ? undefined : parseCursor(after);
    if (after !== null && cursor === undefined) return BAD_CURSOR;
    if (!Number.isInteger(limit) || limit < 1 || limit > LISTED_ROOMS_MAX)
      return errorAnswer(400, "bad-request", `limit: 1 to ${LISTED_ROOMS_MAX}`);
    const ofAll = authority === undefined && !query.has("tenant"); // An operator's list is of all tenants.
    const search = (query.get("search") ?? "").slice(0, SEARCH_LENGTH_MAX);
    const answers = await openRooms.list({
      ...(ofAll ? {} : { tenant: place.tenant }),
      search,
      ...(cursor === undefined ? {} : { after: cursor }),
      limit: limit + 1,
    });
    if (answers.length === 0 && !(await hearGateways(ports)).reachesNats) return NO_NATS;
    const { rooms, next, ...page } = pageOf(answers, limit);
    return jsonAnswer(200, {
      rooms: rooms.map(shownListed),
      ...page,
      serversKnown: fleet.servers().length,
      ...(next === undefined ? {} : { next: cursorText(next) }),
    });
  };
}

export function describeRoom({ openRooms }: OperationsPorts): AuthorizedAnswer {
  return async ({ query, parameters }, authority) => {
    const place = placeOf({ tenant: query.get("tenant") ?? undefined, room: decodeParameter(parameters[0] ?? "") }, authority, "look");
    if ("status" in place) return place;
    const shown = shownRoom(place.room!, await openRooms.describe(place.room!));
    return shown === undefined ? NOT_OPEN : jsonAnswer(200, shown);
  };
}

export function listEvents({ events }: OperationsPorts): AuthorizedAnswer {
  return async ({ query }, authority) => {
    const place = placeOf({}, authority, "look");
    if ("status" in place) return place;
    const after = Number(query.get("after") ?? 0);
    if (!Number.isSafeInteger(after) || after < 0) return errorAnswer(400, "bad-request", "after: the number of an event");
    const mayShow = (event: OperationsEvent): boolean =>
      authority === undefined || ("room" in event && tenantOf(event.room) === authority.tenant);
    const { events: since, takeovers, last } = (await events.read()).since(after, EVENTS_MAX, mayShow);
    return jsonAnswer(200, {
      events: since.map(({ seq, event }) => shownEvent(seq, event)),
      takeovers: takeovers.map(shownTakeover),
      last,
    });
  };
}

/** As NATS goes while the leader is asked for, who was heard before is from before. */
async function hearAll(ports: OperationsPorts): Promise<HeardGateways & { readonly leader: string | undefined }> {
  const heard = await hearGateways(ports);
  if (!heard.reachesNats) return { ...heard, leader: undefined };
  const leader = await ports.fleet.leader();
  const own = ports.account();
  return own.state === "degraded" ? { ...cutOff(own, heard.gateways), leader: undefined } : { ...heard, leader };
}

/**
 * A gateway is among those who answer. Where it does not hear itself, NATS carries nothing, whether that was noticed yet
 * or not; and where it was, nobody is waited for.
 */
async function hearGateways({ account, fleet }: OperationsPorts): Promise<HeardGateways> {
  if (account().state === "degraded") return cutOff(account(), []);
  const heard = await fleet.gateways();
  const own = account();
  return own.state !== "degraded" && heard.some(({ gateway }) => gateway === own.gateway)
    ? { gateways: heard, reachesNats: true }
    : cutOff(own, heard);
}

function cutOff(own: GatewayAccount, heard: readonly GatewayAccount[]): HeardGateways {
  const others = heard.filter(({ gateway }) => gateway !== own.gateway);
  return { gateways: [{ ...own, state: own.state === "ready" ? "degraded" : own.state }, ...others], reachesNats: false };
}
