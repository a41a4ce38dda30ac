/** The tokens of participants: signed here, or read from a file that another process renews. */

import { readFile } from "node:fs/promises";

import { SignJWT } from "jose";

import { textIn } from "../../shared/io/certificate-files.ts";
import type { ProbeConfig, TokenConfig } from "../config.ts";
import { ROOMS } from "../plan.ts";

/** Seconds. The SDK requests the next token before the end. */
const LIFE_SECONDS = 3_600;

/** `user`: the user id of tokens signed here. */
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

/** Throws a SettingError if the file cannot be read. */
export function refuseUnreadable({ probeTokenFile }: Pick<ProbeConfig, "probeTokenFile">): void {
  if (probeTokenFile !== "") textIn("COROOM_PROBE_TOKEN_FILE", probeTokenFile);
}
