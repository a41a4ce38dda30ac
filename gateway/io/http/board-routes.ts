/**
 * HTTP routes for boards and activities. The gateway checks the token and passes the request to a leaderboard. A token
 * for a room may read that room's boards; the right `boards`, or `admin` for all rooms, opens the boards of the tenant's people and rooms.
 * `leaderboard/openapi.json` describes each route.
 */

import type { Clock } from "../../../shared/time/clock.ts";
import { conditional, type HttpAnswer } from "../../http/answers.ts";
import { userKey } from "../../limits/quotas.ts";
import {
  BOARD_PARTS,
  type BoardPart,
  boardPath,
  NO_LEADERBOARD,
  peoplePath,
  rankedRoomPath,
  tenantPagePath,
  TOO_MANY_BOARD_READS,
  activitiesAnswer,
  awardedRoom,
  reportedActivities,
  TENANT_REPORTS_TOO_MUCH,
  TOO_MANY_REPORTS,
} from "../../http/board-requests.ts";
import type { RouteRequest } from "../../http/requests.ts";
import type { HttpRoute } from "../../http/route-table.ts";
import { type Rate, UserRates } from "../../limits/reader-rates.ts";
import type { GatewayMetrics } from "../../metrics.ts";
import type { Identity } from "../../sessions/identity.ts";
import type { ServiceDirectory } from "../nats/nats-services.ts";
import { forBearers, type HttpTokens } from "./authenticate.ts";
import { unlessBroken } from "./broken-answers.ts";
import { callServices } from "./call-services.ts";
import { SharedAnswers, type SharedAnswersOptions } from "./shared-answers.ts";
import { roomKey } from "../../../shared/ids.ts";
import { RANKED_USERS_BYTES_MAX } from "../../../shared/settings/board-settings.ts";
import type { Activities } from "../../ports.ts";

/** The leaderboard's path for a request, or a refusal. */
type PathOf = (request: RouteRequest, identity: Identity) => { readonly path: string } | HttpAnswer;

type BoardRouteOptions = {
  readonly internalSecret: string;
  readonly boardReads: Rate;
  readonly readersMax: number;
  readonly sharedPages: SharedAnswersOptions;
};

/** A shared call has no signal: the first client may disconnect before the others have their answer. */
const FOR_ALL = {};

