/**
 * Keeps this client's edits of one room until they are acknowledged. A sent edit keeps its counter and its bytes
 * (`send-window.ts`). Others may still be merged (`unsent.ts`). Edits of earlier pages go first, under their own keys
 * (`writer-numbering.ts`). `edit-sender.ts` decides when edits leave. Rules OBX1 to OBX18.
 */

import type { ClientId, ClientKey, Millis, Seq } from "../../shared/ids.ts";
import type { Counter, NackReason } from "../../shared/wire/frames.ts";
import type { Inheritance, Pending } from "../persistence/journal.ts";
import { SendWindow, type SendWindowOptions } from "./send-window.ts";
import { type SentEdit, Unsent, type UnsentOptions } from "./unsent.ts";
import { WriterNumbering } from "./writer-numbering.ts";

export type OutboxOptions = UnsentOptions & SendWindowOptions;

/** For an edit that is sent for the first time, and for one that is sent again. */
type TakenBytes = { readonly bytesMax: number; readonly resentBytesMax: number };

type NextEdit =
  | { readonly kind: "edit"; readonly edit: SentEdit; readonly ackedThrough: Counter }
  /** The edit is sent once it is stored on this device. */
  | { readonly kind: "numbered" }
  /** The edit cannot be cut small enough and is dropped. */
  | { readonly kind: "too-large"; readonly payload: Uint8Array }
  /** The edit was sent before and is too large for this connection. It will be cut or left out. */
  | { readonly kind: "taken-back" };

export class Outbox {
  readonly #canCut: boolean;
  readonly #unsent: Unsent;
  readonly #window: SendWindow;
  readonly #numbering = new WriterNumbering();
  #keepsFirst = false; // Edits are sent only once they are stored on this device.
  #keptThrough: Counter = 0;
  readonly #changes = { made: 0, settled: 0 };

  constructor(options: OutboxOptions) {
    this.#canCut = options.format !== undefined;
    this.#unsent = new Unsent(options);
    this.#window = new SendWindow(options);
  }

  /** Number of the application's edits that are not acknowledged. */
  get unsavedEdits(): number {
    return this.#numbering.inheritedMade + this.#window.made + this.#unsent.made;
  }

  get isEmpty(): boolean {
    return this.#window.isEmpty && this.#unsent.isEmpty && this.#numbering.inherited.length === 0;
  }

  /** Two counts: `made` rises when `pending` has something new, `settled` when something was only removed from it. */
  get changes(): { readonly made: number; readonly settled: number } {
    return this.#changes;
  }

