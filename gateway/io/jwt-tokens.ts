/**
 * Checks tokens: JWTs signed with a shared secret (HS256), or with a key of a JWKS (RS, PS, ES, EdDSA). Each kind of
 * key allows its own algorithms only, so a public key never passes as a secret, and `none` never passes.
 *
 * A token of an unknown key may be signed with a key that was added a moment ago. Such tokens wait together until the
 * keys are fetched again, and are checked with the new keys. So a token with a forged key is always rejected.
 */

import { hash } from "node:crypto";
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

import { displayText } from "../../shared/display-text.ts";
import { type Millis, parseTenantId, parseUserId, TENANT_ID_RULE, USER_ID_RULE } from "../../shared/ids.ts";
import type { OperationsReport } from "../../shared/bus/operations-events.ts";
import { textIn } from "../../shared/io/certificate-files.ts";
import { SettingError } from "../../shared/settings/settings.ts";
import { limitedLog } from "../../shared/process/limited-log.ts";
import type { Log } from "../../shared/process/log.ts";
import type { Clock } from "../../shared/time/clock.ts";
import { pause } from "../../shared/time/pause.ts";
import type { GatewayMetrics } from "../metrics.ts";
import type { Tokens } from "../ports.ts";
import type { Identity, TokenVerdict } from "../sessions/identity.ts";
import { KnownTokens, type KnownTokensOptions } from "../sessions/known-tokens.ts";

export type TokenOptions = {
  readonly jwtSecret: string;
  /** Accepted beside `jwtSecret`. Empty: none. */
  readonly jwtSecretPrevious: string;
  readonly jwksUrl: string;
  readonly jwksFile: string;
  readonly jwtIssuer: string;
  readonly jwtAudience: string;
  readonly jwtClockToleranceSeconds: number;
  /** Maximum number of tokens that wait for keys. Further tokens are not checked. */
  readonly waitingTokensMax: number;
};

const SECRET_ALGORITHMS = ["HS256"];
/** Interval between two fetches of the keys. Much shorter than the HELLO timeout, and long enough to protect the key server from load. */
const REFETCH_MS = 3_000;
const KEY_PAIR_ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"];

const DEFAULT_TENANT = "default";
const id = <Id extends string>(parse: (text: string) => Id | undefined, rule: string) =>
  z.string().transform((text, context) => {
    const parsed = parse(text);
    if (parsed !== undefined) return parsed;
    context.addIssue(rule);
    return z.NEVER;
  });
const Claims = z.object({
  sub: id(parseUserId, USER_ID_RULE),
  tenant: z.string().default(DEFAULT_TENANT).pipe(id(parseTenantId, TENANT_ID_RULE)),
  name: z.string().max(128).optional(),
  rooms: z.array(z.string()).max(1_000),
  rights: z.array(z.string()).max(16),
  exp: z.number(),
});

type Verify = (token: string, options: JWTVerifyOptions) => Promise<{ payload: JWTPayload }>;
/**
 * `mayBeBehind`: the keys were fetched a moment ago and are not fetched again yet, so a newer key may be missing.
 * `refetched` resolves after the next fetch. `isFetched`: the newest fetch succeeded a moment ago, or the keys are never fetched.
 */
type Verifier = {
  readonly verify: Verify;
  readonly mayBeBehind: () => boolean;
  readonly refetched: () => Promise<void>;
  readonly isFetched: () => boolean;
};

type KeysReport = OperationsReport & { readonly kind: "jwks_lost" };
/** `onWaiting`: receives the number of tokens that wait for keys. `report`: receives each loss of the JWKS, and its end. */
type TokenDeps = {
  readonly clock: Clock;
  readonly log: Log;
  readonly onWaiting: (tokens: number) => void;
  readonly report: (report: KeysReport) => void;
};

/** Throws a SettingError for a file without keys. */
export function jwtTokens(options: TokenOptions, { clock, log, onWaiting, report }: TokenDeps): Tokens {
  const { verify, mayBeBehind, refetched, isFetched } = tokenVerifier(options, clock);
  const receiveOutcome = jwksOutages(isFetched, report, { clock, log: limitedLog(log, clock) });
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
    const wasBehind = mayBeBehind(); // If the keys were not behind, they were fetched for this token.
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
        receiveOutcome(undefined);
        return checked === undefined
          ? { kind: "unchecked" }
          : verdictOf(checked.payload, options.jwtClockToleranceSeconds, { clock, lists });
      } catch (error) {
        const verdict = verdictOfError(error);
        receiveOutcome(verdict === undefined ? error : undefined);
        return verdict ?? { kind: "unchecked" };
      }
    },
  };
}

/**
 * Reports when keys cannot be fetched, and when they can be again. Clients return all the time meanwhile, and each returns
 * without a line in the log. Keys that were fetched before check tokens while the JWKS does not answer, so a checked token
 * alone is not the end.
 */
