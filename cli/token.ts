/** Makes the tokens that a local system accepts: for the demo page, for trying things out, for tests. */

import { SignJWT } from "jose";

import { positiveInteger, SettingError, type Settings, text, list, type Values } from "../shared/config.ts";

export const tokenSettings = {
  room: { parse: list, meaning: "rooms the token opens, comma-separated; a trailing * stands for the rest of a name" },
  user: { parse: text, meaning: "id of the user" },
  name: { parse: text, fallback: "", meaning: "name shown to others; the user's id by default" },
  rights: { parse: rights, fallback: ["read", "write"], meaning: "read, write, admin, award, comma-separated; award: to tell of activities that are worth points, for backends" },
  tenant: { parse: text, fallback: "default", meaning: "the tenant whose rooms they are" },
  ttl: { parse: duration, fallback: 3600, meaning: "how long it is valid: 90s, 15m, 1h, 7d" },
} as const satisfies Settings;

export type TokenClaims = Values<typeof tokenSettings>;

export async function makeToken(claims: TokenClaims, jwtSecret: string): Promise<string> {
  return new SignJWT({ tenant: claims.tenant, name: claims.name === "" ? claims.user : claims.name, rooms: claims.room, rights: claims.rights })
    .setProtectedHeader({ alg: "HS256" })
    .setSubject(claims.user)
    .setIssuedAt()
    .setExpirationTime(`${claims.ttl}s`)
    .sign(new TextEncoder().encode(jwtSecret));
}

const RIGHTS = ["read", "write", "admin", "award"];

function rights(raw: string): readonly string[] {
  const named = list(raw);
  if (named.length === 0 || named.some((right) => !RIGHTS.includes(right))) throw new SettingError(`must be out of ${RIGHTS.join(", ")}`);
  return named;
}

/** Seconds. */
export function duration(raw: string): number {
  const match = /^(\d+)([smhd])$/.exec(raw);
  if (match === null) throw new SettingError("must be a number and a unit: 90s, 15m, 1h, 7d");
  return positiveInteger(match[1]!) * { s: 1, m: 60, h: 3600, d: 86_400 }[match[2] as "s" | "m" | "h" | "d"];
}
