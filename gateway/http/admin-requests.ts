/**
 * Reads administration requests (kicks, sanctions, lifts, lists) from their bodies, and checks them against the
 * authority of the sender.
 */

import { z } from "zod";

import type { AdminCommand, Sanction, SanctionTarget } from "../../shared/bus/admin-messages.ts";
import { displayText } from "../../shared/display-text.ts";
import { parseUserId, type RoomKey, roomOf, type TenantId, tenantOf, type UnixMillis, USER_ID_RULE } from "../../shared/ids.ts";
import { clientAddressOf } from "../../shared/limits/client-address.ts";
import { opens } from "../sessions/identity.ts";
import { errorAnswer, type HttpAnswer, isoDate } from "./answers.ts";
import { type AdminScope, type Authority, scopeOf } from "./authorize.ts";
import { readBody, roomParameter, type RouteRequest } from "./requests.ts";

const SECONDS_MAX = 366 * 86_400;

const AdminBody = z.strictObject({
  tenant: z.string().optional(),
  user: z.string().optional(),
  connection: z.string().max(128).optional(),
  address: z.string().optional(),
  room: z.string().optional(),
  level: z.enum(["banned", "read-only"]).default("banned"),
  seconds: z.int().positive().max(SECONDS_MAX).optional(),
  reason: z.string().max(200).transform(displayText).default(""),
});
const KickBody = AdminBody.pick({ tenant: true, user: true, connection: true, room: true });
const SanctionBody = AdminBody.pick({ tenant: true, user: true, address: true, room: true, seconds: true, reason: true });
const LiftBody = AdminBody.pick({ tenant: true, user: true, address: true, room: true, level: true });

const NO_CULPRIT = errorAnswer(400, "bad-request", "name a user or an address");
const TWO_CULPRITS = errorAnswer(400, "bad-request", "name a user or an address, not both");
const BAN_OF_ADDRESS_ONLY = errorAnswer(
  400,
  "bad-request",
  "an address can only be banned from everywhere: name a user to ban it from one room, or to make it read-only",
);
const NO_SUCH_SANCTION = errorAnswer(
  404,
  "no-such-sanction",
  "no such sanction is in force: GET /v1/admin/bans (coroom bans) lists the sanctions and their levels",
);
export const NOT_AN_OPERATOR_TO_DRAIN = errorAnswer(
  401,
  "not-an-operator",
  "only operators drain a gateway: send COROOM_OPERATOR_SECRET as Authorization: Bearer",
);

export function kickCommand(request: RouteRequest, authority: Authority): (AdminCommand & { kind: "kick" }) | HttpAnswer {
  const body = readScoped(request, KickBody, authority);
  if ("status" in body) return body;
  const { tenant, room } = body.scope;
  const { user, connection } = body.fields;
  const named = user === undefined ? undefined : parseUserId(user);
  if (user !== undefined && named === undefined) return errorAnswer(400, "bad-request", `user: ${USER_ID_RULE}`); // An invalid user may be meant to narrow the request.
  if (named === undefined && connection === undefined) return errorAnswer(400, "bad-request", "name a user or a connection");
  return {
    kind: "kick",
    tenant,
    ...(named === undefined ? {} : { user: named }),
    ...(connection === undefined ? {} : { connection }),
    ...(room === undefined ? {} : { room }),
  };
}

export function sanctionRequested(
  request: RouteRequest,
  level: Sanction["level"],
  authority: Authority,
  madeAt: UnixMillis,
): Sanction | HttpAnswer {
  const body = readScoped(request, SanctionBody, authority);
  if ("status" in body) return body;
  const { room, tenant } = body.scope;
  const { seconds, reason } = body.fields;
  const target = targetOf(body.fields, tenant, authority);
  if ("status" in target) return target;
  if (target.kind === "address" && (room !== undefined || level !== "banned")) return BAN_OF_ADDRESS_ONLY;
  if (seconds === undefined) return errorAnswer(400, "bad-request", "seconds: missing; a sanction needs a duration");
  const until = (madeAt + seconds * 1_000) as UnixMillis;
  return { target, ...(room === undefined ? {} : { room }), level, lifted: false, until, madeAt, reason };
}

/** `all` are the sanctions in force. */
export function liftRequested(
  request: RouteRequest,
  all: readonly Sanction[],
  authority: Authority,
  madeAt: UnixMillis,
): Sanction | HttpAnswer {
  const body = readScoped(request, LiftBody, authority);
  if ("status" in body) return body;
  const { room, tenant } = body.scope;
  const { level } = body.fields;
  const target = targetOf(body.fields, tenant, authority);
  if ("status" in target) return target;
  const until = liftedUntil(all, target, room, level, madeAt);
  if (until === undefined) return NO_SUCH_SANCTION;
  return { target, ...(room === undefined ? {} : { room }), level, lifted: true, until, madeAt, reason: "" };
}

/** The scope of a request that names its room in the path and its tenant in the query. */
export function scopeInPath(request: RouteRequest, authority: Authority): AdminScope | HttpAnswer {
  return scopeOf({ tenant: request.query.get("tenant") ?? undefined, room: roomParameter(request) }, authority, "look");
}

export function sanctionsShown(all: readonly Sanction[], authority: Authority): object[] {
  return all.filter((sanction) => maySee(sanction, authority)).map(sanctionShown);
}

function readScoped<Body extends typeof KickBody | typeof SanctionBody | typeof LiftBody>(
  request: RouteRequest,
  schema: Body,
  authority: Authority,
): { readonly fields: z.output<Body>; readonly scope: AdminScope } | HttpAnswer {
  const fields = readBody(request, schema);
  if ("status" in fields) return fields;
  const scope = scopeOf(fields, authority, "act");
  return "status" in scope ? scope : { fields, scope };
}

function targetOf(
  { user, address }: Pick<z.output<typeof AdminBody>, "user" | "address">,
  tenant: TenantId,
  authority: Authority,
): SanctionTarget | HttpAnswer {
  if (user !== undefined && address !== undefined) return TWO_CULPRITS;
  if (address !== undefined) {
    const parsed = clientAddressOf("", address);
    if (authority !== undefined) return errorAnswer(403, "not-allowed", "only operators ban addresses: several users may share one");
    return parsed === undefined
      ? errorAnswer(400, "bad-request", "address: an IPv4 or IPv6 address")
      : { kind: "address", address: parsed };
  }
  const named = parseUserId(user ?? "");
  return named === undefined ? NO_CULPRIT : { kind: "user", tenant, user: named };
}

/**
 * A lift lasts as long as the sanctions that it lifts, whether people or gateways imposed them. Undefined: there is no
 * sanction to lift.
 */
function liftedUntil(
  all: readonly Sanction[],
  target: SanctionTarget,
  room: RoomKey | undefined,
  level: Sanction["level"],
  now: UnixMillis,
): UnixMillis | undefined {
  const lifted = all.filter(
    (sanction) => JSON.stringify([sanction.target, sanction.room, sanction.level]) === JSON.stringify([target, room, level]),
  );
  const until = Math.max(now, ...lifted.map((sanction) => sanction.until)) as UnixMillis;
  return until === now ? undefined : until;
}

function maySee({ target, room }: Sanction, authority: Authority): boolean {
  if (authority === undefined) return true;
  if (target.kind === "address" || target.tenant !== authority.tenant) return false;
  return room === undefined ? authority.rooms.includes("*") : opens(authority, roomOf(room));
}

function sanctionShown({ target, room, level, until, reason }: Sanction): object {
  return { ...target, ...(room === undefined ? {} : { tenant: tenantOf(room), room: roomOf(room) }), level, until: isoDate(until), reason };
}
