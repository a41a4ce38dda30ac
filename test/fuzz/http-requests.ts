/**
 * Decisions of the gateway's HTTP API. An input is the text of one request: parameters, query and headers, one per
 * line, then the body. The target makes each decision for the request, under each authority.
 */

import { assert } from "../../shared/assert.ts";
import { type Millis, parseRoomId, type RoomId, tenantOf, type TenantId, type UnixMillis, type UserId } from "../../shared/ids.ts";
import { kickCommand, liftRequested, sanctionRequested, scopeInPath } from "../../gateway/http/admin-requests.ts";
import { type HttpAnswer, statusLine } from "../../gateway/http/answers.ts";
import type { Authority } from "../../gateway/http/authorize.ts";
import {
  awardedRoom,
  BOARD_PARTS,
  boardPath,
  rankedRoomPath,
  reportedActivities,
  tenantPagePath,
} from "../../gateway/http/board-requests.ts";
import { deletionRequest, documentRead, historyRequest, isAuthorizedUrl } from "../../gateway/http/document-requests.ts";
import { CREATE, EDIT, makingRequest, refuseContentType, RESTORE, writerOf } from "../../gateway/http/document-writes.ts";
import { editNameOf } from "../../gateway/http/idempotency.ts";
import { cursorText, drainRequest, eventsAfter, moveRequest, roomListRequest } from "../../gateway/http/operations-requests.ts";
import { requestToken, type RouteRequest } from "../../gateway/http/requests.ts";
import { type Identity, opens } from "../../gateway/sessions/identity.ts";
import { clientAddressOf } from "../../shared/limits/client-address.ts";

const NOW = 1e12 as UnixMillis;
const ALL_RIGHTS = { read: true, write: true, admin: true, award: true, boards: true };
const WRITER: Identity = {
  tenant: "acme" as TenantId,
  user: "ann/../bob" as UserId,
  name: "Ann",
  rooms: ["notes", "team/*"],
  rights: { ...ALL_RIGHTS, admin: false },
  expiresAt: 1 as Millis,
};
const IDENTITIES: readonly Identity[] = [WRITER, { ...WRITER, rooms: ["*"], rights: ALL_RIGHTS }];

export function seeds(): Uint8Array[] {
  const texts = [
    "notes\n\n\n",
    'notes\ntype=text:a&minSeq=4&token=x\nif-none-match: "1-2"\naccept-encoding: br, gzip;q=0.5\n\n',
    "team%2Fplan bob\nafter=3:acme.notes&limit=20&search=N&tenant=acme\nauthorization: Bearer a.b.c\n\n",
    "%2e%2e\nseq=3&time=2026-01-01\nidempotency-key: k1\ncontent-type: application/octet-stream\n\n\u0000\u0001",
    'notes\n\n\n{"user":"ann","room":"notes","seconds":60,"reason":"r"}',
    'notes\n\n\n{"address":"::ffff:10.0.0.1","seconds":60}',
    'notes\n\n\n{"connection":"c1","tenant":"acme"}',
    'notes\n\n\n{"id":"a.1","activities":[{"user":"ann","kind":"comment","times":2}]}',
    'notes\n\n\n{"room":"notes","to":"server-1"}',
    'notes\n\n\n{"server":"server-1"}',
    'notes\n\n\n{"user":"ann","level":"read-only"}',
  ];
  return texts.map((text) => new TextEncoder().encode(text));
}

/** True: at least one decision accepted the request. */
export function fuzz(input: Uint8Array): boolean {
  const request = requestOf(input);
  clientAddressOf(request.header("peer"), request.header("forwarded"));
  requestToken(request);
  const decisions = IDENTITIES.map((identity) => decisionsFor(request, identity)).concat(decisionsOf(request, undefined));
  return decisions.some(Boolean);
}

function decisionsFor(request: RouteRequest, identity: Identity): boolean {
  const asked = [
    documentRead(request, identity, "snapshot"),
    historyRequest(request, identity, { place: "versions", needs: "write", method: "POST" }),
    deletionRequest(request, identity),
    ...Object.values(BOARD_PARTS).map((part) => boardPath(request, identity, part)),
  ].map((decision) => checkPath(decision, request, identity));
  checkPath(rankedRoomPath(request, identity), request, undefined);
  for (const board of ["people", "rooms"] as const) checkPath(tenantPagePath(board, request, identity), request, undefined);
  const awarded = awardedRoom(request, identity);
  assert(typeof awarded === "string" ? opens(identity, awarded) : isAnswer(awarded), "activities are reported in rooms of the token");
  return [...asked, checkWrites(request, identity), decisionsOf(request, identity)].some(Boolean);
}

