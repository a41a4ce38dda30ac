/**
 * What people who run rooms may do: see who is there, kick, hold back, ban, lift, and (operators) drain this gateway.
 * A token with the right `admin` may do so in its tenant and in the rooms it opens; for all of the tenant it opens `*`.
 * Not where its bearer is held back. Operators may everywhere. `gateway/openapi.json` describes each.
 */

import { z } from "zod";

import type { Sanction, Target } from "../../shared/bus/admin-messages.ts";
import type { Clock } from "../../shared/clock.ts";
import { parseUserId, type RoomKey, roomOf, type TenantId, tenantOf, type UnixMillis } from "../../shared/ids.ts";
import { clientAddressOf } from "../../shared/client-address.ts";
import { opens } from "../sessions/identity.ts";
import type { Orders } from "../ports.ts";
import type { SanctionsHost } from "../limits/sanctions-host.ts";
import { decodeParameter } from "./ask-services.ts";
import { type Authority, authorityOf, type Place, placeOf, readBody } from "./authority.ts";
import { errorAnswer, type HttpAnswer, type HttpQuestion, type HttpRoute, jsonAnswer } from "./http-routes.ts";
import type { HttpTokens } from "./http-tokens.ts";
import { isOperator } from "./operators.ts";

export type AdminPorts = {
  readonly tokens: HttpTokens;
  readonly orders: Orders;
  readonly sanctions: Pick<SanctionsHost, "all" | "impose">;
  /** Begins to drain this gateway, or goes on; how many connections are left. */
  readonly drain: () => number;
};

const SECONDS_MAX = 366 * 86_400;
const OF_ADDRESSES = errorAnswer(
  400,
  "bad-request",
  "an address is banned from everywhere: name a user to ban it from one room, or to let it only read",
);

const Who = z.strictObject({
  tenant: z.string().optional(),
  user: z.string().optional(),
  connection: z.string().max(128).optional(),
  address: z.string().optional(),
  room: z.string().optional(),
  level: z.enum(["banned", "read-only"]).default("banned"),
  seconds: z.int().positive().max(SECONDS_MAX).optional(),
  reason: z.string().max(200).default(""),
});
const Kicked = Who.pick({ tenant: true, user: true, connection: true, room: true });
const Imposed = Who.pick({ tenant: true, user: true, address: true, room: true, seconds: true, reason: true });
const Lifted = Who.pick({ tenant: true, user: true, address: true, room: true, level: true });
type Whom = Pick<z.output<typeof Who>, "user" | "address">;

