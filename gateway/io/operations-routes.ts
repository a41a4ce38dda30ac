/**
 * What the operations console may ask (operations-questions.ts) and have done (operations-deeds.ts), in whose name and how
 * often. Servers are operators' alone; a token with the right `admin` that opens the rooms `*` sees its tenant's rooms.
 * `gateway/operations-openapi.json` describes each; `docs/adr/0026-the-console-asks-again.md` says why they are asked and
 * not streamed.
 */

import type { Clock } from "../../shared/clock.ts";
import { type Rate, ReaderRates } from "../limits/reader-rates.ts";
import type { GatewayMetrics } from "../metrics.ts";
import { type Authority, type AuthorizedAnswer, authorityOf } from "./authority.ts";
import { errorAnswer, type HttpAnswer, type HttpQuestion, type HttpRoute } from "./http-routes.ts";
import type { HttpTokens } from "./http-tokens.ts";
import { drainGateway, drainServer, moveRoom } from "./operations-deeds.ts";
import { describeRoom, listEvents, listRooms, type OperationsPorts, showFleet } from "./operations-questions.ts";
import { isOperator, NOT_AN_OPERATOR } from "./operators.ts";

export type OperationsRouteOptions = {
  readonly internalSecret: string;
  readonly environment: string;
  readonly reads: Rate;
  readonly readersMax: number;
};

const OPERATORS = "";
const TOO_FAST = errorAnswer(429, "rate-limited", "too many questions about rooms and servers: ask less often", { "retry-after": "1" });

export function operationsRoutes(
  tokens: HttpTokens,
  ports: OperationsPorts,
  options: OperationsRouteOptions,
  { clock, metrics }: { clock: Clock; metrics: GatewayMetrics },
): HttpRoute[] {
  const rates = new ReaderRates(options.reads, options.readersMax);

  const paced = async (question: HttpQuestion, authority: Authority, answer: AuthorizedAnswer): Promise<HttpAnswer> => {
    if (rates.take(authority === undefined ? OPERATORS : `${authority.tenant} ${authority.user}`, clock.now()))
      return answer(question, authority);
    metrics.limitsReached.inc({ limit: "admin-reads" });
    return TOO_FAST;
  };
  const forAdmins =
    (answer: AuthorizedAnswer) =>
    async (question: HttpQuestion): Promise<HttpAnswer> => {
      const authority = await authorityOf(question, tokens, options);
      return "status" in authority ? authority : paced(question, authority.of, answer);
    };
  /** A token that is good for rooms is told so; one that is good for nothing, what is wrong with it. */
  const forOperators =
    (answer: AuthorizedAnswer) =>
    async (question: HttpQuestion): Promise<HttpAnswer> => {
      if (isOperator(question, options)) return paced(question, undefined, answer);
      const authority = await authorityOf(question, tokens, options);
      return "status" in authority ? authority : NOT_AN_OPERATOR;
    };

  return [
    { method: "get", path: "/v1/admin/fleet", answer: forOperators(showFleet(ports, options.environment, clock)) },
    { method: "get", path: "/v1/admin/rooms", answer: forAdmins(listRooms(ports)) },
    { method: "get", path: "/v1/admin/rooms/:room", answer: forAdmins(describeRoom(ports)) },
    { method: "get", path: "/v1/admin/events", answer: forAdmins(listEvents(ports)) },
    { method: "post", path: "/v1/admin/move", answer: forOperators(moveRoom(ports)) },
    { method: "post", path: "/v1/admin/drain-server", answer: forOperators(drainServer(ports)) },
    { method: "post", path: "/v1/admin/drain-gateway", answer: forOperators(drainGateway(ports)) },
  ];
}
