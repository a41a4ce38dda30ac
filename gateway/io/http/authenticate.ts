/**
 * Authenticates an HTTP request: an operator, or a bearer whose token and sanctions are checked. A banned bearer is
 * refused like an invalid token. As on the WebSocket, a refused token raises the abuse score of the address.
 */

import { createHash, timingSafeEqual } from "node:crypto";

import { isOperatorPass } from "../../../shared/io/operator-pass.ts";
import { systemClock } from "../../../shared/io/system-clock.ts";
import type { ClientAddress } from "../../../shared/limits/client-address.ts";
import { errorAnswer, type HttpAnswer } from "../../http/answers.ts";
import { adminFrom, type Authority, identityFrom, NO_TOKEN, verdictUnderSanctions } from "../../http/authorize.ts";
import { bearerOf, type RouteRequest, requestToken } from "../../http/requests.ts";
import type { HttpRoute } from "../../http/route-table.ts";
import type { DisciplineHost } from "../../limits/discipline-host.ts";
import type { SanctionsHost } from "../../limits/sanctions-host.ts";
import type { Tokens } from "../../ports.ts";
import type { Identity, TokenVerdict } from "../../sessions/identity.ts";
import { withReason } from "../../limits/sanctions.ts";

/** `from` is the address that sends the token. Never rejects. */
export type HttpTokens = { readonly verify: (token: string, from: ClientAddress | undefined) => Promise<TokenVerdict> };

export type HttpTokenPorts = {
  readonly tokens: Tokens;
  readonly sanctions: Pick<SanctionsHost, "banOf" | "banOfAddress" | "restriction">;
  readonly discipline: Pick<DisciplineHost, "receiveForgery">;
};

export function httpTokens({ tokens, sanctions, discipline }: HttpTokenPorts): HttpTokens {
  return {
    verify: async (token, from) => {
      const banned = from === undefined ? undefined : sanctions.banOfAddress(from);
      if (banned !== undefined) return { kind: "refused", why: withReason("the sender's address is banned for a time", banned) };
      const verdict = await tokens.verify(token);
      if (verdict.kind === "refused") discipline.receiveForgery(from);
      return verdictUnderSanctions(verdict, sanctions);
    },
  };
}

export async function identify(request: RouteRequest, tokens: HttpTokens): Promise<Identity | HttpAnswer> {
  const token = requestToken(request);
  return token === undefined ? NO_TOKEN : identityFrom(await tokens.verify(token, request.address));
}

/** A route for bearers of any valid token. */
export function forBearers(
  tokens: HttpTokens,
  answer: (request: RouteRequest, identity: Identity) => HttpAnswer | Promise<HttpAnswer>,
): HttpRoute["answer"] {
  return async (request) => {
    const identity = await identify(request, tokens);
    return "status" in identity ? identity : answer(request, identity);
  };
}

export type OperatorOptions = { readonly operatorSecret: string };

const NOT_PROMETHEUS = errorAnswer(
  401,
  "unauthorized",
  "metrics are for Prometheus: send COROOM_METRICS_SECRET as Authorization: Bearer, or read them on the health port",
);

/** Operators, and bearers of the right `admin`. */
export async function authorityOf(
  request: RouteRequest,
  tokens: HttpTokens,
  options: OperatorOptions,
): Promise<{ readonly of: Authority } | HttpAnswer> {
  return isOperator(request, options) ? { of: undefined } : adminFrom(await identify(request, tokens));
}

/**
 * An operator sends the operator secret, or a pass that was made from it. No token makes its bearer an operator,
 * because applications issue tokens. False while no secret is set.
 */
export function isOperator(request: Pick<RouteRequest, "header">, { operatorSecret }: OperatorOptions): boolean {
  return hasSecret(request, operatorSecret) || isOperatorPass(bearerOf(request) ?? "", operatorSecret, systemClock.wallNow());
}

export function forPrometheus(answer: HttpRoute["answer"], { metricsSecret }: { metricsSecret: string }): HttpRoute["answer"] {
  return (request) => (hasSecret(request, metricsSecret) ? answer(request) : NOT_PROMETHEUS);
}

/** False while no secret is set. Compares digests, which have the same length for any request. */
function hasSecret(request: Pick<RouteRequest, "header">, secret: string): boolean {
  return secret !== "" && timingSafeEqual(digest(bearerOf(request) ?? ""), digest(secret));
}

function digest(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}
