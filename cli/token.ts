/** Makes the tokens that a local system accepts: for the demo page, for trying things out, for tests. */

import { SignJWT } from "jose";

import type { TokenClaims } from "./token-settings.ts";

export async function makeToken(claims: TokenClaims, jwtSecret: string): Promise<string> {
  return new SignJWT({ tenant: claims.tenant, name: claims.name === "" ? claims.user : claims.name, rooms: claims.room, rights: claims.rights })
    .setProtectedHeader({ alg: "HS256" })
    .setSubject(claims.user)
    .setIssuedAt()
    .setExpirationTime(`${claims.ttl}s`)
    .sign(new TextEncoder().encode(jwtSecret));
}
