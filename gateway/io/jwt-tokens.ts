/**
 * Checks tokens: JWTs signed with a shared secret (HS256), or with a key out of a JWKS (RS, PS, ES, EdDSA). Each
 * kind of key allows its own algorithms only, so a public key can never pass for a secret, and `none` never passes.
 *
 * A token of no known key may be of one that was added a moment ago, or of none at all: it waits until the keys are
 * fetched for it, however many name such keys, and is judged by those. So whoever makes them up is always found out.
 */

import {
  createLocalJWKSet,
  createRemoteJWKSet,
  errors,
  type JSONWebKeySet,
  type JWTPayload,
  type JWTVerifyGetKey,
  type JWTVerifyOptions,
  jwtVerify,
} from "jose";
import { z } from "zod";

import type { Clock } from "../../shared/clock.ts";
import { SettingError } from "../../shared/config.ts";
import { type Millis, parseTenantId, parseUserId } from "../../shared/ids.ts";
import { textIn } from "../../shared/io/certificate-files.ts";
import type { Identity, TokenVerdict } from "../sessions/identity.ts";
import type { Tokens } from "../ports.ts";
import { SharedLists } from "./shared-lists.ts";
import { verdictOfError } from "./token-faults.ts";

export type TokenOptions = {
  readonly jwtSecret: string;
  readonly jwksUrl: string;
  readonly jwksFile: string;
  readonly jwtIssuer: string;
  readonly jwtAudience: string;
  readonly jwtClockToleranceSeconds: number;
  /** Tokens that wait for the keys at a time; of more none is judged. */
  readonly waitingTokensMax: number;
};

const SECRET_ALGORITHMS = ["HS256"];
/** From one time that keys are fetched to the next: far less than a client has for its HELLO, and seldom enough for whoever serves them. */
const REFETCH_MS = 3_000;
const KEY_PAIR_ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"];

const Claims = z.object({
  sub: z.string().refine((text) => parseUserId(text) !== undefined, "must be 1 to 128 characters"),
  tenant: z
    .string()
    .refine((text) => parseTenantId(text) !== undefined, "must be letters, digits, _ and -")
    .default("default"),
  name: z.string().max(128).optional(),
  rooms: z.array(z.string()).max(1_000),
  rights: z.array(z.string()).max(16),
  exp: z.number(),
});

type Verify = (token: string, options: JWTVerifyOptions) => Promise<{ payload: JWTPayload }>;
/** `mayBeBehind`: the keys were fetched a moment ago and are not fetched again yet, though one may have been added since. `refetched`: resolves once they are. */
type Verifier = { readonly verify: Verify; readonly mayBeBehind: () => boolean; readonly refetched: () => Promise<void> };

/** Throws a SettingError for a file that holds no keys; rejects where keys must be fetched and cannot be. `onWaiting`: told how many tokens wait for them. */
export function jwtTokens(options: TokenOptions, clock: Clock, onWaiting: (tokens: number) => void = () => {}): Tokens {
  const { verify, mayBeBehind, refetched } = verifier(options, clock);
  const lists = new SharedLists();
  const checks: JWTVerifyOptions = {
    requiredClaims: ["exp", "sub"],
    clockTolerance: options.jwtClockToleranceSeconds,
    ...(options.jwtIssuer === "" ? {} : { issuer: options.jwtIssuer }),
    ...(options.jwtAudience === "" ? {} : { audience: options.jwtAudience }),
  };
  let waiting = 0;
  const wait = async (): Promise<void> => {
    onWaiting((waiting += 1));
    await refetched().finally(() => onWaiting((waiting -= 1)));
  };
  const verified = (token: string): ReturnType<Verify> => verify(token, { ...checks, currentDate: new Date(clock.wallNow()) });
  const verifiedInTime = async (token: string): Promise<{ payload: JWTPayload } | undefined> => {
    const wasBehind = mayBeBehind(); // Where it was not, the keys are those fetched for this token.
    try {
      return await verified(token);
    } catch (error) {
      if (!wasBehind || !(error instanceof errors.JWKSNoMatchingKey)) throw error;
      if (waiting >= options.waitingTokensMax) return undefined;
      await wait();
      return verified(token);
    }
  };
  return {
    verify: async (token) => {
      try {
        const checked = await verifiedInTime(token);
        return checked === undefined
          ? { kind: "unchecked" }
          : verdictOf(checked.payload, options.jwtClockToleranceSeconds, { clock, lists });
      } catch (error) {
        const verdict = verdictOfError(error);
        if (verdict === undefined) throw new Error("the keys to check tokens with could not be had", { cause: error });
        return verdict;
      }
    },
  };
}

