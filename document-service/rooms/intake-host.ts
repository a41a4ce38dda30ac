/**
 * Takes one room's records into its document, in order: looks up its checkpoint first, and keeps what comes
 * meanwhile. A hole in the log sends it to look for a newer checkpoint before anything behind the hole is taken.
 */

import type { StoredRecord } from "../../shared/bus/stored-record.ts";
import type { Clock } from "../../shared/clock.ts";
import type { RoomKey } from "../../shared/ids.ts";
import type { Log } from "../../shared/log.ts";
import { pause } from "../../shared/pause.ts";
import type { CheckpointHost } from "./checkpoint-host.ts";
import { Document, type Received } from "./document.ts";
import type { DocumentServiceMetrics } from "../metrics.ts";
import { Undecodable } from "../../shared/undecodable.ts";

export type IntakeOptions = {
  readonly checkpointClientsMax: number;
  readonly checkpointClientMsMax: number;
  readonly checkpointClientsBytesMax: number;
};
export type IntakeDeps = {
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: DocumentServiceMetrics;
  /** The document has taken the record. */
  readonly onTaken: (document: Document, stored: StoredRecord) => void;
  /** A newer checkpoint was looked for, and the document goes on from it if there was one. */
  readonly onCaughtUp: (document: Document) => void;
  /** It is asked again after a moment. */
  readonly onFailure: (what: string, cause: unknown) => void;
};

export const RETRY_MS = 500;
/** Rooms of which something does not decode may be many, and a person has to see to each. */
export const UNDECODABLE_RETRY_MS = 10_000;

export class IntakeHost {
  readonly #room: RoomKey;
  readonly #checkpoints: CheckpointHost;
  readonly #options: IntakeOptions;
  readonly #deps: IntakeDeps;
  readonly #closed = new AbortController();
  /** Resolves once its checkpoint is known; undefined: it was closed before. */
  readonly opened: Promise<Document | undefined>;
  /** Resolves once its checkpoint is known, or known not to decode, after which it is looked up seldom. */
  readonly lookedUp: Promise<unknown>;
  #tellUndecodable: (value?: unknown) => void = () => {};
  #document: Document | undefined;
  /** Records that wait while a checkpoint is looked up; undefined: none is. */
  #waiting: StoredRecord[] | undefined = [];
  /** The last look for its checkpoint found one that does not decode. */
  #isUndecodable = false;
  /** The first record that was let go. */
  #missingFrom: number | undefined;
  #isSetAside = false;

