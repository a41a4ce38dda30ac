/** Requests to read documents and their history, and to delete rooms: authorizes them, and builds the request to the document service. */

import {
  parseRoomId,
  parseTenantId,
  ROOM_ID_RULE,
  type RoomId,
  type RoomKey,
  roomKey,
  roomOf,
  TENANT_ID_RULE,
  type TenantId,
  tenantOf,
} from "../../shared/ids.ts";
import { type Identity, opens } from "../sessions/identity.ts";
import { errorAnswer, type HttpAnswer, isWithoutBody, retryAfter } from "./answers.ts";
import { admittedRoom, type Authority, OTHER_TENANT, refuseRestricted, ROOM_NOT_OPENED, scopeOf } from "./authorize.ts";
import { forwardedHeader, queryWith, roomParameter, type RouteRequest } from "./requests.ts";

/** The authorization covers only `path`, whose names are encoded. No other path may be requested. */
export type ServiceRequest = {
  readonly path: string;
  readonly tenant: TenantId;
  readonly headers?: Readonly<Record<string, string>>;
  readonly method?: "POST" | "PUT" | "DELETE";
  readonly body?: Uint8Array;
};

export const NO_DOCUMENT_SERVICE = errorAnswer(
  503,
  "unavailable",
  "no document service answers right now: try again in a moment. If this lasts, check the NATS servers, and that a document service runs",
  retryAfter(1),
);
export const NO_FIRST_CONTENT = errorAnswer(
  503,
  "no-first-content",
  "the application has not answered with the room's first content: try again. Its operator finds the cause in the logs of document services and gateways",
  retryAfter(2),
);
export const TOO_MANY_DOCUMENT_READS = errorAnswer(429, "rate-limited", "too many document reads: try again later", retryAfter(2));
export const TOO_MANY_HISTORY_READS = errorAnswer(429, "rate-limited", "too many history requests: try again later", retryAfter(2));
export const TOO_MANY_DELETIONS = errorAnswer(429, "rate-limited", "too many rooms deleted at once: continue later", retryAfter(1));
export const TOO_MANY_LISTS = errorAnswer(429, "rate-limited", "too many lists of rooms: ask for longer pages, less often", retryAfter(2));
export const TOO_MANY_STREAMS = errorAnswer(
  429,
  "rate-limited",
  "too many long answers are being sent: finish reading the ones you requested, then try again",
  retryAfter(5),
);
const NOT_A_VERSION_KEEPER = errorAnswer(403, "not-allowed", "only users who may write in the room keep and remove versions");
const NO_SUCH_ROOM = errorAnswer(404, "no-such-room", `${ROOM_ID_RULE}; ${TENANT_ID_RULE}`);

const READ_PARAMETERS = ["type", "minSeq", "format"];
const LIST_PARAMETERS = ["after", "prefix", "limit"];
const HISTORY_PARAMETERS = ["seq", "time", "from"];
/** Replaces the user id in a request of an operator, who has none. */
const OPERATOR = "";

/** The request for an edit that makes the room's first content. */
export function firstContentRequest(room: RoomKey): ServiceRequest {
  return { path: `${roomPath(roomOf(room))}/first-content`, tenant: tenantOf(room), method: "POST" };
}

/** Answered 409 if the room has edits. No application is asked. */
export function hasEditsRequest(room: RoomKey): ServiceRequest {
  return { path: `${roomPath(roomOf(room))}/first-content`, tenant: tenantOf(room) };
}

/** `place` is the part of the document: snapshot, document, text or diff. */
export function documentRead(
  request: RouteRequest,
  identity: Identity,
  place: string,
): (ServiceRequest & { readonly room: RoomId }) | HttpAnswer {
  const room = admittedRoom(request, identity);
  if (typeof room !== "string") return room;
  return {
    path: `${roomPath(room)}/${place}${queryWith(request.query, READ_PARAMETERS)}`,
    tenant: identity.tenant,
    headers: readHeaders(request),
    room,
  };
}

/** `needs`: whether the bearer needs the right to write. */
export function historyRequest(
  request: RouteRequest,
  identity: Identity,
  { place, needs, method }: { readonly place: string; readonly needs: "read" | "write"; readonly method?: "POST" | "DELETE" },
): (ServiceRequest & { readonly room: RoomId }) | HttpAnswer {
  const room = admittedRoom(request, identity);
  if (typeof room !== "string") return room;
  const { tenant, rights, restrictionIn } = identity;
  if (needs === "write" && (!rights.write || restrictionIn?.(roomKey(tenant, room)) !== undefined)) return NOT_A_VERSION_KEEPER;
  return {
    path: `${roomPath(room)}/${place}${queryWith(request.query, HISTORY_PARAMETERS)}`,
    tenant,
    room,
    ...(method === undefined ? {} : { method }),
    ...(method === "POST" ? { body: request.body } : {}),
  };
}