function jwksOutages(isFetched: () => boolean, report: TokenDeps["report"], { clock, log }: Pick<TokenDeps, "clock" | "log">) {
  let lost: { readonly at: Millis; readonly reason: string } | undefined;
  return (failure: unknown): void => {
    if (failure === undefined) {
      if (lost === undefined || !isFetched()) return;
      const { at, reason } = lost;
      lost = undefined;
      return report({ kind: "jwks_lost", state: "found", forMs: Math.round(clock.now() - at), reason });
    }
    if (isFetched()) return log.warn({ cause: failure }, "a token cannot be checked: see whether the keys of the JWKS are valid");
    if (lost !== undefined) return;
    lost = { at: clock.now(), reason: reasonOf(failure) };
    log.warn({ cause: failure }, "tokens cannot be checked: see whether the JWKS address answers with a key set");
    report({ kind: "jwks_lost", state: "lost", forMs: 0, reason: lost.reason });
  };
}

const REASON_CHARS_MAX = 200;

/** The cause of `fetch failed` names the address. */
function reasonOf(failure: unknown): string {
  const named = failure instanceof Error && failure.cause instanceof Error ? failure.cause : failure;
  return (named instanceof Error ? named.message : String(named)).slice(0, REASON_CHARS_MAX);
}

/** Throws a SettingError for a file without keys. */
export function tokenVerifier(options: TokenOptions, clock: Clock): Verifier {
  const fixed = { mayBeBehind: () => false, refetched: () => Promise.resolve(), isFetched: () => true };
  if (options.jwtSecret !== "") {
    const [current, previous] = [bySecret(options.jwtSecret), options.jwtSecretPrevious && bySecret(options.jwtSecretPrevious)];
    if (previous === "") return { verify: current, ...fixed };
    const byEither: Verify = (token, checks) =>
      current(token, checks).catch((error: unknown) => {
        if (error instanceof errors.JWSSignatureVerificationFailed) return previous(token, checks);
        throw error;
      });
    return { verify: byEither, ...fixed };
  }
  const by =
    (keys: JWTVerifyGetKey): Verify =>
    (token, checks) =>
      jwtVerify(token, keys, { ...checks, algorithms: KEY_PAIR_ALGORITHMS });
  if (options.jwksUrl === "") return { verify: by(keysIn(options.jwksFile)), ...fixed };
  const keys = createRemoteJWKSet(new URL(options.jwksUrl), { cooldownDuration: REFETCH_MS });
  /** A fetch that is under way began before the token arrived, and `reload` would join it. */
  const reload = async (): Promise<void> => {
    if (keys.reloading) await keys.reload().catch(() => {});
    return keys.reload();
  };
  let next: Promise<void> | undefined;
  const refetched = (): Promise<void> => {
    next ??= pause(clock, REFETCH_MS).then(() => {
      next = undefined; // A token that arrives from now on may be signed with a key that this fetch misses.
      return reload();
    });
    return next;
  };
  return { verify: by(keys), mayBeBehind: () => keys.coolingDown || keys.reloading, refetched, isFetched: () => keys.coolingDown };
}

function bySecret(secret: string): Verify {
  // Passing bytes to `jwtVerify` would create a key for every token.
  const key = crypto.subtle.importKey("raw", new TextEncoder().encode(secret), { name: "HMAC", hash: "SHA-256" }, false, ["verify"]);
  return async (token, checks) => jwtVerify(token, await key, { ...checks, algorithms: SECRET_ALGORITHMS });
}

/** Throws a SettingError when the file contains no keys. */
function keysIn(file: string): JWTVerifyGetKey {
  const text = textIn("COROOM_JWKS_FILE", file);
  try {
    return createLocalJWKSet(JSON.parse(text) as JSONWebKeySet); // Checks the shape of the key set.
  } catch (error) {
    if (!(error instanceof SyntaxError || error instanceof errors.JWKSInvalid)) throw error;
    // Without the cause, which may quote a key.
    throw new SettingError(`COROOM_JWKS_FILE=${file} contains no key set. It must be a JWKS of public keys: {"keys":[…]}`);
  }
}

function verdictOf(payload: JWTPayload, toleranceSeconds: number, { clock, lists }: { clock: Clock; lists: SharedLists }): TokenVerdict {
  const claims = Claims.safeParse(payload);
  if (!claims.success)
    return { kind: "refused", why: claims.error.issues.map(({ path, message }) => `claim ${path.join(".")}: ${message}`).join("; ") };
  const { sub: user, tenant, name, rooms, rights, exp } = claims.data;
  return {
    kind: "valid",
    identity: {
      tenant,
      user,
      name: displayText(name ?? "") || displayText(user),
      rooms: lists.share(rooms),
      rights: rightsOf(rights),
      expiresAt: Math.floor(clock.now() + (exp + toleranceSeconds) * 1000 - clock.wallNow()) as Millis, // V8 would allocate a heap object for a fraction.
    },
  };
}

