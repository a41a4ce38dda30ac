/**
 * Takes one room's records into its document, in log order. The states: `opening` until its checkpoint is known, then
 * `open`, and `behind-gap` while it looks for a newer checkpoint that explains a gap in the log. Records that arrive
 * during such a lookup wait. The invariant: no record after a gap is taken before the lookup has ended.
 */

import type { Checkpoint } from "../../shared/bus/checkpoint.ts";
import type { StoredRecord } from "../../shared/bus/record.ts";
import type { Millis } from "../../shared/ids.ts";
import { Document, type RecordReceipt } from "./document.ts";
import type { DocumentRoomEffect, StoreFailure } from "./room-messages.ts";

export type RecordIntakeOptions = {
  readonly checkpointClientsMax: number;
  readonly checkpointClientMsMax: number;
  readonly checkpointClientsBytesMax: number;
};

/**
 * `readAfter`: the room receives each of its records after this one. `lostSnapshot`: the room is read without a checkpoint
 * that names this object, because the log still has every record.
 */
export type RoomReading = { readonly readAfter: number; readonly lostSnapshot?: string | undefined };

export const RETRY_MS = 500;
/** Interval between two reads of a checkpoint that does not decode. Many rooms may have one, and a person has to repair each. */
export const UNDECODABLE_RETRY_MS = 10_000;

/** `retryAt` undefined: the checkpoint is being read. */
type Lookup = { readonly waiting: StoredRecord[]; retryAt: Millis | undefined };

type IntakeState =
  | { readonly kind: "opening"; readonly lookup: Lookup }
  | { readonly kind: "open"; readonly document: Document }
  | { readonly kind: "behind-gap"; readonly document: Document; readonly lookup: Lookup };

/** The records that the document has taken, and the effects that follow. */
export type IntakeStep = { readonly taken: StoredRecord[]; readonly effects: DocumentRoomEffect[] };

export class RecordIntake {
  readonly #options: RecordIntakeOptions;
  readonly #readAfter: number;
  /** Set if this room, or the room that replaces it, is read without the checkpoint that names this object. */
  #lostSnapshot: string | undefined;
  #state: IntakeState = { kind: "opening", lookup: { waiting: [], retryAt: undefined } };
  /** The last lookup found a checkpoint that does not decode. */
  #isUndecodable = false;
  /** The first record that was dropped from memory. */
  #missingFrom: number | undefined;
  #isSetAside = false;
  #isOutdated = false;

  /** The first effect to carry out reads the checkpoint for "opening". */
  constructor(options: RecordIntakeOptions, { readAfter, lostSnapshot }: RoomReading) {
    this.#options = options;
    this.#readAfter = readAfter;
    this.#lostSnapshot = lostSnapshot;
  }

  get state(): IntakeState["kind"] {
    return this.#state.kind;
  }

  /** Undefined until the checkpoint is known. */
  get document(): Document | undefined {
    return this.#state.kind === "opening" ? undefined : this.#state.document;
  }

  get isUndecodable(): boolean {
    return this.#isUndecodable;
  }

  /** The room takes no more records in this run. */
  get isSetAside(): boolean {
    return this.#isSetAside;
  }

  get lostSnapshot(): string | undefined {
    return this.#lostSnapshot;
  }

  /** The document starts from a checkpoint that is not stored any more. */
  get isOutdated(): boolean {
    return this.#isOutdated;
  }

  /** The stream sequence up to which the document has the room's records. 0: there is neither a checkpoint nor a record. */
  get appliedThrough(): number {
    return this.document?.applied.streamSeq ?? 0;
  }

  get heldBytes(): number {
    return this.#waitingBytes + (this.document?.heldBytes ?? 0);
  }

