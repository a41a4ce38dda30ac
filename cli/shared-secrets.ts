/**
 * Secrets that several roles must share. A system that runs whole on this machine makes them for itself; roles that
 * are started apart are told theirs, for secrets made up by each would not match: tokens, snapshots and tentative
 * edits would be refused, far from where the mistake was made.
 */

import { SettingError } from "../shared/config.ts";
import { localSecrets, type Secrets } from "./secrets.ts";
import type { Role, StartConfig } from "./settings.ts";

export type SecretsGiven = Pick<
  StartConfig,
  "roles" | "production" | "dataDir" | "jwtSecret" | "jwksUrl" | "jwksFile" | "roomSecret" | "internalSecret"
>;

/** What was not given. Throws where it would have to be. Whoever checks tokens by a JWKS needs no secret for them. */
export function missingSecrets(given: SecretsGiven, makeSecrets: (dataDir: string) => Secrets = localSecrets): Partial<Secrets> {
  const hasKeys = given.jwtSecret !== "" || given.jwksUrl !== "" || given.jwksFile !== "";
  if (!given.roles.includes("engines") || given.production) {
    refuseMissing(given, hasKeys);
    return {};
  }
  const { jwtSecret, roomSecret, internalSecret } = makeSecrets(given.dataDir);
  return {
    ...(hasKeys ? {} : { jwtSecret }),
    ...(given.roomSecret === "" ? { roomSecret } : {}),
    ...(given.internalSecret === "" ? { internalSecret } : {}),
  };
}

function refuseMissing({ roles, roomSecret, internalSecret }: SecretsGiven, hasKeys: boolean): void {
  const runs = (...any: Role[]): boolean => any.some((role) => roles.includes(role));
  const problems = [
    ...(runs("gateway") && !hasKeys ? ["COROOM_JWT_SECRET, COROOM_JWKS_URL or COROOM_JWKS_FILE: what gateways check tokens with"] : []),
    ...(runs("room-server") && roomSecret === "" ? ["COROOM_ROOM_SECRET: the same for all room servers"] : []),
    ...(runs("gateway", "document-service", "leaderboard") && internalSecret === ""
      ? ["COROOM_INTERNAL_SECRET: the same for gateways, document services and leaderboards"]
      : []),
  ];
  if (problems.length > 0)
    throw new SettingError(
      `roles that are started apart, or in production, are given the secrets they share. Set:\n  ${problems.join("\n  ")}`,
    );
}
