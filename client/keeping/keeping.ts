/**
 * Keeps a room on this device: what waits here, and the room's content up to where this page has come. Says what to
 * write and when; edits go out only once they are kept, so that a page that comes after this one knows what each was
 * sent as. Where nothing can be kept the room goes on without. Deterministic. Rules KEE1 to KEE11.
 */

import type { ClientKey, Millis, Position } from "../../shared/ids.ts";
import type { Counter } from "../../shared/wire/frames.ts";
import { DocumentChanges } from "./document-changes.ts";
import { Journal, type JournalEntry } from "./journal.ts";
import type { Outbox } from "../room/outbox.ts";
import { storageFailed } from "../room/problems.ts";
import type { RoomEffect } from "../room/room-messages.ts";

export type KeepingOptions = {
  /** False: there is no store. */
  readonly isWanted: boolean;
  /** False: payloads cannot be condensed, and only what waits is kept. */
  readonly keepsDocument: boolean;
  readonly openMsMax: number;
  readonly writeMsMax: number;
  /** What only others did is written so much later, many edits at once. */
  readonly delayMs: number;
  readonly retryMs: number;
  /** Of the document, waiting to be written. Past it the document is kept no further. */
  readonly bytesMax: number;
};

type State =
  /** There is no store, or it could not be opened. */
  | { readonly kind: "off" }
  | ({ readonly kind: "opening" } & Partial<Wait>)
  | { readonly kind: "ready" }
  /** `isRetry`: edits do not wait for it. */
  | ({ readonly kind: "writing"; readonly write: Write; readonly isRetry: boolean } & Wait)
  | { readonly kind: "failed"; readonly until: Millis };

/**
 * For the store, in two halves, the second from when the first was found to be over: a device that slept meanwhile, or
 * whose date was set ahead, finds much time gone that the store has not had.
 */
type Wait = { readonly until: Millis; readonly isSecondHalf: boolean };

/** What it puts right once it is kept. */
type Write = {
  readonly number: number;
  readonly clientKey: ClientKey;
  readonly through: Counter;
  readonly made: number;
  readonly settled: number;
};

/** No count of the outbox. */
const NOTHING_KEPT = -1;

export class Keeping {
  readonly #options: KeepingOptions;
  readonly #outbox: Outbox;
  readonly #journal = new Journal();
  readonly #document: DocumentChanges;
  #state: State;
  #lastWrite = 0;
  /** The outbox's counts as of the last write that was kept. */
  #keptMade = 0;
  #keptSettled = 0;
  /** When what is less urgent is written. */
  #laterAt: Millis | undefined;

  constructor(options: KeepingOptions, outbox: Outbox) {
    this.#options = options;
    this.#outbox = outbox;
    this.#document = new DocumentChanges(options.bytesMax);
    this.#state = options.isWanted ? { kind: "opening" } : { kind: "off" };
  }

  get isOpening(): boolean {
    return this.#state.kind === "opening";
  }

