/**
 * Tokens that were valid a moment ago. A client sends its token on the WebSocket and for each snapshot, and many
 * reconnecting clients send theirs at once. Only valid tokens are kept, so forged tokens are verified each time. Only
 * the result for the signature is kept. The caller checks expiry, bans and rights each time.
 */

import type { Millis } from "../../shared/ids.ts";
import type { Identity } from "./identity.ts";

export type KnownTokensOptions = {
  readonly knownTokensMax: number;
  /** A withdrawn key is accepted for at most this time. 0: no token is remembered. */
  readonly knownTokenMsMax: number;
};

type Known = { readonly identity: Identity; readonly until: Millis };

export class KnownTokens {
  readonly #options: KnownTokensOptions;
  /** By digest of the token, the oldest first. */
  readonly #known = new Map<string, Known>();

  constructor(options: KnownTokensOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#known.size;
  }

  /** Undefined: the token has to be verified. */
  find(digest: string, now: Millis): Identity | undefined {
    const known = this.#known.get(digest);
    if (known === undefined) return undefined;
    if (now < known.until) return known.identity;
    this.#known.delete(digest);
    return undefined;
  }

  /**
   * Forgets expired tokens and returns when the next one expires. They are removed in order of age, even if a newer one
   * expires earlier.
   */
  receiveTick(now: Millis): Millis | undefined {
    for (const [digest, { until }] of this.#known) {
      if (until > now) return until;
      this.#known.delete(digest);
    }
    return undefined;
  }

  add(digest: string, identity: Identity, now: Millis): void {
    const until = Math.min(identity.expiresAt, now + this.#options.knownTokenMsMax) as Millis;
    if (until <= now) return;
    this.#known.delete(digest);
    this.#known.set(digest, { identity, until });
    const [oldest] = this.#known.keys();
    if (oldest !== undefined && this.#known.size > this.#options.knownTokensMax) this.#known.delete(oldest);
  }
}
