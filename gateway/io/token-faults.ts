/**
 * Which of the errors that jose throws are about the token, and what is wrong with it then. Every other one, and whatever
 * else is thrown, is about the keys to check it with: nobody's token is refused, and nobody blamed, for those.
 */

import { errors } from "jose";

import type { TokenVerdict } from "../sessions/identity.ts";

/** By jose's error codes. */
const REASONS: Readonly<Record<string, string>> = {
  ERR_JWS_SIGNATURE_VERIFICATION_FAILED: "its signature does not match: it was signed with another key",
  ERR_JOSE_ALG_NOT_ALLOWED: "its algorithm is not one that this gateway takes",
  ERR_JOSE_NOT_SUPPORTED: "its header asks for what this gateway does not know: leave out `crit`",
  ERR_JWKS_NO_MATCHING_KEY: "no known key signed it",
  ERR_JWKS_MULTIPLE_MATCHING_KEYS: "several known keys may have signed it: give each a kid",
  ERR_JWS_INVALID: "it is no signed JWT",
  ERR_JWT_INVALID: "it is no JWT",
  ERR_JWT_CLAIM_VALIDATION_FAILED: "a claim is missing or does not match: exp and sub must be there, iss, aud and nbf must fit",
};

/** Undefined: the error says nothing about the token. */
export function verdictOfError(error: unknown): (TokenVerdict & { kind: "refused" | "expired" }) | undefined {
  if (!(error instanceof errors.JOSEError)) return undefined;
  if (error instanceof errors.JWTExpired) return { kind: "expired" };
  const why = REASONS[error.code];
  return why === undefined ? undefined : { kind: "refused", why };
}