function verifier(options: TokenOptions, clock: Clock): Verifier {
  const fixed = { mayBeBehind: () => false, refetched: () => Promise.resolve() };
  if (options.jwtSecret !== "") {
    const secret = crypto.subtle.importKey("raw", new TextEncoder().encode(options.jwtSecret), { name: "HMAC", hash: "SHA-256" }, false, [
      "verify",
    ]); // As bytes it would be made a key for each token anew.
    return { verify: async (token, checks) => jwtVerify(token, await secret, { ...checks, algorithms: SECRET_ALGORITHMS }), ...fixed };
  }
  const by =
    (keys: JWTVerifyGetKey): Verify =>
    (token, checks) =>
      jwtVerify(token, keys, { ...checks, algorithms: KEY_PAIR_ALGORITHMS });
  if (options.jwksUrl === "") return { verify: by(keysIn(options.jwksFile)), ...fixed };
  const keys = createRemoteJWKSet(new URL(options.jwksUrl), { cooldownDuration: REFETCH_MS });
  /** A fetch that is under way began before the token came, and would be joined. */
  const reload = async (): Promise<void> => {
    if (keys.reloading) await keys.reload().catch(() => {});
    return keys.reload();
  };
  let next: Promise<void> | undefined;
  const refetched = (): Promise<void> => {
    next ??= new Promise<void>((resolve) => clock.after(REFETCH_MS, resolve)).then(() => {
      next = undefined; // Whoever comes from here on may have been signed with a key that this fetch misses.
      return reload();
    });
    return next;
  };
  return { verify: by(keys), mayBeBehind: () => keys.coolingDown || keys.reloading, refetched };
}

/** Throws a SettingError where the file holds no keys. */
function keysIn(file: string): JWTVerifyGetKey {
  const text = textIn("COROOM_JWKS_FILE", file);
  try {
    return createLocalJWKSet(JSON.parse(text) as JSONWebKeySet); // Which checks its shape.
  } catch (error) {
    if (!(error instanceof SyntaxError || error instanceof errors.JWKSInvalid)) throw error;
    throw new SettingError(`COROOM_JWKS_FILE=${file} holds no key set: it is to be a JWKS, {"keys":[…]}, of public keys`); // With no cause: it may quote a key.
  }
}

function verdictOf(payload: JWTPayload, toleranceSeconds: number, { clock, lists }: { clock: Clock; lists: SharedLists }): TokenVerdict {
  const claims = Claims.safeParse(payload);
  if (!claims.success)
    return { kind: "refused", why: claims.error.issues.map(({ path, message }) => `claim ${path.join(".")}: ${message}`).join("; ") };
  const { sub, tenant, name, rooms, rights, exp } = claims.data;
  const [user, tenantId] = [parseUserId(sub), parseTenantId(tenant)];
  if (user === undefined || tenantId === undefined) return { kind: "refused", why: "claim sub or tenant is not usable" };
  return {
    kind: "valid",
    identity: {
      tenant: tenantId,
      user,
      name: name ?? sub,
      rooms: lists.share(rooms),
      rights: rightsOf(rights),
      expiresAt: Math.floor(clock.now() + (exp + toleranceSeconds) * 1000 - clock.wallNow()) as Millis, // A fraction, or what V8 takes for one, is an object of its own.
    },
  };
}

/** By what they are made of, a bit each: whoever has the same rights shares them. */
const ALL_RIGHTS: readonly Identity["rights"][] = Array.from({ length: 16 }, (_, bits) => ({
  read: (bits & 1) > 0,
  write: (bits & 2) > 0,
  admin: (bits & 4) > 0,
  award: (bits & 8) > 0,
}));

function rightsOf(claimed: readonly string[]): Identity["rights"] {
  return ALL_RIGHTS[
    ["read", "write", "admin", "award"].reduce((bits, right, index) => bits | (Number(claimed.includes(right)) << index), 0)
  ]!;
}
