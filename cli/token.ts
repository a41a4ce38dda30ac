/** Creates tokens for a local system (demo page, experiments, tests) and operator passes. */

import { SignJWT } from "jose";

import type { Values } from "../shared/settings/settings.ts";
import { localSecrets, roleSecrets } from "./secrets.ts";
import type { TokenClaims, tokenSettings, opsPassSettings } from "./command-settings.ts";
import { SettingError } from "../shared/settings/settings.ts";
import type { UnixMillis } from "../shared/ids.ts";
import { makeOperatorPass } from "../shared/io/operator-pass.ts";

/** Signs with the configured secret, or with the local system's secret. */
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

/** Each person who has seen a pass is an operator for this time. */
const SECONDS_MAX = 7 * 86_400;

/**
 * Signs a pass for the operations console with the configured secret or the local system's. No browser ever holds the
 * secret itself.
 */
export function operatorPass({ dataDir, operatorSecret, ttl }: Values<typeof opsPassSettings>): string {
  if (ttl > SECONDS_MAX)
    throw new SettingError(
      "the lifetime of a pass is too long. Set --ttl to at most 7d, because everybody who has the pass is an operator until it expires",
    );
  return makeOperatorPass(
    operatorSecret === "" ? roleSecrets(dataDir).operatorSecret : operatorSecret,
    (Date.now() + ttl * 1_000) as UnixMillis,
  );
}