/** All combinations, indexed by one bit per right, so that bearers of the same rights share one object. */
const ALL_RIGHTS: readonly Identity["rights"][] = Array.from({ length: 32 }, (_, bits) => ({
  read: (bits & 1) > 0,
  write: (bits & 2) > 0,
  admin: (bits & 4) > 0,
  award: (bits & 8) > 0,
  boards: (bits & 16) > 0,
}));

function rightsOf(claimed: readonly string[]): Identity["rights"] {
  return ALL_RIGHTS[
    ["read", "write", "admin", "award", "boards"].reduce((bits, right, index) => bits | (Number(claimed.includes(right)) << index), 0)
  ]!;
}

/** By jose's error code. */
const REASONS: Readonly<Record<string, string>> = {
  ERR_JWS_SIGNATURE_VERIFICATION_FAILED:
    "its signature does not match: sign it with the key that the gateway is set to (coroom token: the same COROOM_JWT_SECRET or COROOM_DATA_DIR as the gateway)",
  ERR_JOSE_ALG_NOT_ALLOWED:
    "the gateway does not accept its algorithm: sign it with HS256 and the shared secret, or with the algorithm of a key in the JWKS",
  ERR_JOSE_NOT_SUPPORTED: "its header has an extension that the gateway does not support: sign it without `crit`",
  ERR_JWKS_NO_MATCHING_KEY: "the gateway knows no key that signed it: add the key to the JWKS, with the `kid` of the token",
  ERR_JWKS_MULTIPLE_MATCHING_KEYS: "several keys of the JWKS may have signed it: give each key a `kid`, and name it in the token",
  ERR_JWS_INVALID: "it is not a signed JWT: send the token unchanged, as your application's server issued it",
  ERR_JWT_INVALID: "it is not a JWT: send the token unchanged, as your application's server issued it",
  ERR_JWT_CLAIM_VALIDATION_FAILED:
    "a claim is missing or does not match: set `exp` and `sub`, and `iss`, `aud` and `nbf` as the gateway requires them",
};

/**
 * Separates jose's errors about the token from all others. Undefined: the error concerns the keys, so no token is
 * refused and no abuse score rises.
 */
export function verdictOfError(error: unknown): (TokenVerdict & { kind: "refused" | "expired" }) | undefined {
  if (!(error instanceof errors.JOSEError)) return undefined;
  if (error instanceof errors.JWTExpired) {
    const tenant = parseTenantId(String(error.payload["tenant"] ?? DEFAULT_TENANT)); // The signature was checked before.
    return tenant === undefined ? { kind: "expired" } : { kind: "expired", tenant };
  }
  const why = REASONS[error.code];
  return why === undefined ? undefined : { kind: "refused", why };
}

/** Above this number, the shared lists are forgotten and sharing starts again. Existing holders keep their lists. */
export const LISTS_MAX = 1_024;

/** Shares equal lists. Most tokens open one room or all rooms, so this saves 56 bytes per connection. */
export class SharedLists {
  /** Lists with one entry only: longer lists are rarely equal, and their text may be long. */
  readonly #ofOne = new Map<string, readonly [string]>();

  /** The returned list must not be changed. */
  share(list: readonly string[]): readonly string[] {
    const [entry] = list;
    if (entry === undefined || list.length > 1) return list;
    const known = this.#ofOne.get(entry);
    if (known !== undefined) return known;
    if (this.#ofOne.size === LISTS_MAX) this.#ofOne.clear();
    const shared = [entry] as const;
    this.#ofOne.set(entry, shared);
    return shared;
  }
}

/**
 * A timer removes tokens when they expire. Tokens that are removed only at the next request would keep the memory of a
 * quiet gateway, because no garbage collection follows.
 */
const SWEEP_MS_MIN = 1_000;

/** Checks a token once and remembers it by its digest, so that no token stays in memory. */
export function rememberedTokens(
  tokens: Tokens,
  options: KnownTokensOptions,
  { clock, metrics }: { clock: Clock; metrics: Pick<GatewayMetrics, "tokenChecks"> },
): Tokens {
  const known = new KnownTokens(options);
  let isSweeping = false;
  const sweep = (): void => {
    const next = known.receiveTick(clock.now());
    isSweeping = next !== undefined;
    if (next !== undefined) clock.after(Math.max(SWEEP_MS_MIN, next - clock.now()), sweep);
  };
  return {
    verify: async (token) => {
      const digest = hash("sha256", token, "base64");
      const identity = known.find(digest, clock.now());
      metrics.tokenChecks.inc({ outcome: identity === undefined ? "checked" : "known" });
      if (identity !== undefined) return { kind: "valid", identity };
      const verdict = await tokens.verify(token);
      if (verdict.kind === "valid") known.add(digest, verdict.identity, clock.now());
      if (!isSweeping) sweep();
      return verdict;
    },
  };
}
