/**
 * Keeps refusals from becoming a storm. Refusing one edit refuses all behind it, which its writer has already
 * sent: those get no answer of their own until the writer has had time to begin again. Rules REF1, REF2.
 */

import type { ClientId, Millis } from "../../shared/ids.ts";
import { SeldomMap } from "../../shared/seldom.ts";

export class Refusals {
  readonly #quietUntil = new SeldomMap<ClientId, Millis>();

  get size(): number {
    return this.#quietUntil.size;
  }

  /** Whether a gap in this writer's numbering is worth an answer. */
  maySay(client: ClientId, now: Millis): boolean {
    return now >= (this.#quietUntil.get(client) ?? 0);
  }

  refused(client: ClientId, quietMs: number, now: Millis): void {
    this.#quietUntil.set(client, (now + quietMs) as Millis);
  }

  /** The writer's next edit was taken: the next gap is another one. */
  accepted(client: ClientId): void {
    if (this.#quietUntil.size > 0) this.#quietUntil.delete(client);
  }

  forgetPast(now: Millis): void {
    for (const [client, until] of this.#quietUntil) if (now >= until) this.#quietUntil.delete(client);
  }
}
