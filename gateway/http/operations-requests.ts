/** Requests of the operations console (pages of rooms, events, moves, drains), read from queries and bodies. */

import { z } from "zod";

import { LISTED_ROOMS_MAX, type RoomCursor, type RoomListRequest } from "../../shared/bus/fleet-messages.ts";
import { parseRoomKey, type RoomKey, type ServerId } from "../../shared/ids.ts";
import { parseWholeNumber } from "../../shared/limits/whole-number.ts";
import { userKey } from "../limits/quotas.ts";
import { errorAnswer, type HttpAnswer, retryAfter } from "./answers.ts";
import { type Authority, scopeOf } from "./authorize.ts";
import { readBody, type RouteRequest } from "./requests.ts";

const ROOMS_DEFAULT = 50;
const SEARCH_LENGTH_MAX = 128;
const SERVER_NAME = /^[A-Za-z0-9_-]{1,64}$/;
const BAD_CURSOR = errorAnswer(400, "bad-request", "after: use `next` of the previous page");
export const TOO_MANY_QUERIES = errorAnswer(
  429,
  "rate-limited",
  "too many requests about rooms and servers: ask less often",
  retryAfter(1),
);

const MoveBody = z.strictObject({
  tenant: z.string().optional(),
  room: z.string(),
  to: z.string().regex(SERVER_NAME, "a room server that GET /v1/admin/fleet lists"),
});
const DrainBody = z.strictObject({ server: z.string().regex(SERVER_NAME, "a room server or gateway that GET /v1/admin/fleet lists") });

/** The key under which the rate of requests is counted: all operators together, or one user. */
export function rateKey(authority: Authority): string {
  return authority === undefined ? "" : userKey(authority);
}

/** `limit` is the page size. Room servers are asked for one room more, which shows whether there is a next page. */
export function roomListRequest(
  { query }: Pick<RouteRequest, "query">,
  authority: Authority,
): { readonly list: RoomListRequest; readonly limit: number } | HttpAnswer {
  const scope = scopeOf({ tenant: query.get("tenant") ?? undefined }, authority, "look");
  if ("status" in scope) return scope;
  const [after, limit] = [query.get("after"), parseWholeNumber(query.get("limit") ?? String(ROOMS_DEFAULT))];
  const cursor = after === null ? undefined : parseCursor(after);
  if (after !== null && cursor === undefined) return BAD_CURSOR;
  if (limit === undefined || limit < 1 || limit > LISTED_ROOMS_MAX)
    return errorAnswer(400, "bad-request", `limit: a number from 1 to ${LISTED_ROOMS_MAX}, in decimal digits`);
  const coversAllTenants = authority === undefined && !query.has("tenant");
  const list = {
    ...(coversAllTenants ? {} : { tenant: scope.tenant }),
    search: (query.get("search") ?? "").slice(0, SEARCH_LENGTH_MAX),
    ...(cursor === undefined ? {} : { after: cursor }),
    limit: limit + 1,
  };
  return { list, limit };
}

/** The number of the newest event that the console has. */
export function eventsAfter({ query }: Pick<RouteRequest, "query">, authority: Authority): { readonly after: number } | HttpAnswer {
  const scope = scopeOf({}, authority, "look");
  if ("status" in scope) return scope;
  const after = parseWholeNumber(query.get("after") ?? "0");
  return after === undefined
    ? errorAnswer(400, "bad-request", "after: `last` of the previous answer, a number in decimal digits")
    : { after };
}

/** The newest slot that the console has. */
export function slotsAfter({ query }: Pick<RouteRequest, "query">): { readonly after: number; readonly process?: string } | HttpAnswer {
  const [after, process] = [parseWholeNumber(query.get("after") ?? "0"), query.get("process")];
  if (after === undefined)
    return errorAnswer(400, "bad-request", "after: the newest slot of the previous answer, a number in decimal digits");
  if (process !== null && !SERVER_NAME.test(process))
    return errorAnswer(400, "bad-request", "process: one that GET /v1/admin/vitals lists");
  return { after, ...(process === null ? {} : { process }) };
}

export function moveRequest(request: Pick<RouteRequest, "body">): { readonly room: RoomKey; readonly to: ServerId } | HttpAnswer {
  const body = readBody(request, MoveBody);
  if ("status" in body) return body;
  const scope = scopeOf(body, undefined, "act");
  return "status" in scope ? scope : { room: scope.room!, to: body.to as ServerId };
}

export function drainRequest(request: Pick<RouteRequest, "body">): { readonly server: ServerId } | HttpAnswer {
  const body = readBody(request, DrainBody);
  return "status" in body ? body : { server: body.server as ServerId };
}

/** The format in a query: participants, a colon, the room's key. */
export function cursorText({ participants, room }: RoomCursor): string {
  return `${participants}:${room}`;
}

export function parseCursor(text: string): RoomCursor | undefined {
  const [, participants, key = ""] = /^(\d{1,9}):(.+)$/.exec(text) ?? [];
  const room = parseRoomKey(key);
  return participants === undefined || room === undefined ? undefined : { participants: Number(participants), room };
}
