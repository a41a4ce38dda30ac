/**
 * What the operations console asks: how servers and rooms are and what has happened to them, and to move a room or
 * drain a server. Servers are operators' alone; a token with the right `admin` that opens the rooms `*` sees its
 * tenant's rooms. `gateway/operations-openapi.json` describes each; `docs/adr/0026-the-console-asks-again.md` says why
 * they are asked and not streamed.
 */

import { z } from "zod";

import { assertNever } from "../../shared/assert.ts";
import { type GatewayAccount, type ListedRoom, LISTED_ROOMS_MAX } from "../../shared/bus/fleet-messages.ts";
import type { OperationsEvent } from "../../shared/bus/operations-events.ts";
import type { ServerHeartbeat } from "../../shared/bus/placement-messages.ts";
import type { Clock } from "../../shared/clock.ts";
import { type RoomKey, roomOf, type ServerId, tenantOf } from "../../shared/ids.ts";
import { type Rate, ReaderRates } from "../limits/reader-rates.ts";
import type { GatewayMetrics } from "../metrics.ts";
import { cursorText, pageOf, parseCursor } from "../operations/room-page.ts";
import type { Takeover } from "../operations/takeovers.ts";
import type { Fleet, OpenRooms, RecentEvents, RoomDescription } from "../ports.ts";
import { decodeParameter } from "./ask-services.ts";
import { type Authority, authorityOf, placeOf, readBody } from "./authority.ts";
import { errorAnswer, type HttpAnswer, type HttpQuestion, type HttpRoute, jsonAnswer } from "./http-routes.ts";
import type { HttpTokens } from "./http-tokens.ts";
import type { HeardServices, Services } from "./nats-services.ts";
import { isOperator, NOT_AN_OPERATOR } from "./operators.ts";

/** `account`: of this gateway, as it knows without asking anybody. `documents`, `leaderboards`: the services heard of lately. */
export type OperationsPorts = {
  readonly fleet: Fleet;
  readonly openRooms: OpenRooms;
  readonly events: RecentEvents;
  readonly account: () => GatewayAccount;
  readonly documents: Pick<Services, "urls">;
  readonly leaderboards: Pick<HeardServices, "urls" | "withoutRedis">;
};
export type OperationsRouteOptions = {
  readonly internalSecret: string;
  readonly environment: string;
  readonly reads: Rate;
  readonly readersMax: number;
};

const ROOMS_DEFAULT = 50;
/** As many as are kept. */
const EVENTS_MAX = 500;
const OPERATORS = "";
const TOO_FAST = errorAnswer(429, "rate-limited", "too many questions about rooms and servers: ask less often", { "retry-after": "1" });
const NOT_OPEN = errorAnswer(404, "not-open", "nobody has this room open, so no server has it: look whether its name and tenant are right");
const NO_NATS = errorAnswer(503, "unavailable", "this gateway does not reach NATS, so it hears of no room: look at the NATS servers");
const BAD_CURSOR = errorAnswer(400, "bad-request", "after: as `next` of the page before says it");

const Move = z.strictObject({
  tenant: z.string().optional(),
  room: z.string(),
  to: z.string().regex(/^[A-Za-z0-9_-]{1,64}$/, "a room server, as GET /v1/admin/fleet names it"),
});
const Drain = z.strictObject({
  server: z.string().regex(/^[A-Za-z0-9_-]{1,64}$/, "a room server or gateway, as GET /v1/admin/fleet names it"),
});

type HeardGateways = { readonly gateways: readonly GatewayAccount[]; readonly reachesNats: boolean };
type Answer = (question: HttpQuestion, authority: Authority) => Promise<HttpAnswer>;