export function boardRoutes(
  tokens: HttpTokens,
  leaderboards: ServiceDirectory,
  options: BoardRouteOptions,
  { clock, metrics }: { clock: Clock; metrics: GatewayMetrics },
): HttpRoute[] {
  const rates = new UserRates(options.boardReads, options.readersMax);

  const pages = new SharedAnswers(options.sharedPages, clock);

  type Asked = { readonly path: string; readonly identity: Identity; readonly request: RouteRequest };
  const answering = (pathOf: PathOf, call: (asked: Asked) => Promise<HttpAnswer | undefined>): HttpRoute["answer"] => {
    const answer = forBearers(tokens, async (request, identity) => {
      if (!rates.take(userKey(identity), clock.now())) return TOO_MANY_BOARD_READS;
      const asked = pathOf(request, identity);
      return "status" in asked ? asked : ((await call({ path: asked.path, identity, request })) ?? NO_LEADERBOARD);
    });
    return async (request) => {
      const given = await answer(request);
      metrics.boardReads.inc({ status: String(given.status) });
      return given;
    };
  };
  const get = (path: string, pathOf: PathOf): HttpRoute => {
    const answer = answering(pathOf, ({ path, identity: { tenant }, request }) =>
      callServices(leaderboards, { path, tenant }, request, options),
    );
    return { method: "get", path, answer };
  };
  /** More users than a URL holds. */
  const post = (path: string, pathOf: PathOf): HttpRoute => {
    const answer = answering(pathOf, ({ path, identity: { tenant }, request }) =>
      callServices(leaderboards, { path, tenant, method: "POST", body: request.body }, request, options),
    );
    return { method: "post", path, answer, bodyBytesMax: RANKED_USERS_BYTES_MAX };
  };
  /** Many clients poll a tenant's boards. All of them within a second share one answer. */
  const page = (board: "people" | "rooms"): HttpRoute => {
    const answer = answering(
      (request, identity) => tenantPagePath(board, request, identity),
      async ({ path, identity: { tenant }, request }) => {
        const asked = pages.get(`${tenant} ${path}`, () => callServices(leaderboards, { path, tenant }, FOR_ALL, options));
        const shared = await unlessBroken(asked);
        return shared && conditional(shared, request.header("if-none-match"));
      },
    );
    return { method: "get", path: `/v1/leaderboard/${board}`, answer };
  };

  const ofRoom =
    (part: BoardPart): PathOf =>
    (request, identity) =>
      boardPath(request, identity, part);
  const ofPeople =
    (part: BoardPart): PathOf =>
    (request, identity) =>
      peoplePath(request, identity, part);
  const { "": first, ...members } = BOARD_PARTS;
  const [roomPath, peoplePrefix] = ["/v1/rooms/:room/leaderboard", "/v1/leaderboard/people"];
  return [
    get(roomPath, ofRoom(first)),
    ...Object.entries(members).map(([rest, part]) => get(`${roomPath}${rest}`, ofRoom(part))),
    post(`${roomPath}/members`, ofRoom(members["/members"])),
    page("people"),
    ...Object.entries(members).map(([rest, part]) => get(`${peoplePrefix}${rest}`, ofPeople(part))),
    post(`${peoplePrefix}/members`, ofPeople(members["/members"])),
    page("rooms"),
    get("/v1/leaderboard/rooms/:room", rankedRoomPath),
  ];
}

type ActivityRouteOptions = {
  readonly kinds: readonly string[];
  readonly reportRate: Rate;
  /** Of the reports of one tenant, which may have any number of users. */
  readonly tenantBytes: Rate;
  readonly reportersMax: number;
};

/** Stored bytes of a report besides its activities and twice the room's key: the ids of the report and its sender. */
const REPORT_BYTES = 512;

/**
 * POST /v1/rooms/{room}/activities: activities that an application's backend reports, such as comments and reviews.
 * They count for boards only, and need a token with the right `award`, so that no client changes a score.
 *
 *   { "id": "…", "activities": [{ "user": "ann", "kind": "comment", "times": 1 }] }
 */
export function activityRoutes(
  tokens: HttpTokens,
  activities: Activities,
  { kinds, reportRate, tenantBytes, reportersMax }: ActivityRouteOptions,
  { clock, metrics }: { clock: Clock; metrics: GatewayMetrics },
): HttpRoute[] {
  const rates = new UserRates(reportRate, reportersMax);
  const tenants = new UserRates(tenantBytes, reportersMax);

  const answer = forBearers(tokens, async (request, identity) => {
    const room = awardedRoom(request, identity);
    if (typeof room !== "string") return room;
    if (!rates.take(userKey(identity), clock.now())) {
      metrics.limitsReached.inc({ limit: "activities" });
      return TOO_MANY_REPORTS;
    }
    const reported = reportedActivities(request, kinds);
    if ("status" in reported) return reported;
    const key = roomKey(identity.tenant, room);
    const bytes = REPORT_BYTES + 2 * key.length + Buffer.byteLength(JSON.stringify(reported.activities));
    if (!tenants.take(identity.tenant, clock.now(), bytes)) {
      metrics.limitsReached.inc({ limit: "tenant-activities" });
      return TENANT_REPORTS_TOO_MUCH;
    }
    // The id contains the user, because two backends may use the same id.
    const outcome = await activities.storeActivity(key, { kind: "deeds", deeds: reported.activities }, `${identity.user} ${reported.id}`);
    metrics.activities.inc({ by: "backend", outcome });
    return activitiesAnswer(outcome);
  });

  return [{ method: "post", path: "/v1/rooms/:room/activities", answer }];
}