  /** Everything that waits here is kept. */
  get isKept(): boolean {
    return (this.#state.kind === "ready" || this.#state.kind === "writing") && this.#keptMade === this.#outbox.changes.made;
  }

  /** Nothing is to be written any more. */
  get isDone(): boolean {
    return this.#state.kind === "off" || this.#state.kind === "failed" || (this.#state.kind === "ready" && !this.#hasChanges);
  }

  dueAt(now: Millis): Millis | undefined {
    switch (this.#state.kind) {
      case "off":
        return undefined;
      case "ready":
        return this.#hasUrgentChanges ? now : this.#laterAt;
      case "opening":
      case "writing":
      case "failed":
        return this.#state.until;
    }
  }

  /** What is kept already, each edit with its place. */
  opened(places: readonly (readonly [JournalEntry, number])[]): void {
    this.#journal.begin(places);
    this.#state = { kind: "ready" };
  }

  /** `number`: of which write. */
  kept(number: number, clientKey: ClientKey): void {
    if (this.#state.kind !== "writing" || this.#state.write.number !== number) return; // It took too long.
    const { write } = this.#state;
    this.#journal.kept();
    this.#keptMade = write.made;
    this.#keptSettled = write.settled;
    this.#document.kept();
    this.#state = { kind: "ready" };
    if (write.clientKey === clientKey) this.#outbox.receiveKept(write.through);
  }

  /** The store could not be opened, or a write failed: it is tried again, and edits wait for it no longer. */
  failed(number: number | undefined, cause: unknown, now: Millis, effects: RoomEffect[]): void {
    const state = this.#state;
    if (state.kind === "opening" && number === undefined) {
      this.#state = { kind: "off" };
    } else if (state.kind === "writing" && number === state.write.number) {
      this.#document.notKept();
      this.#state = { kind: "failed", until: (now + this.#options.retryMs) as Millis };
    } else {
      return; // It took too long, and was told then.
    }
    if (state.kind === "opening" || !state.isRetry) effects.push({ kind: "problem", problem: storageFailed(cause) });
  }

  /** What was kept may be gone: all that waits is written anew, and what is being written says nothing. */
  lost(): void {
    if (this.#state.kind === "off" || this.#state.kind === "opening") return;
    this.#journal.lost();
    this.#document.notKept();
    this.#keptMade = NOTHING_KEPT;
    if (this.#state.kind === "writing") this.#state = { kind: "ready" };
  }

  /** The room is deleted: nothing of it is kept from here on. */
  forget(effects: RoomEffect[]): void {
    if (this.#options.isWanted) effects.push({ kind: "forget-room" });
    this.#state = { kind: "off" };
    this.#outbox.keepFirst(false);
  }

  /** What the application is about to be given of the room's content. `position`: how far that goes. */
  observe(effects: readonly RoomEffect[], position: Position): void {
    if (this.#state.kind === "off" || !this.#options.keepsDocument) return;
    for (const effect of effects) this.#document.observe(effect, position);
  }

  /** Adds what is to be written now. `isEnd`: all of it, for there may be no later. `isSynced`: the room is known whole. */
  follow(
    { clientKey, isEnd, isSynced }: { clientKey: ClientKey; isEnd: boolean; isSynced: boolean },
    now: Millis,
    effects: RoomEffect[],
  ): void {
    if (this.#state.kind === "off") return;
    this.#writeLater(now);
    this.#goOn(now, effects);
    if (this.#state.kind === "ready" && (this.#hasUrgentChanges || (this.#hasChanges && (isEnd || now >= this.#laterAt!)))) {
      this.#write(clientKey, false, now, effects);
    } else if (this.#state.kind === "failed" && (isEnd || now >= this.#state.until)) {
      this.#write(clientKey, true, now, effects);
    }
    this.#outbox.keepFirst(this.#state.kind === "ready" || (this.#state.kind === "writing" && !this.#state.isRetry));
    if (!isSynced) return;
    this.#document.release(); // Not before: what the application now gives the room is written together with it.
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

  /** What takes too long counts as failed. */
  #goOn(now: Millis, effects: RoomEffect[]): void {
    const state = this.#state;
    if (state.kind !== "opening" && state.kind !== "writing") return;
    if (state.until === undefined) {
      this.#state = { ...state, ...this.#wait(state.kind, now, false) };
    } else if (now >= state.until && !state.isSecondHalf) {
      this.#state = { ...state, ...this.#wait(state.kind, now, true) };
    } else if (now >= state.until) {
      this.failed(state.kind === "writing" ? state.write.number : undefined, new Error("the store did not answer in time"), now, effects);
    }
  }

  #wait(what: "opening" | "writing", now: Millis, isSecondHalf: boolean): Wait {
    const { openMsMax, writeMsMax } = this.#options;
    return { until: (now + (what === "opening" ? openMsMax : writeMsMax) / 2) as Millis, isSecondHalf };
  }

  #write(clientKey: ClientKey, isRetry: boolean, now: Millis, effects: RoomEffect[]): void {
    this.#lastWrite += 1;
    const { made, settled } = this.#outbox.changes;
    const write = { number: this.#lastWrite, clientKey, through: this.#outbox.lastSent, made, settled };
    this.#state = { kind: "writing", write, isRetry, ...this.#wait("writing", now, false) };
    this.#laterAt = undefined;
    const { put, drop } = this.#journal.plan(this.#outbox.pending(clientKey));
    effects.push({ kind: "keep", write: write.number, change: { put, drop, document: this.#document.take() } });
  }
}
