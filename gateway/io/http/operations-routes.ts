/**
 * The operations console's queries (fleet, rooms, events) and actions (move a room, drain a server or a gateway). Servers
 * are for operators only. A token with the right `admin` that opens the rooms `*` sees its tenant's rooms.
 * `gateway/operations-openapi.json` describes each route. The console polls: see
 * `docs/adr/0026-console-polls.md`.
 */

import type { GatewayReport } from "../../../shared/bus/fleet-messages.ts";
import type { Clock } from "../../../shared/time/clock.ts";
import { scopeInPath } from "../../http/admin-requests.ts";
import type { HttpAnswer } from "../../http/answers.ts";
import { type Authority, NOT_AN_OPERATOR } from "../../http/authorize.ts";
import {
  eventsAnswer,
  fleetAnswer,
  gatewayDrainAnswer,
  maySeeEvent,
  moveAnswer,
  NO_NATS,
  noServer,
  roomAnswer,
  roomListAnswer,
  roomVitalsAnswer,
  type SeenFleet,
  seenFleet,
  serverDrainAnswer,
  vitalsAnswer,
} from "../../http/operations-answers.ts";
import {
  drainRequest,
  eventsAfter,
  moveRequest,
  rateKey,
  roomListRequest,
  slotsAfter,
  TOO_MANY_QUERIES,
} from "../../http/operations-requests.ts";
import type { RouteRequest } from "../../http/requests.ts";
import type { HttpRoute } from "../../http/route-table.ts";
import { type Rate, UserRates } from "../../limits/reader-rates.ts";
import type { GatewayMetrics } from "../../metrics.ts";
import type { VitalsHistory } from "../../operations/vitals-history.ts";
import type { FleetControl, FleetSight, OpenRooms, RecentEvents } from "../../ports.ts";
import type { ServiceDirectoryWithRedis, ServiceDirectory } from "../nats/nats-services.ts";
import { authorityOf, type HttpTokens, isOperator } from "./authenticate.ts";

/** `account` reports this gateway without asking another process. `documents` and `leaderboards` are the services that send heartbeats. */
export type OperationsPorts = {
  readonly fleet: FleetControl;
  readonly openRooms: OpenRooms;
  readonly events: RecentEvents;
  readonly vitals: VitalsHistory;
  readonly account: () => GatewayReport;
  readonly documents: Pick<ServiceDirectory, "urls">;
  readonly leaderboards: Pick<ServiceDirectoryWithRedis, "urls" | "withoutRedis">;
};

type OperationsRouteOptions = {
  readonly operatorSecret: string;
  readonly environment: string;
  readonly reads: Rate;
  readonly readersMax: number;
};

type AuthorizedAnswer = (request: RouteRequest, authority: Authority) => Promise<HttpAnswer>;

/** All events that the gateway keeps. */
const EVENTS_MAX = 500;

export function operationsRoutes(
  tokens: HttpTokens,
  ports: OperationsPorts,
  options: OperationsRouteOptions,
  { clock, metrics }: { clock: Clock; metrics: GatewayMetrics },
): HttpRoute[] {
  const rates = new UserRates(options.reads, options.readersMax);

  const limited = async (request: RouteRequest, authority: Authority, answer: AuthorizedAnswer): Promise<HttpAnswer> => {
    if (rates.take(rateKey(authority), clock.now())) return answer(request, authority);
    metrics.limitsReached.inc({ limit: "admin-reads" });
    return TOO_MANY_QUERIES;
  };
  const forAdmins =
    (answer: AuthorizedAnswer) =>
    async (request: RouteRequest): Promise<HttpAnswer> => {
      const authority = await authorityOf(request, tokens, options);
      return "status" in authority ? authority : limited(request, authority.of, answer);
    };
  /** The refusal of a bearer: "operators only" if the token is valid, otherwise the error of the token. */
  const forOperators =
    (answer: AuthorizedAnswer) =>
    async (request: RouteRequest): Promise<HttpAnswer> => {
      if (isOperator(request, options)) return limited(request, undefined, answer);
      const authority = await authorityOf(request, tokens, options);
      return "status" in authority ? authority : NOT_AN_OPERATOR;
    };

  const queries = operationsQueries(ports, options.environment, clock);
  const actions = operationsActions(ports);
  return [
    { method: "get", path: "/v1/admin/fleet", answer: forOperators(queries.showFleet) },
    { method: "get", path: "/v1/admin/rooms", answer: forAdmins(queries.listRooms) },
    { method: "get", path: "/v1/admin/rooms/:room", answer: forAdmins(queries.describeRoom) },
    { method: "get", path: "/v1/admin/rooms/:room/vitals", answer: forAdmins(queries.showRoomVitals) },
    { method: "get", path: "/v1/admin/vitals", answer: forOperators(queries.showVitals) },
    { method: "get", path: "/v1/admin/events", answer: forAdmins(queries.listEvents) },
    { method: "post", path: "/v1/admin/move", answer: forOperators(actions.moveRoom) },
    { method: "post", path: "/v1/admin/drain-server", answer: forOperators(actions.drainServer) },
    { method: "post", path: "/v1/admin/drain-gateway", answer: forOperators(actions.drainGateway) },
  ];
}

