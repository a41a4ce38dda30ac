/** The tokens that participants show: made here, or found in a file that somebody renews. */

import { readFile } from "node:fs/promises";

import { SignJWT } from "jose";

import { textIn } from "../../shared/io/certificate-files.ts";
import type { ProbeConfig, TokenConfig } from "../config.ts";
import { ROOMS } from "../plan.ts";

/** Seconds. The SDK asks for another in time. */
const LIFE_SECONDS = 3_600;

/** `user`: whose it is, where it is made here. */
export function tokensFor({
  probeTenant,
  probeTokenFile,
  jwtSecret,
  jwtIssuer,
  jwtAudience,
}: Pick<ProbeConfig, "probeTenant" | "probeTokenFile"> & TokenConfig): (user: string) => Promise<string> {
  if (probeTokenFile !== "") return async () => (await readFile(probeTokenFile, "utf8")).trim();
  return (user) => {
    const token = new SignJWT({ tenant: probeTenant, name: user, rooms: [ROOMS], rights: ["read", "write"] })
      .setProtectedHeader({ alg: "HS256" })
      .setSubject(user)
      .setIssuedAt()
      .setExpirationTime(`${LIFE_SECONDS}s`);
    if (jwtIssuer !== "") token.setIssuer(jwtIssuer);
    if (jwtAudience !== "") token.setAudience(jwtAudience);
    return token.sign(new TextEncoder().encode(jwtSecret));
  };
}

/** Throws a SettingError for a file that cannot be read. */
export function refuseUnreadable({ probeTokenFile }: Pick<ProbeConfig, "probeTokenFile">): void {
  if (probeTokenFile !== "") textIn("COROOM_PROBE_TOKEN_FILE", probeTokenFile);
}