  /** All edits that wait here. `clientKey`: the key of those in the send window. */
  pending(clientKey: ClientKey): Pending {
    const sent = [{ clientKey, sent: this.#window.edits }, ...this.#numbering.inherited].flatMap(({ clientKey: key, sent: edits }) =>
      edits.map((edit) => [edit, { clientKey: key, client: edit.client, counter: edit.counter, parentSeq: edit.parentSeq }] as const),
    );
    return { sent, unsent: this.#unsent.waiting };
  }

  get ackedThrough(): Counter {
    return this.#window.ackedThrough;
  }

  /** The highest counter in use. */
  get lastSent(): Counter {
    return this.#window.lastSent;
  }

  /** The highest counter with this key that is this page's own. An earlier page may have sent more edits than it stored. */
  get ownThrough(): Counter {
    return this.#numbering.isInherited ? this.lastSent : Infinity;
  }

  /** Whether the next numbering has to begin with another client key, and can. */
  get needsNewKey(): boolean {
    return this.#numbering.isStale && this.#window.isEmpty;
  }

  /** False: too many edits are waiting. */
  add(payload: Uint8Array): boolean {
    const isTaken = this.#unsent.add(payload);
    if (isTaken) this.#changes.made += 1;
    return isTaken;
  }

  /** Takes over the edits of earlier pages. All of them are stored and precede this page's unsent edits. Sent ones stay in flight. */
  inherit({ numberings, unsent }: Inheritance): void {
    this.#numbering.inherit(numberings);
    this.#unsent.putBack(unsent);
  }

  keepFirst(keepsFirst: boolean): void {
    this.#keepsFirst = keepsFirst;
  }

  /** All edits numbered up to `through` are stored. */
  receiveKept(through: Counter): void {
    this.#keptThrough = Math.max(this.#keptThrough, through);
  }

  /** The room is joined: everything in flight is sent again, in order. */
  joined(client: ClientId, now: Millis): void {
    this.#numbering.receiveJoined(client);
    this.#window.restart(now);
  }

  /** Edits that were sent stay under the old key until they are acknowledged. The others take the next key. */
  keyIsStale(): void {
    this.#numbering.markStale();
  }

  /** Starts the next numbering. Returns its inherited key; undefined: take a fresh one. */
  newKey(): ClientKey | undefined {
    const inherited = this.#numbering.takeNext();
    this.#window.begin(inherited?.sent ?? []);
    this.#keptThrough = this.lastSent;
    return inherited?.clientKey;
  }

  /** `windowMax`: maximum number of unacknowledged edits on their way, whether sent again or for the first time. */
  hasNext(windowMax: number, now: Millis): boolean {
    const window = this.#window;
    if (!window.isOpen(windowMax, now)) return false;
    if (window.leavesOutNext) return true;
    if (window.next !== undefined) return !this.#keepsFirst || window.cursor <= this.#keptThrough;
    return !this.#numbering.isStale && !this.#unsent.isEmpty && window.takesAnother;
  }

  /** Bytes of the edit to send next, if it was sent before; else 0. */
  get resentBytes(): number {
    return this.#window.next?.payload.byteLength ?? 0;
  }

  /** Call only after `hasNext`. A server answers an edit above its own limit, as long as the edit fits into a frame. */
  takeNext(parentSeq: Seq, { bytesMax, resentBytesMax }: TakenBytes, now: Millis): NextEdit {
    const window = this.#window;
    let edit = window.next;
    if (edit !== undefined && window.leavesOutNext) {
      window.leaveOut(edit);
      this.#changes.settled += 1;
      return { kind: "too-large", payload: edit.payload };
    }
    if (edit === undefined) {
      const taken = this.#unsent.take(bytesMax);
      this.#changes.made += 1;
      if (taken.kind === "too-large") return taken;
      edit = { client: this.#numbering.client, counter: window.cursor, parentSeq, ...taken.edit };
      window.push(edit);
      if (this.#keepsFirst) return { kind: "numbered" };
    } else if (edit.payload.byteLength > resentBytesMax) {
      this.#receiveUnsendable(edit.counter);
      return { kind: "taken-back" };
    }
    window.advance(now);
    return { kind: "edit", edit, ackedThrough: this.ackedThrough };
  }

  /** Everything up to `through` is committed. Returns the edits that this settles, in order. */
  receiveAck(through: Counter, now: Millis): SentEdit[] {
    if (!this.#numbering.isJoined) return [];
    const settled = this.#window.receiveAck(Math.min(through, this.ownThrough), now);
    if (settled.length > 0) this.#changes.settled += 1;
    return settled;
  }

  /** True: a copy of this page has the same key and sent the edit that the log has. This page's edits get a new key. */
  receiveLogged(counter: Counter, payload: Uint8Array): boolean {
    if (!this.#numbering.isJoined || this.#numbering.isStale || !this.#window.isOther(counter, payload)) return false;
    this.#sendUnderNewKey(counter);
    return true;
  }

  /** Returns the edit's bytes if it is too large. It then waits to be cut or left out. */
  receiveNack(counter: Counter, reason: NackReason, expected: Counter, retryAfterMs: number, now: Millis): number | undefined {
    // The edit was settled in the meantime, or belongs to another client.
    if (!this.#numbering.isJoined || !this.#window.has(counter)) return undefined;
    switch (reason) {
      case "gap":
        this.#window.receiveGap(expected, now);
        return undefined;
      case "write-backpressure":
      case "log-stalled":
      case "tenant-rate":
        this.#window.receiveBackpressure(counter, retryAfterMs, now);
        return undefined;
      case "too-large": {
        const refusedBytes = this.#window.bytesOf(counter);
        this.#unsent.receiveTooLarge(refusedBytes);
        this.#receiveUnsendable(counter);
        return refusedBytes;
      }
      case "read-only": // `EditSender` stops sending.
      case "forged": // About a resubmitted edit of another client.
        return undefined;
    }
  }

  /** Sends everything in flight again if no answer came for long. */
  receiveTick(now: Millis): void {
    this.#window.receiveTick(now);
  }

  /** The time of the next tick. `answersExpected`: a missing answer means that something was lost. */
  dueAt(answersExpected: boolean, now: Millis): Millis | undefined {
    return this.#window.dueAt(answersExpected, now);
  }

  /**
   * Cuts an edit that is too large. Another server may have the later edits, so their counters keep their bytes. If
   * they are ordered too, the format tolerates it. An edit that cannot be cut is reported when its turn comes.
   */
  #receiveUnsendable(counter: Counter): void {
    if (this.#canCut) this.#sendUnderNewKey(counter);
    else this.#window.planLeavingOut(counter);
  }

  #sendUnderNewKey(from: Counter): void {
    if (this.#window.has(from)) this.#unsent.putBack(this.#window.takeBackFrom(from));
    this.#changes.made += 1;
    this.#numbering.markStale();
  }
}