/**
 * Checks a request to another tier. It must name a room of the token, have a path that no URL parser changes, and not
 * contain the token.
 */
function checkPath(decision: { readonly path: string } | HttpAnswer, request: RouteRequest, identity: Identity | undefined): boolean {
  if ("status" in decision) return checkAnswer(decision);
  const { path } = decision;
  const [, query = ""] = /\?(.*)$/.exec(path) ?? [];
  assert(!new URLSearchParams(query).has("token"), "no token reaches another tier");
  assert(!/[\r\n #]/.test(path), "a path is one line of a request");
  const url = new URL(`http://service${path}`);
  if (!isAuthorizedUrl(url, path)) return false;
  const [, room] = /^\/v1\/rooms\/([^/]*)/.exec(url.pathname) ?? [];
  if (identity === undefined || room === undefined) return true;
  const named = parseRoomId(decodeURIComponent(room));
  assert(named !== undefined && opens(identity, named), "a request names a room of the token");
  assert(decodeURIComponent(request.parameters[0] ?? "") === named, "a request names the room of its path");
  return true;
}

function checkWrites(request: RouteRequest, identity: Identity): boolean {
  const writer = writerOf(request, identity);
  if ("status" in writer) return checkAnswer(writer);
  refuseContentType(request);
  for (const plan of [EDIT, CREATE, RESTORE]) {
    checkPath(makingRequest(writer, plan, request), request, identity);
    const naming = { digest: (of: string | Uint8Array) => `${"0".repeat(40)}${of.length}`, number: () => 7, randomKey: () => "random" };
    const name = editNameOf(request, plan, naming);
    assert(name.key.length === 32 && name.counter > 2 ** 32, "an edit over HTTP has a key and a counter");
  }
  return true;
}

function decisionsOf(request: RouteRequest, authority: Authority): boolean {
  const kick = kickCommand(request, authority);
  const sanction = sanctionRequested(request, "banned", authority, NOW);
  const lift = liftRequested(request, [], authority, NOW);
  const rooms = roomListRequest(request, authority);
  const scope = scopeInPath(request, authority);
  const activities = reportedActivities(request, ["comment"]);
  const others = [eventsAfter(request, authority), moveRequest(request), drainRequest(request)];
  for (const decision of [kick, sanction, lift, rooms, scope, activities, ...others]) if ("status" in decision) checkAnswer(decision);
  if (authority !== undefined) {
    assert(!("tenant" in kick) || kick.tenant === authority.tenant, "a kick stays in its tenant");
    assert(
      !("target" in sanction) || (sanction.target.kind === "user" && sanction.target.tenant === authority.tenant),
      "a ban stays in its tenant",
    );
    assert(!("room" in scope) || scope.room === undefined || tenantOf(scope.room) === authority.tenant, "a scope stays in its tenant");
    assert(!("list" in rooms) || rooms.list.tenant === authority.tenant, "a list of rooms stays in its tenant");
  }
  if ("target" in sanction) assert(sanction.until > NOW, "a ban ends after it begins");
  if ("list" in rooms && rooms.list.after !== undefined)
    assert(cursorText(rooms.list.after).length > 2, "a cursor is written as it is read");
  return [kick, sanction, rooms].some((decision) => !("status" in decision));
}

function checkAnswer(answer: HttpAnswer): false {
  assert(!statusLine(answer.status).endsWith("Status") && answer.status >= 400, "a refusal has a status of HTTP");
  for (const value of Object.values(answer.headers ?? {})) assert(!/[\r\n]/.test(value), "a header is one line");
  assert(typeof answer.body === "string" && "error" in (JSON.parse(answer.body) as object), "a refusal states why");
  return false;
}

function isAnswer(decision: HttpAnswer | RoomId): boolean {
  return typeof decision !== "string" && !checkAnswer(decision);
}

function requestOf(input: Uint8Array): RouteRequest {
  const text = Buffer.from(input).toString("latin1");
  const [head = "", ...rest] = text.split("\n\n");
  const [parameters = "", query = "", ...headers] = head.split("\n");
  const named = new Map(headers.map((line) => [line.split(": ")[0]!, line.split(": ").slice(1).join(": ")]));
  const body = rest.join("\n\n");
  return {
    path: `/v1/rooms/${parameters}`,
    parameters: parameters.split(" "),
    query: new URLSearchParams(query),
    header: (name) => named.get(name) ?? "",
    address: undefined,
    body: new Uint8Array(Buffer.from(body.replace(/^\n/, ""), "latin1")),
    signal: new AbortController().signal,
  };
}
