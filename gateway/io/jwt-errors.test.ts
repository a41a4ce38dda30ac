import { errors } from "jose";
import { expect, test } from "vitest";
import { verdictOfError } from "./jwt-tokens.ts";

/** Every error class of jose. */
const VERDICTS: Record<Exclude<keyof typeof errors, "JOSEError">, "refused" | "expired" | "unchecked"> = {
  JWTExpired: "expired",
  JWTClaimValidationFailed: "refused",
  JWTInvalid: "refused",
  JWSInvalid: "refused",
  JWSSignatureVerificationFailed: "refused",
  JOSEAlgNotAllowed: "refused",
  JOSENotSupported: "refused",
  JWKSNoMatchingKey: "refused",
  JWKSMultipleMatchingKeys: "refused",
  JWKSInvalid: "unchecked",
  JWKSTimeout: "unchecked",
  JWKInvalid: "unchecked",
  JWEInvalid: "unchecked",
  JWEDecryptionFailed: "unchecked",
};

const verdictOf = (error: unknown): string => verdictOfError(error)?.kind ?? "unchecked";

test("[TKF1] an error of jose about the token refuses it; an error about the keys, or about jose itself, does not", () => {
  const { JOSEError, JWTExpired, JWTClaimValidationFailed, ...others } = errors;
  const made = {
    ...Object.fromEntries(Object.entries(others).map(([name, Kind]) => [name, new Kind("text")])),
    JWTExpired: new JWTExpired("text", {}),
    JWTClaimValidationFailed: new JWTClaimValidationFailed("text", {}),
  };
  expect(Object.fromEntries(Object.entries(made).map(([name, error]) => [name, verdictOf(error)]))).toEqual(VERDICTS);
  expect([new JOSEError("text"), new TypeError("text"), "text"].map(verdictOf)).toEqual(["unchecked", "unchecked", "unchecked"]);
});

test("[TKF2] each reason for which a token is refused names what to do", () => {
  const refused = Object.values(errors).flatMap((Kind) => {
    const verdict = verdictOfError(new (Kind as typeof errors.JWTExpired)("text", {}));
    return verdict?.kind === "refused" ? [verdict.why] : [];
  });
  expect(refused).toHaveLength(8);
  for (const why of refused) expect(why).toMatch(/: (sign|send|add|give|set) /);
});
