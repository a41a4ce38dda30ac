/**
 * Administration of rooms over HTTP: list members, kick, make read-only, ban, lift, and drain this gateway (operators
 * only). `http/authorize.ts` decides in which tenant and rooms a caller may act. `gateway/openapi.json` describes each
 * route.
 */

import type { Sanction } from "../../../shared/bus/admin-messages.ts";
import type { Clock } from "../../../shared/time/clock.ts";
import {
  kickCommand,
  liftRequested,
  NOT_AN_OPERATOR_TO_DRAIN,
  sanctionRequested,
  sanctionsShown,
  scopeInPath,
} from "../../http/admin-requests.ts";
import { type HttpAnswer, isoDate, jsonAnswer } from "../../http/answers.ts";
import type { Authority } from "../../http/authorize.ts";
import type { RouteRequest } from "../../http/requests.ts";
import type { HttpRoute } from "../../http/route-table.ts";
import type { SanctionsHost } from "../../limits/sanctions-host.ts";
import type { AdminCommands } from "../../ports.ts";
import { authorityOf, type HttpTokens, isOperator, type OperatorOptions } from "./authenticate.ts";

export type AdminPorts = {
  readonly tokens: HttpTokens;
  readonly commands: AdminCommands;
  readonly sanctions: Pick<SanctionsHost, "all" | "impose">;
  /** Starts or continues to drain this gateway. Returns how many connections are left. */
  readonly drain: () => number;
};

export function adminRoutes(
  { tokens, commands, sanctions, drain }: AdminPorts,
  options: OperatorOptions,
  { clock }: { clock: Clock },
): HttpRoute[] {
  const forAdmins =
    (answer: (request: RouteRequest, authority: Authority) => HttpAnswer | Promise<HttpAnswer>): HttpRoute["answer"] =>
    async (request) => {
      const authority = await authorityOf(request, tokens, options);
      return "status" in authority ? authority : answer(request, authority.of);
    };

  const carryOut = (sanction: Sanction | HttpAnswer): HttpAnswer => {
    if ("status" in sanction) return sanction;
    sanctions.impose(sanction);
    return jsonAnswer(200, { until: isoDate(sanction.until) });
  };
  const impose = (level: Sanction["level"]): HttpRoute["answer"] =>
    forAdmins((request, authority) => carryOut(sanctionRequested(request, level, authority, clock.wallNow())));
  const lift = forAdmins((request, authority) => carryOut(liftRequested(request, sanctions.all, authority, clock.wallNow())));

  const kick = forAdmins(async (request, authority) => {
    const command = kickCommand(request, authority);
    if ("status" in command) return command;
    const { kicked, gateways, silentGateways } = await commands.issueCommand(command);
    return jsonAnswer(200, { kicked, gateways, silentGateways });
  });

  const listMembers = forAdmins(async (request, authority) => {
    const scope = scopeInPath(request, authority);
    if ("status" in scope) return scope;
    const { members, gateways, silentGateways } = await commands.issueCommand({ kind: "list-members", room: scope.room! });
    return jsonAnswer(200, { members, gateways, silentGateways });
  });

  const listBans = forAdmins((_, authority) => jsonAnswer(200, { sanctions: sanctionsShown(sanctions.all, authority) }));

  const drainThis: HttpRoute["answer"] = (request) =>
    isOperator(request, options) ? jsonAnswer(202, { connections: drain() }) : NOT_AN_OPERATOR_TO_DRAIN;

  return [
    { method: "post", path: "/v1/admin/kick", answer: kick },
    { method: "post", path: "/v1/admin/downgrade", answer: impose("read-only") },
    { method: "post", path: "/v1/admin/ban", answer: impose("banned") },
    { method: "post", path: "/v1/admin/lift", answer: lift },
    { method: "get", path: "/v1/admin/bans", answer: listBans },
    { method: "get", path: "/v1/admin/rooms/:room/members", answer: listMembers },
    { method: "post", path: "/v1/admin/drain", answer: drainThis },
  ];
}
