/**
 * Decides which data of a room is written to the local store, and when: unacknowledged edits, and the content up to the
 * current position. An edit is stored before it is sent, so that after a page reload the client can send it again with
 * the same counter. If the store cannot be written, the room continues without it. A store that opens late is used from
 * then on. Deterministic. Rules KEE1 to KEE15.
 */

import type { ClientKey, Millis, Position } from "../../shared/ids.ts";
import type { Counter } from "../../shared/wire/frames.ts";
import type { Outbox } from "../room/outbox.ts";
import type { Problem } from "../room/problems.ts";
import type { RoomSessionEffect } from "../room/room-messages.ts";
import { DocumentChanges } from "./document-changes.ts";
import type { KeptEdit } from "./edit-store.ts";
import { inherit, type Inheritance, Journal } from "./journal.ts";

export type PersistenceOptions = {
  /** False: payloads cannot be condensed, so only unacknowledged edits are stored. */
  readonly keepsDocument: boolean;
  readonly openMsMax: number;
  readonly writeMsMax: number;
  /** Milliseconds for which edits of others are collected before they are written. */
  readonly delayMs: number;
  readonly retryMs: number;
  /** Maximum bytes of the document that wait to be written. Above it, the document is no longer stored. */
  readonly bytesMax: number;
};

type State =
  /** The store could not be opened, or the room is deleted. */
  | { readonly kind: "off" }
  | ({ readonly kind: "opening" } & Partial<Wait>)
  /** The store did not open in time. The room continues without the store until it opens. */
  | { readonly kind: "late" }
  | { readonly kind: "ready" }
  /** `isRetry`: edits are sent without waiting for this write. */
  | ({ readonly kind: "writing"; readonly write: Write; readonly isRetry: boolean } & Wait)
  | { readonly kind: "failed"; readonly until: Millis };

/**
 * A deadline of the store, in two halves. The second half starts when the first is found to be over. So the store still
 * has time to answer on a device that slept or whose clock was set forward.
 */
type Wait = { readonly until: Millis; readonly isSecondHalf: boolean };

/** The outbox's state at the time of the write. */
type Write = {
  readonly number: number;
  readonly clientKey: ClientKey;
  readonly through: Counter;
  readonly made: number;
  readonly settled: number;
};

const NO_ANSWER = new Error("the store did not answer in time");
/** Differs from every count of the outbox. */
const NOTHING_KEPT = -1;

export class RoomPersistence {
  readonly #options: PersistenceOptions;
  readonly #outbox: Outbox;
  readonly #journal = new Journal();
  readonly #document: DocumentChanges;
  #state: State = { kind: "opening" };
  #keepsDocument: boolean;
  #lastWrite = 0;
  /** The outbox's counts at the last confirmed write. */
  #keptMade = 0;
  #keptSettled = 0;
  /** Time at which changes that are not urgent are written. */
  #laterAt: Millis | undefined;

  constructor(options: PersistenceOptions, outbox: Outbox) {
    this.#options = options;
    this.#keepsDocument = options.keepsDocument;
    this.#outbox = outbox;
    this.#document = new DocumentChanges(options.bytesMax);
  }

  get isOpening(): boolean {
    return this.#state.kind === "opening";
  }

  get isLate(): boolean {
    return this.#state.kind === "late";
  }

  /** All unacknowledged edits are stored. */
  get isKept(): boolean {
    return (this.#state.kind === "ready" || this.#state.kind === "writing") && this.#keptMade === this.#outbox.changes.made;
  }

  /** There is nothing left to write. */
  get isDone(): boolean {
    return this.#isWithout || this.#state.kind === "failed" || (this.#state.kind === "ready" && !this.#hasChanges);
  }

  /** Nothing can be written now or soon. */
  get #isWithout(): boolean {
    return this.#state.kind === "off" || this.#state.kind === "late";
  }

  dueAt(now: Millis): Millis | undefined {
    switch (this.#state.kind) {
      case "off":
      case "late":
        return undefined;
      case "ready":
        return this.#hasUrgentChanges ? now : this.#laterAt;
      case "opening":
      case "writing":
      case "failed":
        return this.#state.until;
    }
  }

  /**
   * The store is open. Returns what earlier pages left in it. `hasBegun`: the room has received content without the store.
   * Then this page stores only edits: its content does not continue the stored document, which may be the only copy of
   * what the log has lost.
   */
  receiveOpened(kept: readonly KeptEdit[], hasBegun: boolean): Inheritance {
    const inheritance = inherit(kept);
    this.#journal.begin(inheritance.places);
    this.#keepsDocument &&= !hasBegun;
    this.#outbox.keepFirst(true);
    this.#state = { kind: "ready" };
    return inheritance;
  }

