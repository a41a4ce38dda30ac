/** Whose tokens a gateway takes, and how long it remembers that it has. */

import { positiveInteger, SettingError, type Settings, text, wholeNumber } from "../../shared/config.ts";

export const tokenSettings = {
  jwtSecret: { parse: text, secret: true, fallback: "", meaning: "HS256 secret of the tokens, at least 32 bytes" },
  jwksUrl: {
    parse: keysAddress,
    secret: true,
    fallback: "",
    meaning: "where the public keys of RS256, PS256, ES256 or EdDSA tokens are fetched (JWKS)",
  },
  jwksFile: { parse: text, fallback: "", meaning: "a JWKS file, instead of a URL" },
  jwtIssuer: { parse: text, fallback: "", meaning: "issuer that tokens must name; empty: any" },
  jwtAudience: { parse: text, fallback: "", meaning: "audience that tokens must name; empty: any" },
  jwtClockToleranceSeconds: { parse: positiveInteger, fallback: 5, meaning: "how far the clock of whoever signs tokens may be off" },
  knownTokensMax: {
    parse: positiveInteger,
    fallback: 100_000,
    meaning: "tokens that need not be checked again when they are shown again; of more the oldest is forgotten",
  },
  knownTokenMsMax: {
    parse: wholeNumber,
    fallback: 15_000,
    meaning: "for how long not: so long may a key that was withdrawn still open doors. 0: every token is checked each time",
  },
  waitingTokensMax: {
    parse: positiveInteger,
    fallback: 1_000,
    meaning:
      "tokens of no known key that wait for the JWKS to be fetched again, which takes three seconds; whoever shows more is told to try again",
  },
} as const satisfies Settings;

/** What can be fetched: no address with a user in it. */
function keysAddress(raw: string): string {
  const url = URL.canParse(raw) ? new URL(raw) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol) || url.username !== "" || url.password !== "")
    throw new SettingError("must be an address such as https://id.example/.well-known/jwks.json, with no user in it");
  return raw;
}
