/** Makes the tokens that a local system accepts: for the demo page, for trying things out, for tests. */

import { SignJWT } from "jose";

import type { Values } from "../shared/config.ts";
import { localSecrets } from "./secrets.ts";
import type { TokenClaims, tokenSettings } from "./token-settings.ts";

/** Signed with the secret that was given, or the local system's. */
export function localToken({ dataDir, jwtSecret, ...claims }: Values<typeof tokenSettings>): Promise<string> {
  return makeToken(claims, jwtSecret === "" ? localSecrets(dataDir).jwtSecret : jwtSecret);
}

export async function makeToken(claims: TokenClaims, jwtSecret: string): Promise<string> {
  return new SignJWT({
    tenant: claims.tenant,
    name: claims.name === "" ? claims.user : claims.name,
    rooms: claims.room,
    rights: claims.rights,
  })
    .setProtectedHeader({ alg: "HS256" })
    .setSubject(claims.user)
    .setIssuedAt()
    .setExpirationTime(`${claims.ttl}s`)
    .sign(new TextEncoder().encode(jwtSecret));
}