export function operationsRoutes(
  tokens: HttpTokens,
  { fleet, openRooms, events, account, documents, leaderboards }: OperationsPorts,
  options: OperationsRouteOptions,
  { clock, metrics }: { clock: Clock; metrics: GatewayMetrics },
): HttpRoute[] {
  const rates = new ReaderRates(options.reads, options.readersMax);

  const paced = async (question: HttpQuestion, authority: Authority, answer: Answer): Promise<HttpAnswer> => {
    if (rates.take(authority === undefined ? OPERATORS : `${authority.tenant} ${authority.user}`, clock.now()))
      return answer(question, authority);
    metrics.limitsReached.inc({ limit: "admin-reads" });
    return TOO_FAST;
  };
  const forAdmins =
    (answer: Answer) =>
    async (question: HttpQuestion): Promise<HttpAnswer> => {
      const authority = await authorityOf(question, tokens, options);
      return "status" in authority ? authority : paced(question, authority.of, answer);
    };
  /** A token that is good for rooms is told so; one that is good for nothing, what is wrong with it. */
  const forOperators =
    (answer: Answer) =>
    async (question: HttpQuestion): Promise<HttpAnswer> => {
      if (isOperator(question, options)) return paced(question, undefined, answer);
      const authority = await authorityOf(question, tokens, options);
      return "status" in authority ? authority : NOT_AN_OPERATOR;
    };

  /**
   * A gateway is among those who answer. Where it does not hear itself, NATS carries nothing, whether that was noticed yet
   * or not; and where it was, nobody is waited for.
   */
  const hearGateways = async (): Promise<HeardGateways> => {
    if (account().state === "degraded") return cutOff([]);
    const heard = await fleet.gateways();
    return account().state !== "degraded" && heard.some(({ gateway }) => gateway === account().gateway)
      ? { gateways: heard, reachesNats: true }
      : cutOff(heard);
  };
  const cutOff = (heard: readonly GatewayAccount[]): HeardGateways => {
    const own = account();
    const others = heard.filter(({ gateway }) => gateway !== own.gateway);
    return { gateways: [{ ...own, state: own.state === "ready" ? "degraded" : own.state }, ...others], reachesNats: false };
  };
  /** As NATS goes while the leader is asked for, who was heard before is from before. */
  const hearAll = async (): Promise<HeardGateways & { readonly leader: string | undefined }> => {
    const heard = await hearGateways();
    if (!heard.reachesNats) return { ...heard, leader: undefined };
    const leader = await fleet.leader();
    return account().state === "degraded" ? { ...cutOff(heard.gateways), leader: undefined } : { ...heard, leader };
  };

  const showFleet: Answer = async () => {
    const { gateways, reachesNats, leader } = await hearAll();
    return jsonAnswer(200, {
      environment: options.environment,
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

  const listRooms: Answer = async ({ query }, authority) => {
    const place = placeOf({ tenant: query.get("tenant") ?? undefined }, authority);
    if ("status" in place) return place;
    const [after, limit] = [query.get("after"), Number(query.get("limit") ?? ROOMS_DEFAULT)];
    const cursor = after === null ? undefined : parseCursor(after);
    if (after !== null && cursor === undefined) return BAD_CURSOR;
    if (!Number.isInteger(limit) || limit < 1 || limit > LISTED_ROOMS_MAX)
      return errorAnswer(400, "bad-request", `limit: 1 to ${LISTED_ROOMS_MAX}`);
    const ofAll = authority === undefined && !query.has("tenant"); // An operator's list is of all tenants.
    const search = (query.get("search") ?? "").slice(0, 128);
    const answers = await openRooms.list({
      ...(ofAll ? {} : { tenant: place.tenant }),
      search,
      ...(cursor === undefined ? {} : { after: cursor }),
      limit: limit + 1,
    });
    if (answers.length === 0 && !(await hearGateways()).reachesNats) return NO_NATS;
    const { rooms, next, ...page } = pageOf(answers, limit);
    return jsonAnswer(200, {
      rooms: rooms.map(shownListed),
      ...page,
      serversKnown: fleet.servers().length,
      ...(next === undefined ? {} : { next: cursorText(next) }),
    });
  };

  const describeRoom: Answer = async ({ query, parameters }, authority) => {
    const place = placeOf({ tenant: query.get("tenant") ?? undefined, room: decodeParameter(parameters[0] ?? "") }, authority);
    if ("status" in place) return place;
    return shownRoom(place.room!, await openRooms.describe(place.room!)) ?? NOT_OPEN;
  };

  const listEvents: Answer = async ({ query }, authority) => {
    const place = placeOf({}, authority);
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

  const move: Answer = async (question) => {
    const asked = readBody(question, Move);
    if ("status" in asked) return asked;
    const place = placeOf(asked, undefined);
    if ("status" in place) return place;
    const to = asked.to as ServerId;
    if (!fleet.servers().some(({ server }) => server === to)) return noServer(to);
    const outcome = await openRooms.move(place.room!, to);
    switch (outcome.kind) {
      case "moved":
        return jsonAnswer(200, { from: outcome.from, to });
      case "open-nowhere":
        return NOT_OPEN;
      case "refused":
        return errorAnswer(409, "refused", outcome.reason);
      case "silent":
        return errorAnswer(
          503,
          "unavailable",
          `${outcome.server}, which has the room, does not answer: look whether it lives, and ask again`,
        );
      default:
        return assertNever(outcome);
    }
  };

  const drainServer: Answer = async (question) => {
    const asked = readBody(question, Drain);
    if ("status" in asked) return asked;
    const heard = fleet.servers().find(({ server }) => server === asked.server);
    if (heard === undefined) return noServer(asked.server);
    const reply = await fleet.drainServer(heard.server);
    if (reply === undefined)
      return errorAnswer(503, "unavailable", `${asked.server} does not answer: look whether it lives, and ask again`);
    return reply.kind === "done"
      ? jsonAnswer(202, { server: asked.server, rooms: heard.rooms })
      : errorAnswer(409, "refused", reply.reason);
  };

  const drainGateway: Answer = async (question) => {
    const asked = readBody(question, Drain);
    if ("status" in asked) return asked;
    const account = await fleet.drainGateway(asked.server);
    return account === undefined ? noServer(asked.server) : jsonAnswer(202, { server: asked.server, connections: account.connections });
  };

  return [
    { method: "get", path: "/v1/admin/fleet", answer: forOperators(showFleet) },
    { method: "get", path: "/v1/admin/rooms", answer: forAdmins(listRooms) },
    { method: "get", path: "/v1/admin/rooms/:room", answer: forAdmins(describeRoom) },
    { method: "get", path: "/v1/admin/events", answer: forAdmins(listEvents) },
    { method: "post", path: "/v1/admin/move", answer: forOperators(move) },
    { method: "post", path: "/v1/admin/drain-server", answer: forOperators(drainServer) },
    { method: "post", path: "/v1/admin/drain-gateway", answer: forOperators(drainGateway) },
  ];
}

function noServer(server: string): HttpAnswer {
  return errorAnswer(404, "no-such-server", `${server} is not heard: GET /v1/admin/fleet names those that are`);
}

function shownServer({ server, rooms, draining, labels, load }: ServerHeartbeat): object {
  const { host = "", zone = "", pool = "" } = labels ?? {};
  return {
    server,
    rooms,
    draining,
    host,
    zone,
    pool,
    used: load?.used ?? 0,
    hot: (load?.hot ?? []).map(({ room, share }) => ({ ...namesOf(room), share })),
  };
}

function shownListed({ room, ...facts }: ListedRoom): object {
  return { ...namesOf(room), ...facts };
}

/** Undefined: it is open nowhere. */
function shownRoom(room: RoomKey, { account, planned, pin }: RoomDescription): HttpAnswer | undefined {
  if (account === undefined) return undefined;
  const { server, epoch, mode, shed, participants, presencePerSecond, gateways } = account;
  const placed =
    planned === undefined
      ? {}
      : {
          placed: {
            reason: planned.reason,
            at: dateOf(planned.at),
            ...(planned.replica === undefined ? {} : { replica: planned.replica }),
          },
        };
  return jsonAnswer(200, {
    ...namesOf(room),
    server,
    epoch,
    mode,
    participants,
    heldBack: shed,
    presencePerSecond,
    ...placed,
    ...(pin === undefined ? {} : { pin }),
    gateways: Object.entries(gateways).map(([gateway, members]) => ({ gateway, members })),
  });
}

function shownEvent(seq: number, { at, ...event }: OperationsEvent): object {
  return { seq, at: dateOf(at), ...event, ...("room" in event ? namesOf(event.room) : {}) };
}

function shownTakeover({ seq, first: { at, by, from, room }, count, rooms }: Takeover): object {
  return { seq, at: dateOf(at), by, from, tenant: tenantOf(room), count, rooms: rooms.map(roomOf) };
}

function namesOf(room: RoomKey): { readonly tenant: string; readonly room: string } {
  return { tenant: tenantOf(room), room: roomOf(room) };
}

function dateOf(at: number): string {
  return new Date(at).toISOString();
}
