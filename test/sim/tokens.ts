/**
 * Tokens that expire within seconds, and rights that change. Tabs fetch a token for each connection and renew it on the
 * open one. A gateway may take new edits of a user only until the last token with the right to write that it has seen
 * has expired. A user who may not write or enter for a time must lose no edit.
 */

import type { Identity, TokenVerdict } from "../../gateway/sessions/identity.ts";
import type { SubmittedEdit } from "../../shared/bus/envelope.ts";
import type { Millis, TenantId, UserId } from "../../shared/ids.ts";
import type { Prng } from "../../shared/collections/prng.ts";
import type { Judge } from "./judge.ts";
import type { Scheduler } from "./scheduler.ts";
import type { SimProcess } from "./sim-process.ts";

/** `none`: the token opens no room. */
type Level = "write" | "read" | "none";

/** Clients renew a token after 80 % of its time, and at the earliest after 3 s. */
const TTL_MS_MIN = 5_000;
const TTL_MS_MORE = 4_000;
const CALL_MS_MAX = 200;
/** A gateway checks expiry once a second, and clocks are a tenth slow: 2.1 s for the longest token, and some more. */
const SLACK_MS = 2_500;
const RIGHTS = { admin: false, award: false, boards: false };

export class SimTokens {
  /** The token service is unreachable. */
  isAway = false;
  /** Calls that failed, and tokens with fewer rights. */
  spoiltEver = 0;
  readonly #scheduler: Scheduler;
  readonly #judge: Judge;
  readonly #prng: Prng;
  readonly #ttlMs: number;
  readonly #levels = new Map<string, Level>();
  readonly #everChanged = new Set<string>();
  /** By gateway and user: until when a verified token allows writing. 0: none has allowed it. */
  readonly #mayWriteUntil = new Map<string, number>();

  constructor(scheduler: Scheduler, judge: Judge, prng: Prng) {
    this.#scheduler = scheduler;
    this.#judge = judge;
    this.#prng = prng;
    this.#ttlMs = TTL_MS_MIN + prng.below(TTL_MS_MORE);
  }

  setLevel(user: string, level: Level): void {
    this.#levels.set(user, level);
    this.#everChanged.add(user);
  }

  /** Whether the user may have been without access for a time. */
  wasChanged(user: string): boolean {
    return this.#everChanged.has(user);
  }

  /** The token function of a user's tab. */
  fetchFor(user: string, { clock }: SimProcess): () => Promise<string> {
    return () =>
      new Promise((resolve, reject) => {
        clock.after(this.#prng.unit() * CALL_MS_MAX, () => {
          const level = this.#levels.get(user) ?? "write";
          if (this.isAway || level !== "write") this.spoiltEver += 1;
          if (this.isAway) reject(new Error("the token service is away"));
          else resolve(`${user}.${level}.${Math.floor(this.#scheduler.now + this.#ttlMs)}`);
        });
      });
  }

  verify(token: string, { name, clock }: SimProcess): TokenVerdict {
    const [user, level, expires] = token.split(".") as [string, Level, string];
    const leftMs = Number(expires) - this.#scheduler.now;
    if (leftMs <= 0) return { kind: "expired" };
    const key = `${name} ${user}`;
    const until = this.#mayWriteUntil.get(key) ?? 0;
    this.#mayWriteUntil.set(key, level === "write" ? Math.max(until, Number(expires)) : until);
    return { kind: "valid", identity: identityOf(user, level, (clock.now() + leftMs) as Millis) };
  }

  /** Checks an edit when a gateway takes it from a client. The gateway may hold it for a long time before it can send it to an owner. */
  receiveTaken({ name, resumedAt }: SimProcess, { author }: SubmittedEdit): void {
    const until = this.#mayWriteUntil.get(`${name} ${author.user}`);
    if (until === undefined) return; // A backend, or a hostile client.
    const now = this.#scheduler.now;
    if (now > Math.max(until, resumedAt) + SLACK_MS)
      this.#judge.fail(`${name} takes an edit of ${author.user} at ${Math.floor(now)}, who might write there until ${until}`);
  }
}

/** A run without a token service uses users as tokens. */
export function userOf(token: string): string {
  return token.split(".")[0]!;
}

export function identityOf(user: string, level: Level, expiresAt: Millis): Identity {
  const rights = { read: true, write: level === "write", ...RIGHTS };
  return { tenant: "acme" as TenantId, user: user as UserId, name: user, rooms: level === "none" ? [] : ["*"], rights, expiresAt };
}
