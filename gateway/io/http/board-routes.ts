/**
 * HTTP routes for boards and activities. The gateway checks the token and passes the request to a leaderboard. A token
 * for a room may read that room's boards; the right `boards` or `admin` opens the boards of the tenant's people and rooms.
 * `leaderboard/openapi.json` describes each route.
 */

import type { Clock } from "../../../shared/time/clock.ts";
import type { HttpAnswer } from "../../http/answers.ts";
import { userKey } from "../../limits/quotas.ts";
import {
  BOARD_PARTS,
  type BoardPart,
  boardPath,
  NO_LEADERBOARD,
  peoplePath,
  tenantBoardPath,
  TOO_MANY_BOARD_READS,
  activitiesAnswer,
  awardedRoom,
  reportedActivities,
  TOO_MANY_REPORTS,
} from "../../http/board-requests.ts";
import type { RouteRequest } from "../../http/requests.ts";
import type { HttpRoute } from "../../http/route-table.ts";
import { type Rate, UserRates } from "../../limits/reader-rates.ts";
import type { GatewayMetrics } from "../../metrics.ts";
import type { Identity } from "../../sessions/identity.ts";
import type { ServiceDirectory } from "../nats/nats-services.ts";
import { forBearers, type HttpTokens } from "./authenticate.ts";
import { callServices } from "./call-services.ts";
import { roomKey } from "../../../shared/ids.ts";
import { RANKED_USERS_BYTES_MAX } from "../../../shared/settings/board-settings.ts";
import type { Activities } from "../../ports.ts";

/** The leaderboard's path for a request, or a refusal. */
type PathOf = (request: RouteRequest, identity: Identity) => { readonly path: string } | HttpAnswer;

export type BoardRouteOptions = { readonly internalSecret: string; readonly boardReads: Rate; readonly readersMax: number };

export function boardRoutes(
  tokens: HttpTokens,
  leaderboards: ServiceDirectory,
  options: BoardRouteOptions,
  { clock, metrics }: { clock: Clock; metrics: GatewayMetrics },
): HttpRoute[] {
  const rates = new UserRates(options.boardReads, options.readersMax);

  const route = (method: "get" | "post", path: string, pathOf: PathOf): HttpRoute => {
    const answer = forBearers(tokens, async (request, identity) => {
      if (!rates.take(userKey(identity), clock.now())) return TOO_MANY_BOARD_READS;
      const asked = pathOf(request, identity);
      if ("status" in asked) return asked;
      const named = method === "post" ? { method: "POST" as const, body: request.body } : {};
      const question = { path: asked.path, tenant: identity.tenant, ...named };
      return (await callServices(leaderboards, question, request, options)) ?? NO_LEADERBOARD;
    });
    const counted: HttpRoute["answer"] = async (request) => {
      const given = await answer(request);
      metrics.boardReads.inc({ status: String(given.status) });
      return given;
    };
    return { method, path, answer: counted, ...(method === "post" ? { bodyBytesMax: RANKED_USERS_BYTES_MAX } : {}) };
  };

  const withMembers = (path: string, pathOf: (part: BoardPart) => PathOf): HttpRoute[] => [
    ...Object.entries(BOARD_PARTS).map(([rest, part]) => route("get", `${path}${rest}`, pathOf(part))),
    route(
      "post",
      `${path}/members`,
      pathOf(() => "/members"),
    ), // More users than a URL holds.
  ];
  return [
    ...withMembers("/v1/rooms/:room/leaderboard", (part) => (request, identity) => boardPath(request, identity, part)),
    ...withMembers("/v1/leaderboard/people", (part) => (request, identity) => peoplePath(request, identity, part)),
    ...["", "/:room"].map((rest) => route("get", `/v1/leaderboard/rooms${rest}`, tenantBoardPath)),
  ];
}

/**
 * POST /v1/rooms/{room}/activities: activities that an application's backend reports, such as comments and reviews.
 * They count for boards only, and need a token with the right `award`, so that no client changes a score.
 *
 *   { "id": "…", "activities": [{ "user": "ann", "kind": "comment", "times": 1 }] }
 */
type ActivityRouteOptions = { readonly kinds: readonly string[]; readonly reportRate: Rate; readonly reportersMax: number };

export function activityRoutes(
  tokens: HttpTokens,
  activities: Activities,
  { kinds, reportRate, reportersMax }: ActivityRouteOptions,
  { clock, metrics }: { clock: Clock; metrics: GatewayMetrics },
): HttpRoute[] {
  const rates = new UserRates(reportRate, reportersMax);

  const answer = forBearers(tokens, async (request, identity) => {
    const room = awardedRoom(request, identity);
    if (typeof room !== "string") return room;
    if (!rates.take(userKey(identity), clock.now())) {
      metrics.limitsReached.inc({ limit: "activities" });
      return TOO_MANY_REPORTS;
    }
    const reported = reportedActivities(request, kinds);
    if ("status" in reported) return reported;
    // The id contains the user, because two backends may use the same id.
    const outcome = await activities.storeActivity(
      roomKey(identity.tenant, room),
      { kind: "deeds", deeds: reported.activities },
      `${identity.user} ${reported.id}`,
    );
    metrics.activities.inc({ by: "backend", outcome });
    return activitiesAnswer(outcome);
  });

  return [{ method: "post", path: "/v1/rooms/:room/activities", answer }];
}