  /** `number`: the number of the write. */
  receiveWritten(number: number, clientKey: ClientKey): void {
    if (this.#state.kind !== "writing" || this.#state.write.number !== number) return; // The write had already timed out.
    const { write } = this.#state;
    this.#journal.kept();
    this.#keptMade = write.made;
    this.#keptSettled = write.settled;
    this.#document.kept();
    this.#state = { kind: "ready" };
    if (write.clientKey === clientKey) this.#outbox.receiveKept(write.through);
  }

  /** The store could not be opened, or a write failed. Writing is tried again, and edits no longer wait for it. */
  receiveFailed(number: number | undefined, cause: unknown, now: Millis, effects: RoomSessionEffect[]): void {
    const state = this.#state;
    if ((state.kind === "opening" || state.kind === "late") && number === undefined) {
      this.#state = { kind: "off" };
      if (state.kind === "late") return; // The timeout was reported already.
    } else if (state.kind === "writing" && number === state.write.number) {
      this.#document.notKept();
      this.#state = { kind: "failed", until: (now + this.#options.retryMs) as Millis };
    } else {
      return; // The timeout was reported already.
    }
    if (state.kind === "opening" || !state.isRetry) effects.push({ kind: "problem", problem: storageFailed(cause) });
  }

  /** The store may have lost its content: everything is written again, and the write in progress no longer counts. */
  receiveStoreLost(): void {
    if (this.#isWithout || this.#state.kind === "opening") return;
    this.#journal.lost();
    this.#document.notKept();
    this.#keptMade = NOTHING_KEPT;
    if (this.#state.kind === "writing") this.#state = { kind: "ready" };
  }

  /** The room is deleted: nothing of it is stored any more. */
  forget(effects: RoomSessionEffect[]): void {
    effects.push({ kind: "forget-room" });
    this.#state = { kind: "off" };
    this.#outbox.keepFirst(false);
  }

  /** Content that the application is about to receive. `position`: the position after it. */
  observe(effects: readonly RoomSessionEffect[], position: Position): void {
    if (this.#isWithout || !this.#keepsDocument) return;
    for (const effect of effects) this.#document.observe(effect, position);
  }

  /**
   * Adds the write that is due now. `isEnd`: write everything, because the page may end. `isSynced`: the room's content
   * is complete.
   */
  follow(
    { clientKey, isEnd, isSynced }: { clientKey: ClientKey; isEnd: boolean; isSynced: boolean },
    now: Millis,
    effects: RoomSessionEffect[],
  ): void {
    if (this.#isWithout) return;
    this.#writeLater(now);
    this.#goOn(now, effects);
    if (this.#state.kind === "ready" && (this.#hasUrgentChanges || (this.#hasChanges && (isEnd || now >= this.#laterAt!)))) {
      this.#write(clientKey, false, now, effects);
    } else if (this.#state.kind === "failed" && (isEnd || now >= this.#state.until)) {
      this.#write(clientKey, true, now, effects);
    }
    this.#outbox.keepFirst(this.#state.kind === "ready" || (this.#state.kind === "writing" && !this.#state.isRetry));
    if (!isSynced) return;
    this.#document.release(); // Only now: edits that the application makes on "synced" are written together with it.
    this.#writeLater(now);
  }

  #writeLater(now: Millis): void {
    this.#laterAt = this.#hasChanges ? (this.#laterAt ?? ((now + this.#options.delayMs) as Millis)) : undefined;
  }

  get #hasUrgentChanges(): boolean {
    return this.#keptMade !== this.#outbox.changes.made;
  }

  get #hasChanges(): boolean {
    return this.#hasUrgentChanges || this.#keptSettled !== this.#outbox.changes.settled || this.#document.isWaiting;
  }

  /** A store that does not answer in time counts as failed. */
  #goOn(now: Millis, effects: RoomSessionEffect[]): void {
    const state = this.#state;
    if (state.kind !== "opening" && state.kind !== "writing") return;
    if (state.until === undefined) {
      this.#state = { ...state, ...this.#wait(state.kind, now, false) };
    } else if (now >= state.until && !state.isSecondHalf) {
      this.#state = { ...state, ...this.#wait(state.kind, now, true) };
    } else if (now >= state.until) {
      this.receiveFailed(state.kind === "writing" ? state.write.number : undefined, NO_ANSWER, now, effects);
      if (state.kind === "opening") this.#state = { kind: "late" };
    }
  }

  #wait(what: "opening" | "writing", now: Millis, isSecondHalf: boolean): Wait {
    const { openMsMax, writeMsMax } = this.#options;
    return { until: (now + (what === "opening" ? openMsMax : writeMsMax) / 2) as Millis, isSecondHalf };
  }

  #write(clientKey: ClientKey, isRetry: boolean, now: Millis, effects: RoomSessionEffect[]): void {
    this.#lastWrite += 1;
    const { made, settled } = this.#outbox.changes;
    const write = { number: this.#lastWrite, clientKey, through: this.#outbox.lastSent, made, settled };
    this.#state = { kind: "writing", write, isRetry, ...this.#wait("writing", now, false) };
    this.#laterAt = undefined;
    const { put, drop } = this.#journal.plan(this.#outbox.pending(clientKey));
    effects.push({ kind: "keep", write: write.number, change: { put, drop, document: this.#document.take() } });
  }
}

export function storageFailed(cause: unknown): Problem {
  return {
    kind: "storage-failed",
    cause,
    message: `cannot store edits on this device, they are only in memory until they are acknowledged: ${cause instanceof Error ? cause.message : String(cause)}`,
  };
}