/** `user`: the key under which the rate of such requests is counted. */
type CountedRequest = ServiceRequest & { readonly user: string };

/** A list of the tenant's rooms, for operators, and for tokens with the right `admin` that open all rooms. */
export function roomListRequest({ query }: RouteRequest, authority: Authority): CountedRequest | HttpAnswer {
  const scope = scopeOf({ tenant: query.get("tenant") ?? undefined }, authority, "look");
  if ("status" in scope) return scope;
  return { path: `/v1/rooms${queryWith(query, LIST_PARAMETERS)}`, tenant: scope.tenant, user: authority?.user ?? OPERATOR };
}

/** `identity` undefined: an operator, whose query contains the tenant. A token may name only its own tenant. */
export function deletionRequest(request: RouteRequest, identity: Identity | undefined): CountedRequest | HttpAnswer {
  const room = parseRoomId(roomParameter(request));
  const tenant = parseTenantId(request.query.get("tenant") ?? identity?.tenant ?? "default");
  if (room === undefined || tenant === undefined) return NO_SUCH_ROOM;
  if (identity !== undefined && tenant !== identity.tenant) return OTHER_TENANT;
  const refusal = identity === undefined ? undefined : refuseDeletion(identity, room);
  return refusal ?? { path: roomPath(room), tenant, method: "DELETE", user: identity?.user ?? OPERATOR };
}

function refuseDeletion(identity: Identity, room: RoomId): HttpAnswer | undefined {
  if (!opens(identity, room)) return ROOM_NOT_OPENED;
  if (!identity.rights.admin) return errorAnswer(403, "not-allowed", "deleting a room needs a token whose claim `rights` contains `admin`");
  return refuseRestricted(identity, room, "the user may not delete this room for a time");
}

export function roomPath(room: RoomId): string {
  return `/v1/rooms/${encodeURIComponent(room)}`;
}

type RoomPosition = { readonly epoch: number; readonly seq: number } | undefined;

/** Whether an answer still contains all edits of the room. `before`: the room's position when the answer was requested. */
export function isAnswerCurrent({ headers }: HttpAnswer, before: RoomPosition, now: RoomPosition): boolean {
  return before !== undefined && now?.seq === before.seq && now.epoch === before.epoch && headers?.["x-coroom-seq"] === String(now.seq);
}

function readHeaders(request: RouteRequest): Record<string, string> {
  const ifNoneMatch = forwardedHeader(request, "if-none-match");
  return {
    ...(ifNoneMatch === "" ? {} : { "if-none-match": ifNoneMatch }),
    ...(acceptsGzip(request.header("accept-encoding")) ? { "x-coroom-accept": "gzip" } : {}),
  };
}

/** `*` counts for a coding that the header does not name (RFC 9110, 12.5.3). */
function acceptsGzip(acceptEncoding: string): boolean {
  const codings = acceptEncoding.split(",").map((part) => part.split(";").map((text) => text.trim().toLowerCase()));
  const coding = codings.find(([name]) => name === "gzip") ?? codings.find(([name]) => name === "*");
  return coding !== undefined && Number((coding[1] ?? "q=1").replace("q=", "")) > 0;
}

/** Headers of a service's answer that the client receives. */
const FORWARDED_HEADERS = [
  "content-type",
  "etag",
  "x-coroom-seq",
  "x-coroom-epoch",
  "x-coroom-last-edit",
  "cache-control",
  "retry-after",
  "vary",
  "content-security-policy",
];

/** A URL resolves `.` and `..` as steps, even if they are encoded. */
export const NO_SUCH_PATH = errorAnswer(
  404,
  "not-found",
  "a user or version `.` or `..` cannot be named in a path, because URLs resolve both as steps: read the list that contains it instead",
);

/** Whether the URL still has the authorized path. A URL resolves `.`, `..` and `\`, so it could lead to another room. */
export function isAuthorizedUrl(url: { readonly pathname: string }, path: string): boolean {
  return url.pathname === path.split("?")[0];
}

/** The answer to the client, made from a service's answer, without the body. */
export function forwardedAnswer(
  status: number,
  given: Readonly<Record<string, string | readonly string[] | undefined>>,
): { readonly status: number; readonly headers: Record<string, string>; readonly hasBody: boolean; readonly bodyBytes?: number } {
  const headers: Record<string, string> = {};
  for (const name of FORWARDED_HEADERS) {
    const value = given[name];
    if (typeof value === "string") headers[name] = value;
  }
  const encoding = given["x-coroom-encoding"];
  if (typeof encoding === "string") headers["content-encoding"] = encoding;
  const bytes = given["content-length"];
  const hasBody = !isWithoutBody(status) && bytes !== "0";
  return { status, headers, hasBody, ...(hasBody && bytes !== undefined ? { bodyBytes: Number(bytes) } : {}) };
}
