/** Turns requests about boards into paths of the leaderboard's HTTP server. `me` in a path is the user of the token. */

import { parseRoomId, parseUserId, ROOM_ID_RULE, type RoomId, USER_ID_RULE, type UserId } from "../../shared/ids.ts";
import { admit, type Identity, opens } from "../sessions/identity.ts";
import { errorAnswer, type HttpAnswer, retryAfter, jsonAnswer } from "./answers.ts";
import { decodeParameter, queryWith, queryWithoutToken, reencodeParameter, roomParameter, type RouteRequest } from "./requests.ts";
import { z } from "zod";
import { ACTIVITY_USERS_MAX, UserAction } from "../../shared/bus/activity.ts";
import { decodeJson } from "../../shared/bus/json-messages.ts";
import type { ActivityOutcome } from "../ports.ts";
import { refuseRestricted } from "./authorize.ts";

export const NO_LEADERBOARD = errorAnswer(
  503,
  "no-leaderboard",
  "no leaderboard answers right now: the boards are behind. Ask again in a moment.",
  retryAfter(5),
);
export const TOO_MANY_BOARD_READS = errorAnswer(
  429,
  "rate-limited",
  "too many requests about boards: ask less often, or subscribe to the board (leaderboardOf or watchTenantBoard of the client)",
  retryAfter(1),
);
const BAD_ROOM = errorAnswer(400, "bad-room", ROOM_ID_RULE);
const NO_TENANT_BOARDS = errorAnswer(
  403,
  "not-allowed",
  "the token does not open the boards of the tenant: request a token whose claim `rights` contains `boards` (or `admin`, with the rooms `*`)",
);
const BAD_USER = errorAnswer(400, "bad-user", USER_ID_RULE);

/** The part of a board's path after the room. `parameters`: the path parameters after the room. */
export type BoardPart = (parameters: readonly string[], user: UserId) => string;

/** By the part of the route's path after `/v1/rooms/:room/leaderboard`, and except the first after `/v1/leaderboard/people`. */
export const BOARD_PARTS = {
  "": () => "",
  "/me": (_, user) => `/members/${encodeURIComponent(user)}`,
  "/members": () => "/members",
  "/members/:user": ([user = ""]) => `/members/${reencodeParameter(user)}`,
} as const satisfies Readonly<Record<string, BoardPart>>;

/** The path of a board of one room, if the token opens the room. */
export function boardPath(request: RouteRequest, identity: Identity, part: BoardPart): { readonly path: string } | HttpAnswer {
  const room = parseRoomId(roomParameter(request));
  if (room === undefined) return BAD_ROOM;
  const admission = admit(identity, room);
  if (admission.kind === "refused") return errorAnswer(403, "not-allowed", admission.why);
  return { path: pathOf(room, part(request.parameters.slice(1), identity.user), request.query) };
}

/** The path of people in the tenant's ranking. Needs the right `boards`, or `admin` for all rooms. */
export function peoplePath(request: RouteRequest, identity: Identity, part: BoardPart): { readonly path: string } | HttpAnswer {
  if (!opensTenantBoards(identity)) return NO_TENANT_BOARDS;
  const [user] = request.parameters;
  if (user !== undefined && parseUserId(decodeParameter(user)) === undefined) return BAD_USER;
  return { path: `/v1/leaderboard/people${part(request.parameters, identity.user)}${queryWithoutToken(request.query)}` };
}

/** The path of one room in the tenant's ranking of rooms. Needs the right `boards`, or `admin` for all rooms. */
export function rankedRoomPath(
  { parameters: [room = ""], query }: Pick<RouteRequest, "parameters" | "query">,
  identity: Identity,
): { readonly path: string } | HttpAnswer {
  if (!opensTenantBoards(identity)) return NO_TENANT_BOARDS;
  if (parseRoomId(decodeParameter(room)) === undefined) return BAD_ROOM;
  return { path: `/v1/leaderboard/rooms/${reencodeParameter(room)}${queryWithoutToken(query)}` };
}

