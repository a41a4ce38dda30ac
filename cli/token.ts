/** Creates tokens for a local system (demo page, experiments, tests) and operator passes. */

import { parseTenantId, parseUserId, TENANT_ID_RULE, type UnixMillis, USER_ID_RULE } from "../shared/ids.ts";
import { makeOperatorPass } from "../shared/io/operator-pass.ts";
import { SettingError, type Values } from "../shared/settings/settings.ts";
import { SECRET_BYTES_MIN } from "../gateway/config.ts";
import type { TokenClaims, tokenSettings, opsPassSettings } from "./command-settings.ts";
import { startedRoleSecrets, startedSecrets } from "./secrets.ts";

/** A gateway refuses a longer name. */
const NAME_CHARACTERS_MAX = 128;
const JWT_SECRET_GIVEN = "set COROOM_JWT_SECRET (--jwt-secret) to the gateways' secret";
const OPERATOR_SECRET_GIVEN = "set COROOM_OPERATOR_SECRET (--operator-secret) to the gateways' secret";

/**
 * Signs with the configured secret, or with the local system's secret. Throws SettingError when there is no
 * secret, and for a token that every gateway would refuse.
 */
export async function localToken({ dataDir, jwtSecret: configured, ...claims }: Values<typeof tokenSettings>): Promise<string> {
  const jwtSecret = configured === "" ? startedSecrets(dataDir, JWT_SECRET_GIVEN).jwtSecret : configured;
  if (parseTenantId(claims.tenant) === undefined) throw new SettingError(`--tenant=${claims.tenant} is no tenant: ${TENANT_ID_RULE}`);
  if (parseUserId(claims.user) === undefined) throw new SettingError(`--user=${claims.user} is no user id: ${USER_ID_RULE}`);
  if (claims.name.length > NAME_CHARACTERS_MAX) throw new SettingError(`--name is too long: use at most ${NAME_CHARACTERS_MAX} characters`);
  if (claims.room.length === 0) throw new SettingError("--room names no room: set it to a room id, or to * for all rooms of the tenant");
  if (new TextEncoder().encode(jwtSecret).length < SECRET_BYTES_MIN)
    throw new SettingError(`COROOM_JWT_SECRET is too short: set it to the gateways' secret, at least ${SECRET_BYTES_MIN} bytes`);
  return makeToken(claims, jwtSecret);
}

export async function makeToken(claims: TokenClaims, jwtSecret: string): Promise<string> {
  const { SignJWT } = await import("jose"); // Every role loads this file, and few processes make tokens.
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
    operatorSecret === "" ? startedRoleSecrets(dataDir, OPERATOR_SECRET_GIVEN).operatorSecret : operatorSecret,
    (Date.now() + ttl * 1_000) as UnixMillis,
  );
}
