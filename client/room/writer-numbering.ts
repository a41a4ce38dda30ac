/**
 * The client key with which this page numbers its edits in a room: its own key, or temporarily the key of an earlier
 * page whose edits it sends again. Edits with one key are never renumbered with another while a server may know them.
 */

import type { ClientId, ClientKey, Millis } from "../../shared/ids.ts";
import type { WriterEdits } from "../persistence/journal.ts";

export class WriterNumbering {
  #client: ClientId | undefined;
  #isStale = false;
  /** The key belonged to an earlier page, so the server may know edits with it that this page does not know. */
  #isInherited = false;
  /** False: the room is not joined with this key yet, so an arriving answer belongs to the previous key. */
  #isJoined = true;
  #inherited: WriterEdits[] = [];

  get client(): ClientId | undefined {
    return this.#client;
  }

  get isInherited(): boolean {
    return this.#isInherited;
  }

  get isJoined(): boolean {
    return this.#isJoined;
  }

  /** Edits are sent only with the next key. */
  get isStale(): boolean {
    return this.#isStale;
  }

  /** The numberings of earlier pages that are still to be sent. */
  get inherited(): readonly WriterEdits[] {
    return this.#inherited;
  }

  /** Number of application calls that made the inherited edits. */
  get inheritedMade(): number {
    return this.#inherited.reduce((sum, { sent }) => sum + sent.reduce((made, edit) => made + edit.made, 0), 0);
  }

  receiveJoined(client: ClientId): void {
    this.#client = client;
    this.#isJoined = true;
  }

  inherit(numberings: readonly WriterEdits[]): void {
    this.#inherited = numberings.filter(({ sent }) => sent.length > 0);
    this.#isStale ||= this.#inherited.length > 0;
  }

  markStale(): void {
    this.#isStale = true;
  }

  /** Starts the next inherited numbering. Undefined: a fresh numbering with a new key. */
  takeNext(): WriterEdits | undefined {
    const next = this.#inherited.shift();
    this.#isInherited = this.#isStale = next !== undefined;
    this.#isJoined = false;
    return next;
  }
}

/** The part of the outbox that the writer key depends on. */
type NumberedEdits = {
  readonly needsNewKey: boolean;
  newKey(): ClientKey | undefined;
  keyIsStale(): void;
};

/**
 * Part of the dedupe window after which an edit is repeated only once the room is synced. A gateway may have lost its owner
 * before it lost the client, and both need time for the repeat.
 */
const REPEATABLE_SHARE = 0.5;

/** A page without a connection for this time takes a new key, because servers may have forgotten its numbering. */
export class WriterKey {
  readonly #outbox: NumberedEdits;
  readonly #fresh: () => ClientKey;
  /** Servers remember the numbering of an absent client for at least this long. */
  readonly #dedupeMs: number;
  #key: ClientKey;
  /** When the connection was last known to work. */
  #lastReceivedAt: Millis | undefined;

  /** `fresh`: returns a key that is hard to guess and used by no other page. */
  constructor(outbox: NumberedEdits, fresh: () => ClientKey, dedupeMs: number) {
    this.#outbox = outbox;
    this.#fresh = fresh;
    this.#dedupeMs = dedupeMs;
    this.#key = fresh();
  }

  get key(): ClientKey {
    return this.#key;
  }

  receiveSign(at: Millis): void {
    this.#lastReceivedAt = at;
  }

  /** Call before the room is joined on a new connection. True: servers may have forgotten the numbering, or may soon. */
  receiveReturn(now: Millis): boolean {
    const silentMs = now - (this.#lastReceivedAt ?? now);
    if (silentMs > this.#dedupeMs) this.#outbox.keyIsStale();
    this.renewIfNeeded();
    return silentMs > this.#dedupeMs * REPEATABLE_SHARE;
  }

  /** True: the room is to be joined again with the new key. */
  renewIfNeeded(): boolean {
    if (!this.#outbox.needsNewKey) return false;
    this.#key = this.#outbox.newKey() ?? this.#fresh();
    return true;
  }
}