const PAGE_PARAMETERS = ["window", "role", "ranking", "limit", "cursor"];

/** The path of a page of the tenant's people or rooms. It contains nothing of its reader, so that readers may share the answer. */
export function tenantPagePath(
  board: "people" | "rooms",
  { query }: Pick<RouteRequest, "query">,
  identity: Identity,
): { readonly path: string } | HttpAnswer {
  if (!opensTenantBoards(identity)) return NO_TENANT_BOARDS;
  return { path: `/v1/leaderboard/${board}${queryWith(query, PAGE_PARAMETERS)}` };
}

/** The names of all people and rooms are on these boards, so an administrator of single rooms does not open them. */
function opensTenantBoards({ rights, rooms }: Identity): boolean {
  return rights.boards || (rights.admin && rooms.includes("*"));
}

function pathOf(room: RoomId, part: string, query: URLSearchParams): string {
  return `/v1/rooms/${encodeURIComponent(room)}/leaderboard${part}${queryWithoutToken(query)}`;
}

/** Reads the activities that a backend reports, and turns each outcome into an answer. On the bus, later fields are allowed. */
const Body = z.strictObject({
  id: z.string().regex(/^[A-Za-z0-9_.:-]{1,64}$/),
  activities: z.array(z.strictObject(UserAction.shape)).min(1).max(ACTIVITY_USERS_MAX),
});
type ReportedActivities = z.output<typeof Body>;

const NOT_AWARDING = errorAnswer(
  403,
  "not-allowed",
  "only backends report activities: request a token whose claim `rights` contains `award` and whose `rooms` names the room",
);
const BAD_BODY = errorAnswer(
  400,
  "bad-body",
  `send {"id": "…", "activities": [{"user": "…", "kind": "…", "times": 1}]}: an id of 1 to 64 letters, digits and _.:-, 1 to ${ACTIVITY_USERS_MAX} activities, and no other field`,
);
export const TOO_MANY_REPORTS = errorAnswer(
  429,
  "rate-limited",
  "too many reports of activities: put more activities into one request",
  retryAfter(1),
);
export const TENANT_REPORTS_TOO_MUCH = errorAnswer(
  429,
  "rate-limited",
  "the tenant is at its limit of reported bytes: report these activities again later, under the same id",
  retryAfter(10),
);
const OUTCOMES: Readonly<Record<ActivityOutcome, HttpAnswer>> = {
  stored: jsonAnswer(202, { outcome: "stored" }),
  known: jsonAnswer(202, { outcome: "known" }),
  full: errorAnswer(
    503,
    "full",
    "activities arrive faster than they are counted: report them again later, under the same id",
    retryAfter(10),
  ),
  unavailable: errorAnswer(503, "unavailable", "these activities may not be stored: report them again, under the same id", retryAfter(1)),
};

/** The room in which the bearer may report activities. */
export function awardedRoom(request: RouteRequest, identity: Identity): RoomId | HttpAnswer {
  const room = parseRoomId(roomParameter(request));
  if (room === undefined) return BAD_ROOM;
  if (!identity.rights.award || !opens(identity, room)) return NOT_AWARDING;
  return refuseRestricted(identity, room, "the user may not report activities of this room for a time") ?? room;
}

/** `kinds` are the kinds of activity that have points in the settings. */
export function reportedActivities({ body }: RouteRequest, kinds: readonly string[]): ReportedActivities | HttpAnswer {
  const reported = decodeJson(Body, body);
  if (reported === undefined) return BAD_BODY;
  const unknown = reported.activities.find(({ kind }) => !kinds.includes(kind));
  return unknown === undefined
    ? reported
    : errorAnswer(
        400,
        "unknown-kind",
        `no points are set for ${unknown.kind}: the kinds are ${kinds.join(", ")}; set COROOM_BOARD_KINDS to add more`,
      );
}

export function activitiesAnswer(outcome: ActivityOutcome): HttpAnswer {
  return OUTCOMES[outcome];
}
