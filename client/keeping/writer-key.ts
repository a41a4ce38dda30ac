/**
 * As whom this page writes in a room: a key of its own, or for a while that of a page before it, whose edits it sends
 * again. One that was silent for long takes a new key, since servers may have forgotten the numbering.
 */

import type { ClientKey, Millis } from "../../shared/ids.ts";
import type { Outbox } from "../room/outbox.ts";

export class WriterKey {
  readonly #outbox: Outbox;
  readonly #fresh: () => ClientKey;
  /** Servers know a silent client's numbering for so long at least. */
  readonly #dedupeMs: number;
  #key: ClientKey;
  /** When the line was last known to hold. */
  #heardAt: Millis | undefined;

  /** `fresh`: hard to guess, and nobody else's. */
  constructor(outbox: Outbox, fresh: () => ClientKey, dedupeMs: number) {
    this.#outbox = outbox;
    this.#fresh = fresh;
    this.#dedupeMs = dedupeMs;
    this.#key = fresh();
  }

  get key(): ClientKey {
    return this.#key;
  }

  heard(at: Millis): void {
    this.#heardAt = at;
  }

  /** Before the room is joined on a new line. */
  renewIfSilent(now: Millis): void {
    if (this.#heardAt !== undefined && now - this.#heardAt > this.#dedupeMs) this.#outbox.keyIsStale();
    this.renewIfNeeded();
  }

  /** True: the room is to be joined again, with the new key. */
  renewIfNeeded(): boolean {
    if (!this.#outbox.needsNewKey) return false;
    this.#key = this.#outbox.newKey() ?? this.#fresh();
    return true;
  }
}