export function adminRoutes(
  { tokens, orders, sanctions, drain }: AdminPorts,
  options: { internalSecret: string },
  { clock }: { clock: Clock },
): HttpRoute[] {
  /** With what was asked for read and allowed. */
  const forAdmins =
    <Body extends typeof Kicked | typeof Imposed | typeof Lifted>(
      schema: Body,
      answer: (who: z.output<Body>, place: Place, authority: Authority) => HttpAnswer | Promise<HttpAnswer>,
    ) =>
    async (question: HttpQuestion): Promise<HttpAnswer> => {
      const authority = await authorityOf(question, tokens, options);
      if ("status" in authority) return authority;
      const who = readBody(question, schema);
      if ("status" in who) return who;
      const place = placeOf(who, authority.of, "act");
      return "status" in place ? place : answer(who, place, authority.of);
    };

  const impose = (level: Sanction["level"]) =>
    forAdmins(Imposed, (who, { tenant, room }, authority) => {
      const target = targetOf(who, tenant, authority);
      if ("status" in target) return target;
      if (target.kind === "address" && (room !== undefined || level !== "banned")) return OF_ADDRESSES;
      if (who.seconds === undefined) return errorAnswer(400, "bad-request", "say for how long: seconds");
      const madeAt = clock.wallNow();
      const until = (madeAt + who.seconds * 1_000) as UnixMillis;
      sanctions.impose({ target, ...(room === undefined ? {} : { room }), level, lifted: false, until, madeAt, reason: who.reason });
      return jsonAnswer(200, { until: dateOf(until) });
    });

  const lift = forAdmins(Lifted, (who, { tenant, room }, authority) => {
    const { level } = who;
    const target = targetOf(who, tenant, authority);
    if ("status" in target) return target;
    const madeAt = clock.wallNow();
    const until = untilOf(sanctions.all, target, room, level, madeAt);
    if (until === undefined)
      return errorAnswer(
        404,
        "no-such-sanction",
        "nothing like that is in force: GET /v1/admin/bans (coroom bans) lists what is, and at which level",
      );
    sanctions.impose({ target, ...(room === undefined ? {} : { room }), level, lifted: true, until, madeAt, reason: "" });
    return jsonAnswer(200, { until: dateOf(until) });
  });

  const kick = forAdmins(Kicked, async ({ user, connection }, { tenant, room }) => {
    const named = user === undefined ? undefined : parseUserId(user);
    if (named === undefined && connection === undefined) return errorAnswer(400, "bad-request", "say whom: user or connection");
    const { kicked, gateways } = await orders.issue({
      kind: "kick",
      tenant,
      ...(named === undefined ? {} : { user: named }),
      ...(connection === undefined ? {} : { connection }),
      ...(room === undefined ? {} : { room }),
    });
    return jsonAnswer(200, { kicked, gateways });
  });

  const listMembers = async (question: HttpQuestion): Promise<HttpAnswer> => {
    const authority = await authorityOf(question, tokens, options);
    if ("status" in authority) return authority;
    const place = placeOf(
      { tenant: question.query.get("tenant") ?? undefined, room: decodeParameter(question.parameters[0] ?? "") },
      authority.of,
      "look",
    );
    if ("status" in place) return place;
    const { members, gateways } = await orders.issue({ kind: "list-members", room: place.room! });
    return jsonAnswer(200, { members, gateways });
  };

  const listBans = async (question: HttpQuestion): Promise<HttpAnswer> => {
    const authority = await authorityOf(question, tokens, options);
    if ("status" in authority) return authority;
    return jsonAnswer(200, { sanctions: sanctions.all.filter((sanction) => mayKnow(sanction, authority.of)).map(shown) });
  };

  return [
    { method: "post", path: "/v1/admin/kick", answer: kick },
    { method: "post", path: "/v1/admin/downgrade", answer: impose("read-only") },
    { method: "post", path: "/v1/admin/ban", answer: impose("banned") },
    { method: "post", path: "/v1/admin/lift", answer: lift },
    { method: "get", path: "/v1/admin/bans", answer: listBans },
    { method: "get", path: "/v1/admin/rooms/:room/members", answer: listMembers },
    {
      method: "post",
      path: "/v1/admin/drain",
      answer: (question) =>
        isOperator(question, options)
          ? jsonAnswer(202, { connections: drain() })
          : errorAnswer(401, "not-an-operator", "only operators drain a gateway: give COROOM_INTERNAL_SECRET as Authorization: Bearer"),
    },
  ];
}

function targetOf({ user, address }: Whom, tenant: TenantId, authority: Authority): Target | HttpAnswer {
  if (user !== undefined && address !== undefined) return errorAnswer(400, "bad-request", "say whom: user or address, one of the two");
  if (address !== undefined) {
    const place = clientAddressOf("", address);
    if (authority !== undefined) return errorAnswer(403, "not-allowed", "only operators ban addresses: others may share one");
    return place === undefined ? errorAnswer(400, "bad-request", "address: an IPv4 or IPv6 address") : { kind: "address", address: place };
  }
  const named = parseUserId(user ?? "");
  return named === undefined ? errorAnswer(400, "bad-request", "say whom: user, or address") : { kind: "user", tenant, user: named };
}

/** A lift lasts for as long as what it lifts would have: what people imposed, what gateways did, or both. */
function untilOf(
  all: readonly Sanction[],
  target: Target,
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

function mayKnow({ target, room }: Sanction, authority: Authority): boolean {
  if (authority === undefined) return true;
  if (target.kind === "address" || target.tenant !== authority.tenant) return false;
  return room === undefined ? authority.rooms.includes("*") : opens(authority, roomOf(room));
}

function shown({ target, room, level, until, reason }: Sanction): object {
  return { ...target, ...(room === undefined ? {} : { tenant: tenantOf(room), room: roomOf(room) }), level, until: dateOf(until), reason };
}

/** ISO 8601, as everywhere in answers. */
function dateOf(date: UnixMillis): string {
  return new Date(date).toISOString();
}