const NOTHING_SEEN: FleetSight = { gateways: [], servers: [], serversLost: [] };

type Queries = Readonly<
  Record<"showFleet" | "listRooms" | "describeRoom" | "listEvents" | "showVitals" | "showRoomVitals", AuthorizedAnswer>
>;

function operationsQueries(ports: OperationsPorts, environment: string, clock: Clock): Queries {
  const { fleet, openRooms, events, vitals, account, documents, leaderboards } = ports;
  /** A gateway that has lost NATS asks no other process. */
  const look = async (): Promise<SeenFleet> => seenFleet(account(), account().state === "degraded" ? NOTHING_SEEN : await fleet.look());

  return {
    showFleet: async () => {
      const before = await look();
      const leader = before.reachesNats ? await fleet.leader() : undefined;
      const seen = before.reachesNats ? await look() : before; // NATS may have been lost meanwhile.
      return fleetAnswer({
        ...seen,
        leader: seen.reachesNats ? leader : undefined,
        environment,
        at: clock.wallNow(),
        processes: vitals.running(clock.wallNow()),
        diskFreeBytes: vitals.lowest("diskFreeBytes", clock.wallNow()),
        services: {
          documents: documents.urls().length,
          leaderboards: leaderboards.urls().length,
          leaderboardsWithoutRedis: leaderboards.withoutRedis(),
        },
      });
    },
    listRooms: async (request, authority) => {
      const asked = roomListRequest(request, authority);
      if ("status" in asked) return asked;
      const serversAsked = fleet.servers().length; // A server that starts during the request was not asked.
      const replies = await openRooms.list(asked.list);
      if (replies.length === 0 && !(await look()).reachesNats) return NO_NATS;
      return roomListAnswer(replies, asked.limit, serversAsked);
    },
    describeRoom: async (request, authority) => {
      const scope = scopeInPath(request, authority);
      if ("status" in scope) return scope;
      return roomAnswer(scope.room!, await openRooms.describe(scope.room!));
    },
    showVitals: async (request) => {
      const asked = slotsAfter(request);
      return "status" in asked ? asked : vitalsAnswer(vitals.since(asked.after, clock.wallNow(), asked.process));
    },
    showRoomVitals: async (request, authority) => {
      const [scope, asked] = [scopeInPath(request, authority), slotsAfter(request)];
      if ("status" in scope) return scope;
      return "status" in asked ? asked : roomVitalsAnswer(vitals.ofRoom(scope.room!, asked.after, clock.wallNow()));
    },
    listEvents: async (request, authority) => {
      const asked = eventsAfter(request, authority);
      if ("status" in asked) return asked;
      const kept = await events.read();
      return eventsAnswer(kept.since(asked.after, EVENTS_MAX, (event) => maySeeEvent(event, authority)));
    },
  };
}

function operationsActions({ fleet, openRooms }: Pick<OperationsPorts, "fleet" | "openRooms">): {
  readonly moveRoom: AuthorizedAnswer;
  readonly drainServer: AuthorizedAnswer;
  readonly drainGateway: AuthorizedAnswer;
} {
  return {
    moveRoom: async (request) => {
      const move = moveRequest(request);
      if ("status" in move) return move;
      if (!fleet.servers().some(({ server }) => server === move.to)) return noServer(move.to);
      return moveAnswer(await openRooms.move(move.room, move.to), move.to);
    },
    drainServer: async (request) => {
      const drain = drainRequest(request);
      if ("status" in drain) return drain;
      const heartbeat = fleet.servers().find(({ server }) => server === drain.server);
      return heartbeat === undefined ? noServer(drain.server) : serverDrainAnswer(heartbeat, await fleet.drainServer(heartbeat.server));
    },
    drainGateway: async (request) => {
      const drain = drainRequest(request);
      return "status" in drain ? drain : gatewayDrainAnswer(drain.server, await fleet.drainGateway(drain.server));
    },
  };
}