  constructor(room: RoomKey, checkpoints: CheckpointHost, options: IntakeOptions, deps: IntakeDeps) {
    this.#room = room;
    this.#checkpoints = checkpoints;
    this.#options = options;
    this.#deps = deps;
    const undecodable = new Promise((resolve) => (this.#tellUndecodable = resolve));
    this.opened = this.#open();
    this.lookedUp = Promise.race([this.opened, undecodable]);
  }

  /** Undefined until its checkpoint is known. */
  get document(): Document | undefined {
    return this.#document;
  }

  /** A checkpoint is looked up. */
  get isOpening(): boolean {
    return this.#waiting !== undefined;
  }

  /** Its checkpoint is there and does not decode: somebody has to see to it. */
  get isUndecodable(): boolean {
    return this.#isUndecodable;
  }

  /** Nothing more is taken in this run. */
  get isSetAside(): boolean {
    return this.#isSetAside;
  }

  get isClosed(): boolean {
    return this.#closed.signal.aborted;
  }

  get heldBytes(): number {
    const waiting = this.#waiting?.reduce((bytes, stored) => bytes + stored.bytes.byteLength, 0) ?? 0;
    return waiting + (this.#document?.heldBytes ?? 0);
  }

  /** The first stream sequence of the room that may not be in a snapshot yet. */
  get uncoveredFrom(): number | undefined {
    return this.#document?.uncovered?.fromStreamSeq ?? this.#missingFrom ?? this.#waiting?.[0]?.streamSeq;
  }

  /** Where the log is to be read again, by another in its place, once what stood in the way is gone. */
  get readAgainFrom(): number | undefined {
    return this.#missingFrom === undefined || this.isOpening ? undefined : this.uncoveredFrom;
  }

  receiveRecord(stored: StoredRecord): void {
    if (this.#isSetAside) return;
    if (this.#waiting !== undefined || this.#document === undefined) {
      this.#waiting?.push(stored);
    } else if (this.#take(this.#document, stored, this.#document.receiveRecord(stored)) === "gap") {
      void this.#lookBehindGap(this.#document, stored);
    }
  }

  /** What is not in a snapshot holds the floor down, so whoever comes next reads all of it again. */
  setAside(document: Document): void {
    this.#isSetAside = true;
    this.#missingFrom = document.uncovered?.fromStreamSeq;
    this.#deps.log.error(
      { room: this.#room, after: document.merged?.applied, bytes: document.pending.bytes },
      "the edits of a room that cannot be merged are too many to be kept; they are in the log, which is not trimmed, and are read again once its snapshot is there again, or when the service starts anew",
    );
    document.dropPending();
  }

  /**
   * Where its checkpoint does not decode, what waits may wait for long: it is in the log as well, and nothing more is
   * taken until that is read again.
   */
  letGo(): void {
    const first = this.#waiting?.[0];
    if (!this.#isUndecodable || first === undefined) return;
    this.#deps.log.error(
      { room: this.#room, fromStreamSeq: first.streamSeq, bytes: this.heldBytes },
      "memory is short, and edits of a room whose checkpoint does not decode are let go; they are read again from the log once it does",
    );
    this.#missingFrom = first.streamSeq;
    this.#isSetAside = true;
    this.#waiting = [];
  }

  /** The room is deleted: nothing more is taken. */
  drop(): void {
    this.#isSetAside = true;
    if (this.#waiting !== undefined) this.#waiting = [];
  }

  close(): void {
    this.#closed.abort();
  }

  async #open(): Promise<Document | undefined> {
    const checkpoint = await this.#untilDone(() => this.#checkpoints.read());
    if (checkpoint === "closed") return undefined;
    const { checkpointClientMsMax: silenceMsMax, checkpointClientsMax: clientsMax, checkpointClientsBytesMax: bytesMax } = this.#options;
    const document = new Document(checkpoint, { silenceMsMax, clientsMax, bytesMax });
    this.#document = document;
    this.#takeWaiting();
    return document;
  }

  /** Another service may have trimmed what is missing, behind a checkpoint newer than the one we began from. */
  async #lookBehindGap(document: Document, stored: StoredRecord): Promise<void> {
    this.#waiting = [stored];
    if ((await this.#untilDone(() => this.#checkpoints.catchUp(document))) === "closed") return;
    this.#deps.onCaughtUp(document);
    const [first, ...rest] = this.#waiting;
    if (first !== undefined && this.#take(document, first, document.receiveRecord(first)) === "gap") this.#takeAcrossGap(document, first);
    this.#waiting = rest;
    this.#takeWaiting();
  }

  #takeAcrossGap(document: Document, stored: StoredRecord): void {
    this.#deps.metrics.gaps.inc();
    this.#deps.log.error(
      { room: this.#room, streamSeq: stored.streamSeq, after: document.applied },
      "the log of a room has a hole that no checkpoint explains; its log is kept whole from here on",
    );
    this.#take(document, stored, document.receiveAcrossGap(stored));
  }

  #takeWaiting(): void {
    const waiting = this.#waiting ?? [];
    this.#waiting = undefined;
    for (const stored of waiting) this.receiveRecord(stored);
  }

  #take(document: Document, stored: StoredRecord, received: Received): Received["kind"] {
    if (received.kind === "repeat" || received.kind === "gap") return received.kind;
    if (received.kind === "unreadable") {
      this.#deps.metrics.unreadable.inc();
      this.#deps.log.error(
        { room: this.#room, streamSeq: stored.streamSeq },
        "a record of the log does not decode: was it written by a newer version? The room's log is kept whole from here on",
      );
    }
    if (received.kind === "applied" && received.forgotten > 0) this.#deps.metrics.forgottenWriters.inc(received.forgotten);
    this.#deps.onTaken(document, stored);
    return received.kind;
  }

  /** For what nothing can go on without. Whoever waits for it hears of the end as well. */
  async #untilDone<Value>(ask: () => Promise<Value>): Promise<Value | "closed"> {
    for (;;) {
      try {
        const value = await ask();
        this.#isUndecodable = false;
        return value;
      } catch (cause) {
        this.#deps.onFailure("its checkpoint could not be read", cause);
        this.#isUndecodable = cause instanceof Undecodable;
        if (this.#isUndecodable) this.#tellUndecodable();
        await pause(this.#deps.clock, this.#isUndecodable ? UNDECODABLE_RETRY_MS : RETRY_MS, this.#closed.signal);
        if (this.isClosed) return "closed";
      }
    }
  }
}