  /** The first stream sequence of the room that no snapshot may cover yet. */
  get uncoveredFrom(): number | undefined {
    const { uncovered } = this.document ?? {};
    if (uncovered !== undefined) return Math.min(uncovered.fromStreamSeq, this.#missingFrom ?? uncovered.fromStreamSeq);
    return this.#missingFrom ?? this.#lookup?.waiting[0]?.streamSeq;
  }

  /** The place in the log from which a new room reads again, once it can take the records that this one dropped. */
  get readAgainFrom(): number | undefined {
    return this.#missingFrom === undefined || this.#lookup !== undefined ? undefined : this.uncoveredFrom;
  }

  receiveRecord(stored: StoredRecord, step: IntakeStep): void {
    if (this.#isSetAside) return;
    if (this.#state.kind !== "open") return void this.#state.lookup.waiting.push(stored);
    const { document } = this.#state;
    if (this.#take(stored, document.receiveRecord(stored), step) !== "gap") return;
    this.#state = { kind: "behind-gap", document, lookup: { waiting: [stored], retryAt: undefined } };
    step.effects.push({ kind: "read-checkpoint", reader: "gap" });
  }

  /** The outcome of the first lookup. */
  receiveFirstCheckpoint(checkpoint: Checkpoint | undefined, step: IntakeStep): void {
    if (this.#state.kind !== "opening") return;
    const { checkpointClientMsMax: silenceMsMax, checkpointClientsMax: clientsMax, checkpointClientsBytesMax: bytesMax } = this.#options;
    this.#endLookup(new Document(checkpoint, { silenceMsMax, clientsMax, bytesMax }), this.#state.lookup.waiting, step);
  }

  /**
   * The document continues from the newest checkpoint. A gap that still exists is permanent, if all records since the
   * document's last one were read. Otherwise the log may have them, and it is read again.
   */
  receiveGapLookedUp(step: IntakeStep): void {
    if (this.#state.kind !== "behind-gap") return;
    const { document, lookup } = this.#state;
    const [first, ...rest] = lookup.waiting;
    if (this.#isSetAside) return this.#endLookup(document, [], step);
    if (first !== undefined && this.#take(first, document.receiveRecord(first), step) === "gap") {
      const { streamSeq: after } = document.applied;
      if (after < this.#readAfter) {
        this.readAgain(document, after + 1);
        return this.#endLookup(document, [], step);
      }
      step.effects.push({ kind: "report", report: { kind: "gap-crossed", streamSeq: first.streamSeq, after: document.applied } });
      this.#take(first, document.receiveAcrossGap(first), step);
    }
    this.#endLookup(document, rest, step);
  }

  receiveLookupFailed({ isUndecodable }: StoreFailure, now: Millis): void {
    this.#isUndecodable = isUndecodable;
    if (this.#lookup !== undefined) this.#lookup.retryAt = (now + (isUndecodable ? UNDECODABLE_RETRY_MS : RETRY_MS)) as Millis;
  }

  retryLookupIfDue(now: Millis, effects: DocumentRoomEffect[]): void {
    if (this.#state.kind === "open" || this.#state.lookup.retryAt === undefined || now < this.#state.lookup.retryAt) return;
    this.#state.lookup.retryAt = undefined;
    effects.push({ kind: "read-checkpoint", reader: this.#state.kind === "opening" ? "opening" : "gap" });
  }

  /** Drops the edits that wait for a merge. The partition's floor stays below them, so the next reader reads all of them again. */
  setAside(document: Document, effects: DocumentRoomEffect[]): void {
    this.#isSetAside = true;
    this.#missingFrom = document.uncovered?.fromStreamSeq;
    effects.push({ kind: "report", report: { kind: "set-aside", after: document.merged?.applied, bytes: document.pending.bytes } });
    document.dropPending();
  }

  /**
   * The stored checkpoint is not the one that the document starts from. So the next reader reads everything after the
   * stored one again.
   */
  readAgain(document: Document, from: number, lostSnapshot = this.#lostSnapshot): void {
    this.#isSetAside = this.#isOutdated = true;
    this.#lostSnapshot = lostSnapshot;
    this.#missingFrom = Math.min(from, document.uncovered?.fromStreamSeq ?? from);
    document.dropPending();
  }

  /** Drops the records that wait for a checkpoint that does not decode: the log has them too. */
  releaseUndecodable(effects: DocumentRoomEffect[]): void {
    const lookup = this.#lookup;
    const first = lookup?.waiting[0];
    if (!this.#isUndecodable || lookup === undefined || first === undefined) return;
    effects.push({ kind: "report", report: { kind: "released-undecodable", fromStreamSeq: first.streamSeq, bytes: this.heldBytes } });
    this.#missingFrom = first.streamSeq;
    this.#isSetAside = true;
    lookup.waiting.length = 0;
  }

  /** The room is deleted. */
  stop(): void {
    this.#isSetAside = true;
    if (this.#lookup !== undefined) this.#lookup.waiting.length = 0;
  }

  get #lookup(): Lookup | undefined {
    return this.#state.kind === "open" ? undefined : this.#state.lookup;
  }

  get #waitingBytes(): number {
    return this.#lookup?.waiting.reduce((bytes, stored) => bytes + stored.bytes.byteLength, 0) ?? 0;
  }

  #endLookup(document: Document, waiting: readonly StoredRecord[], step: IntakeStep): void {
    this.#isUndecodable = false;
    this.#state = { kind: "open", document };
    for (const stored of waiting) this.receiveRecord(stored, step);
  }

  #take(stored: StoredRecord, receipt: RecordReceipt, { taken, effects }: IntakeStep): RecordReceipt["kind"] {
    if (receipt.kind === "repeat" || receipt.kind === "gap") return receipt.kind;
    if (receipt.kind === "unreadable") effects.push({ kind: "report", report: { kind: "record-unreadable", streamSeq: stored.streamSeq } });
    else if (receipt.forgotten > 0) effects.push({ kind: "report", report: { kind: "writers-forgotten", count: receipt.forgotten } });
    taken.push(stored);
    return receipt.kind;
  }
}
