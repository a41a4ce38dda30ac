/**
 * Decides which HTTP requests a sender may make. An operator may do everything. A token with the right `admin` is valid
 * in its tenant and in the rooms that it opens, except where a sanction restricts its bearer.
 */

import type { Sanction } from "../../shared/bus/admin-messages.ts";
import {
  parseRoomId,
  parseTenantId,
  ROOM_ID_RULE,
  roomKey,
  type RoomId,
  type RoomKey,
  TENANT_ID_RULE,
  type TenantId,
} from "../../shared/ids.ts";
import { withReason } from "../limits/sanctions.ts";
import { admit, type Identity, opens, type TokenVerdict } from "../sessions/identity.ts";
import { errorAnswer, type HttpAnswer, retryAfter } from "./answers.ts";
import { type RouteRequest, roomParameter } from "./requests.ts";

/** Undefined: an operator. */
export type Authority = Identity | undefined;
/** The scope of an admin request. Without a room: the whole tenant. */
export type AdminScope = { readonly tenant: TenantId; readonly room: RoomKey | undefined };
type NamedScope = { readonly tenant?: string | undefined; readonly room?: string | undefined };

export const NO_TOKEN = errorAnswer(401, "no-token", "send the token as Authorization: Bearer, or as ?token=");
export const NOT_AN_OPERATOR = errorAnswer(
  401,
  "not-an-operator",
  "only operators may do this: send COROOM_OPERATOR_SECRET, or a pass made from it (coroom ops pass), as Authorization: Bearer",
);
const UNCHECKED = errorAnswer(503, "unavailable", "tokens cannot be checked right now: try again in a moment", retryAfter(1));
const ADMIN_RIGHT_MISSING = errorAnswer(403, "not-allowed", "this needs a token whose claim `rights` contains `admin`");
export const OTHER_TENANT = errorAnswer(
  403,
  "not-allowed",
  "the token belongs to another tenant: leave out `tenant`, or send a token of that tenant",
);
export const ROOM_NOT_OPENED = errorAnswer(
  403,
  "not-allowed",
  "the token does not open this room: request a token whose claim `rooms` names it",
);
const WHOLE_TENANT = errorAnswer(
  403,
  "not-allowed",
  "for the whole tenant the token must open the rooms `*`: name a room that the token opens",
);
const RESTRICTED = "the bearer is banned or read-only here: ask another bearer of the right `admin`, or an operator";

/** The token's identity, or the refusal of an invalid token. */
export function identityFrom(verdict: TokenVerdict): Identity | HttpAnswer {
  switch (verdict.kind) {
    case "valid":
      return verdict.identity;
    case "expired":
      return errorAnswer(401, "token-expired", "the token has expired: request a new token");
    case "refused":
      return errorAnswer(401, "token-refused", `the token was refused: ${verdict.why}`);
    case "unchecked":
      return UNCHECKED;
  }
}

/** A banned bearer is refused like an invalid token. `restrictionIn` refuses the bearer in single rooms. */
export function verdictUnderSanctions(
  verdict: TokenVerdict,
  sanctions: {
    readonly banOf: (tenant: TenantId, user: Identity["user"]) => Sanction | undefined;
    readonly restriction: (tenant: TenantId, user: Identity["user"], room: RoomKey | undefined) => Sanction | undefined;
  },
): TokenVerdict {
  if (verdict.kind !== "valid") return verdict;
  const { tenant, user } = verdict.identity;
  const ban = sanctions.banOf(tenant, user);
  if (ban !== undefined) return { kind: "refused", why: withReason("its bearer is banned for a time", ban) };
  return { kind: "valid", identity: { ...verdict.identity, restrictionIn: (room) => sanctions.restriction(tenant, user, room) } };
}

export function adminFrom(identity: Identity | HttpAnswer): { readonly of: Authority } | HttpAnswer {
  if ("status" in identity) return identity;
  return identity.rights.admin ? { of: identity } : ADMIN_RIGHT_MISSING;
}

/** The scope of a request, if the authority covers it. A read-only bearer may only read. A banned bearer may do nothing. */
export function scopeOf(named: NamedScope, authority: Authority, purpose: "look" | "act"): AdminScope | HttpAnswer {
  const scope = parseScope(named, authority);
  if ("status" in scope) return scope;
  const restriction = authority?.restrictionIn?.(scope.room);
  return restriction === undefined || (purpose === "look" && restriction.level === "read-only")
    ? scope
    : errorAnswer(403, "not-allowed", withReason(RESTRICTED, restriction));
}

function parseScope(named: NamedScope, authority: Authority): AdminScope | HttpAnswer {
  const tenant = named.tenant === undefined ? (authority?.tenant ?? parseTenantId("default")) : parseTenantId(named.tenant);
  if (tenant === undefined) return errorAnswer(400, "bad-request", TENANT_ID_RULE);
  if (authority !== undefined && tenant !== authority.tenant) return OTHER_TENANT;
  if (named.room === undefined) {
    const coversTenant = authority === undefined || authority.rooms.includes("*");
    return coversTenant ? { tenant, room: undefined } : WHOLE_TENANT;
  }
  const room = parseRoomId(named.room);
  if (room === undefined) return errorAnswer(400, "bad-request", `room: ${ROOM_ID_RULE}`);
  if (authority !== undefined && !opens(authority, room)) return ROOM_NOT_OPENED;
  return { tenant, room: roomKey(tenant, room) };
}

/** The room that the path names, if the token opens it. */
export function admittedRoom(request: Pick<RouteRequest, "parameters">, identity: Identity): RoomId | HttpAnswer {
  const room = parseRoomId(roomParameter(request));
  if (room === undefined) return errorAnswer(404, "no-such-room", ROOM_ID_RULE);
  const admission = admit(identity, room);
  return admission.kind === "refused" ? errorAnswer(403, "not-allowed", admission.why) : room;
}

/** The refusal of a bearer who is restricted in the room. `refusal` names what the bearer may not do. */
export function refuseRestricted(identity: Identity, room: RoomId, refusal: string): HttpAnswer | undefined {
  const restriction = identity.restrictionIn?.(roomKey(identity.tenant, room));
  return restriction === undefined ? undefined : errorAnswer(403, "not-allowed", withReason(refusal, restriction));
}
