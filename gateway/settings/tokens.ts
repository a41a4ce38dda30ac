/** Settings of tokens: the keys that gateways accept, and how long a verified token stays in the cache. */

import { positiveInteger, SettingError, type Settings, text, wholeNumber } from "../../shared/settings/settings.ts";

export const tokenSettings = {
  jwtSecret: { parse: text, secret: true, fallback: "", meaning: "HS256 secret of the tokens, at least 32 bytes.", basic: true },
  jwtSecretPrevious: {
    parse: text,
    secret: true,
    fallback: "",
    meaning: "Second HS256 secret that gateways accept, while you change COROOM_JWT_SECRET. Nothing is signed with it.",
  },
  jwksUrl: {
    parse: keysAddress,
    secret: true,
    fallback: "",
    meaning: "URL of the public keys (JWKS) of RS256, PS256, ES256 or EdDSA tokens.",
    basic: true,
  },
  jwksFile: { parse: text, fallback: "", meaning: "File with a JWKS, instead of COROOM_JWKS_URL.", basic: true },
  jwtIssuer: { parse: text, fallback: "", meaning: "Required issuer (iss) of tokens. Empty: any.", basic: true },
  jwtAudience: { parse: text, fallback: "", meaning: "Required audience (aud) of tokens. Empty: any.", basic: true },
  jwtClockToleranceSeconds: {
    parse: positiveInteger,
    fallback: 5,
    meaning: "Accepted clock difference, in seconds, between the token issuer and the gateway.",
  },
  knownTokensMax: {
    parse: positiveInteger,
    fallback: 100_000,
    meaning: "Maximum number of verified tokens in the cache. The oldest are removed first.",
  },
  knownTokenMsMax: {
    parse: wholeNumber,
    fallback: 15_000,
    meaning: "Milliseconds that a verified token stays in the cache; 0 disables the cache. A withdrawn key is accepted for this time.",
  },
  waitingTokensMax: {
    parse: positiveInteger,
    fallback: 1_000,
    meaning: "Maximum number of tokens with an unknown key that wait for the next JWKS request. Further clients are asked to retry.",
  },
} as const satisfies Settings;

/** An address that can be fetched: it must not contain a user. */
function keysAddress(raw: string): string {
  const url = URL.canParse(raw) ? new URL(raw) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol) || url.username !== "" || url.password !== "")
    throw new SettingError("must be an address such as https://id.example/.well-known/jwks.json, with no user in it");
  return raw;
}
