/** On whose authority something is asked that is for people who run rooms, and where that holds: operators everywhere, a token with the right `admin` in its tenant and the rooms it opens. */

import { z } from "zod";

import { because } from "../limits/because.ts";
import { parseRoomId, parseTenantId, roomKey, type RoomKey, type TenantId } from "../../shared/ids.ts";
import { type Identity, opens } from "../sessions/identity.ts";
import { identify } from "./ask-services.ts";
import { errorAnswer, type HttpAnswer, type HttpQuestion } from "./http-routes.ts";
import type { HttpTokens } from "./http-tokens.ts";
import { isOperator } from "./operators.ts";

/** Undefined: an operator, who may everywhere. */
export type Authority = Identity | undefined;
/** Answers whoever was found to be allowed to ask. */
export type AuthorizedAnswer = (question: HttpQuestion, authority: Authority) => Promise<HttpAnswer>;
export type Place = { readonly tenant: TenantId; readonly room: RoomKey | undefined };
export type NamedPlace = { readonly tenant?: string | undefined; readonly room?: string | undefined };

const HELD_BACK = "who is banned or may only read here does not run it: have another do this who has the right `admin`, or an operator";

export async function authorityOf(
  question: HttpQuestion,
  tokens: HttpTokens,
  options: { internalSecret: string },
): Promise<{ readonly of: Authority } | HttpAnswer> {
  if (isOperator(question, options)) return { of: undefined };
  const identity = await identify(question, tokens);
  if ("status" in identity) return identity;
  return identity.rights.admin ? { of: identity } : errorAnswer(403, "not-allowed", "this needs a token whose claim `rights` has `admin`");
}

/** Where it is to hold, if that is for this authority to say. Whoever may only read there looks, and does nothing; whoever is banned does neither. */
export function placeOf(named: NamedPlace, authority: Authority, what: "look" | "act"): Place | HttpAnswer {
  const place = placeIn(named, authority);
  if ("status" in place) return place;
  const restriction = authority?.restrictionIn?.(place.room);
  return restriction === undefined || (what === "look" && restriction.level === "read-only")
    ? place
    : errorAnswer(403, "not-allowed", because(HELD_BACK, restriction));
}

function placeIn(named: NamedPlace, authority: Authority): Place | HttpAnswer {
  const tenant = named.tenant === undefined ? (authority?.tenant ?? parseTenantId("default")) : parseTenantId(named.tenant);
  if (tenant === undefined) return errorAnswer(400, "bad-request", "tenant: letters, digits, _ and -");
  if (authority !== undefined && tenant !== authority.tenant) return errorAnswer(403, "not-allowed", "the token is of another tenant");
  if (named.room === undefined) {
    const isForAll = authority === undefined || authority.rooms.includes("*");
    return isForAll
      ? { tenant, room: undefined }
      : errorAnswer(403, "not-allowed", "for all of the tenant the token must open the rooms `*`: name a room that it opens");
  }
  const room = parseRoomId(named.room);
  if (room === undefined) return errorAnswer(400, "bad-request", "room: 1 to 128 characters without control characters");
  if (authority !== undefined && !opens(authority, room)) return errorAnswer(403, "not-allowed", "the token does not open this room");
  return { tenant, room: roomKey(tenant, room) };
}

/** What was asked for, read by a strict schema: what it does not know might narrow down who is meant. Or what is wrong with it. */
export function readBody<Body extends z.ZodObject>({ body }: HttpQuestion, schema: Body): z.output<Body> | HttpAnswer {
  try {
    const { data, error } = schema.safeParse(JSON.parse(new TextDecoder().decode(body)), { reportInput: true });
    const takes = Object.keys(schema.shape).join(", ");
    return data ?? errorAnswer(400, "bad-request", error!.issues.map((issue) => wrong(issue, takes)).join("; "));
  } catch (error) {
    if (error instanceof SyntaxError) return errorAnswer(400, "bad-request", "the body is no JSON");
    throw error;
  }
}

function wrong(issue: z.core.$ZodIssue, takes: string): string {
  if (issue.code === "unrecognized_keys") return `${issue.keys.join(", ")}: not known here, which takes ${takes}`;
  const name = issue.path.join(".");
  if (name === "") return `the body is to be a JSON object of ${takes}`;
  return `${name}: ${issue.input === undefined ? "missing" : issue.message}`;
}
