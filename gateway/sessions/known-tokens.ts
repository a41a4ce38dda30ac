/**
 * Whose tokens were found valid a moment ago. A client shows its token on the WebSocket, and again for each snapshot; a
 * crowd that comes back shows all of them at once. Only valid ones are known: whoever forges them pays for each.
 *
 * What is known here is the signature. The date in the token, bans and rights are looked at each time by whoever asks.
 */

import type { Millis } from "../../shared/ids.ts";
import type { Identity } from "./identity.ts";

export type KnownTokensOptions = {
  readonly knownTokensMax: number;
  /** So long may a key that was withdrawn go on opening doors. 0: nothing is known. */
  readonly knownTokenMsMax: number;
};

type Known = { readonly identity: Identity; readonly until: Millis };

export class KnownTokens {
  readonly #options: KnownTokensOptions;
  /** By the token's digest, the oldest first. */
  readonly #known = new Map<string, Known>();

  constructor(options: KnownTokensOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#known.size;
  }

  /** Undefined: it is to be checked. */
  find(digest: string, now: Millis): Identity | undefined {
    const known = this.#known.get(digest);
    if (known === undefined) return undefined;
    if (now < known.until) return known.identity;
    this.#known.delete(digest);
    return undefined;
  }

  /** Lets go of those whose time is up, and says when the next one's is. The oldest go first; one that ends before its time waits for them. */
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
