/**
 * Keeps this client's edits of one room until they are acknowledged. What was never sent may still merge; what
 * was sent keeps its counter and its bytes, and is sent again in order for as long as it takes. What pages before this
 * one sent comes first, under their keys. Rules OBX1 to OBX17.
 */

import type { ClientId, ClientKey, Millis, Seq } from "../../shared/ids.ts";
import type { Counter, NackReason } from "../../shared/wire/frames.ts";
import type { Inheritance, Numbering } from "../keeping/inheritance.ts";
import type { Pending } from "../keeping/journal.ts";
import type { SentEdit } from "./waiting-edits.ts";
import { Unsent, type UnsentOptions } from "./unsent.ts";

export type OutboxOptions = UnsentOptions & {
  readonly inFlightEditsMax: number;
  readonly inFlightBytesMax: number;
  /** In-flight edits without an answer for so long are sent again; doubled each time. */
  readonly silenceMsMax: number;
};

/** Payloads' at most. */
export type TakenBytes = { readonly bytesMax: number; readonly resentBytesMax: number };

export type NextEdit =
  | { readonly kind: "edit"; readonly edit: SentEdit; readonly ackedThrough: Counter }
  /** It has its counter, and goes out once it is kept. */
  | { readonly kind: "numbered" }
  /** It stays out, for good: no smaller pieces can be made of it. */
  | { readonly kind: "too-large"; readonly payload: Uint8Array }
  /** Sent before, and too large for the line that is there now: it waits to be cut, or to be left out. */
  | { readonly kind: "taken-back" };

/** A gap refused again so soon is the echo of edits that were on their way. */
const GAP_ECHO_MS = 1_000;
const SILENCE_DOUBLINGS_MAX = 3;

export class Outbox {
  readonly #options: OutboxOptions;
  readonly #unsent: Unsent;
  /** In flight: sent under this client key at least once, not known to be committed. Counters follow each other. */
  #sent: SentEdit[] = [];
  #sentBytes = 0;
  #sentMade = 0;
  #ackedThrough: Counter = 0;
  /** The counter to send next: of an edit that is sent again, or the one right behind all of those. */
  #cursor: Counter = 1;
  #client: ClientId | undefined;
  #waitUntil = 0 as Millis;
  /** When something last went on: an edit was sent or acknowledged. */
  #movedAt = 0 as Millis;
  #silences = 0;
  /** Of an edit that is too large and cannot be cut: it is left out once all before it are acknowledged. */
  #leftOut: Counter | undefined;
  #gap: { readonly expected: Counter; readonly at: Millis } | undefined;
  #keyIsStale = false;
  /** The key belonged to an earlier page, so the server may know of edits under it that are not known here. */
  #keyIsInherited = false;
  /** False: the room is not joined under this key yet, so answers that come are about the key before. */
  #keyIsJoined = true;
  #inherited: Numbering[] = [];
  #inheritedMade = 0;
  /** Edits go out only once they are kept on this device. */
  #keepsFirst = false;
  #keptThrough: Counter = 0;
  readonly #changes = { made: 0, settled: 0 };

  constructor(options: OutboxOptions) {
    this.#options = options;
    this.#unsent = new Unsent(options);
  }

  /** How many of the application's edits are not known to be saved. */
  get unsavedEdits(): number {
    return this.#inheritedMade + this.#sentMade + this.#unsent.made;
  }

  get isEmpty(): boolean {
    return this.#sent.length === 0 && this.#unsent.isEmpty && this.#inherited.length === 0;
  }

  /** Two counts: `made` rises when `pending` has something new, `settled` when something has only gone from it. */
  get changes(): { readonly made: number; readonly settled: number } {
    return this.#changes;
  }

  /** All that waits here. `clientKey`: of what was sent. */
  pending(clientKey: ClientKey): Pending {
    const sent = [{ clientKey, sent: this.#sent }, ...this.#inherited].flatMap(({ clientKey: key, sent: edits }) =>
      edits.map((edit) => [edit, { clientKey: key, client: edit.client, counter: edit.counter, parentSeq: edit.parentSeq }] as const),
    );
    return { sent, unsent: this.#unsent.waiting };
  }

  get ackedThrough(): Counter {
    return this.#ackedThrough;
  }

  /** The last that has a counter. */
  get lastSent(): Counter {
    return this.#ackedThrough + this.#sent.length;
  }

  /**
   * The last counter under this key that is known to be this page's own. Under an inherited key that is what was kept of
   * it, for the page before may have sent more; under a key of its own it is Infinity.
   */
  get ownThrough(): Counter {
    return this.#keyIsInherited ? this.lastSent : Infinity;
  }

  /** Whether the numbering is to begin anew under another client key, and may. */
  get needsNewKey(): boolean {
    return this.#keyIsStale && this.#sent.length === 0;
  }

  /** False: too much is waiting already. */
  add(payload: Uint8Array): boolean {
    const isTaken = this.#unsent.add(payload);
    if (isTaken) this.#changes.made += 1;
    return isTaken;
  }

  /** Before anything is sent: what pages before this one left. All of it is kept, and comes before what was made here. */
  inherit({ numberings, unsent }: Inheritance): void {
    this.#inherited = numberings.filter(({ sent }) => sent.length > 0);
    this.#inheritedMade = this.#inherited.reduce((sum, { sent }) => sum + sent.reduce((made, edit) => made + edit.made, 0), 0);
    this.#unsent.putBack(unsent);
    this.#keyIsStale ||= this.#inherited.length > 0;
  }

  keepFirst(keepsFirst: boolean): void {
    this.#keepsFirst = keepsFirst;
  }

  /** What has been numbered up to here is kept. */
  receiveKept(through: Counter): void {
    this.#keptThrough = Math.max(this.#keptThrough, through);
  }

  /** The room is joined: everything in flight goes out again, in order. */
  joined(client: ClientId, now: Millis): void {
    this.#client = client;
    this.#keyIsJoined = true;
    this.#cursor = this.#ackedThrough + 1;
    this.#waitUntil = 0 as Millis;
    this.#movedAt = now;
    this.#silences = 0;
    this.#gap = undefined;
  }

  /** What was sent stays under the old key until it is acknowledged; what was not takes the next key. */
  keyIsStale(): void {
    this.#keyIsStale = true;
  }

  /** Joining with another key: the next that was inherited, else undefined for a fresh one. */
  newKey(): ClientKey | undefined {
    const inherited = this.#inherited.shift();
    this.#sent = [...(inherited?.sent ?? [])];
    for (const edit of this.#sent) {
      this.#count(edit, 1);
      this.#inheritedMade -= edit.made;
    }
    this.#keyIsInherited = this.#keyIsStale = inherited !== undefined;
    this.#keyIsJoined = false;
    this.#ackedThrough = (this.#sent[0]?.counter ?? 1) - 1;
    this.#cursor = this.#ackedThrough + 1;
    this.#keptThrough = this.lastSent;
    return inherited?.clientKey;
  }

  /** `windowMax`: edits on their way at most, sent again or for the first time. */
  hasNext(windowMax: number, now: Millis): boolean {
    if (now < this.#waitUntil) return false;
    if (this.#cursor === this.#leftOut) return this.#leftOut === this.#ackedThrough + 1; // Once those before it are settled.
    if (this.#cursor > this.#ackedThrough + Math.max(1, windowMax)) return false;
    if (this.#cursor <= this.lastSent) return !this.#keepsFirst || this.#cursor <= this.#keptThrough;
    return !this.#keyIsStale && !this.#unsent.isEmpty && this.#takesAnother;
  }

  /** One edit may be on its way however large it is. */
  get #takesAnother(): boolean {
    const { inFlightEditsMax, inFlightBytesMax } = this.#options;
    return this.#sent.length === 0 || (this.#sent.length < inFlightEditsMax && this.#sentBytes < inFlightBytesMax);
  }

  /** Of the edit to send next, if it was sent before; else 0. */
  get resentBytes(): number {
    return this.#sent[this.#cursor - this.#ackedThrough - 1]?.payload.byteLength ?? 0;
  }

  /**
   * Only after `hasNext`. `bytesMax`: of an edit that was never sent. `resentBytesMax`: of one that was; a server answers
   * those that it takes no more itself, as long as they come within a frame.
   */
  takeNext(parentSeq: Seq, { bytesMax, resentBytesMax }: TakenBytes, now: Millis): NextEdit {
    let edit = this.#sent[this.#cursor - this.#ackedThrough - 1];
    if (edit !== undefined && edit.counter === this.#leftOut) return this.#leaveOut(edit);
    if (edit === undefined) {
      const taken = this.#unsent.take(bytesMax);
      this.#changes.made += 1;
      if (taken.kind === "too-large") return taken;
      edit = { client: this.#client, counter: this.#cursor, parentSeq, ...taken.edit };
      this.#sent.push(edit);
      this.#count(edit, 1);
      if (this.#keepsFirst) return { kind: "numbered" };
    } else if (edit.payload.byteLength > resentBytesMax) {
      this.#receiveUnsendable(edit.counter);
      return { kind: "taken-back" };
    }
    this.#cursor += 1;
    this.#movedAt = now;
    return { kind: "edit", edit, ackedThrough: this.#ackedThrough };
  }

  /** Everything up to `through` is committed. The edits that this settles, in order. */
  receiveAck(through: Counter, now: Millis): SentEdit[] {
    if (!this.#keyIsJoined) return [];
    const upTo = Math.min(through, this.ownThrough);
    if (upTo <= this.#ackedThrough || upTo > this.lastSent) return []; // Known already, or of edits never sent.
    const settled = this.#sent.splice(0, upTo - this.#ackedThrough);
    for (const edit of settled) this.#count(edit, -1);
    this.#ackedThrough = upTo;
    this.#cursor = Math.max(this.#cursor, upTo + 1);
    if ((this.#leftOut ?? Infinity) <= upTo) this.#leftOut = undefined;
    this.#changes.settled += 1;
    this.#movedAt = now;
    this.#silences = 0;
    this.#gap = undefined;
    return settled;
  }

  /** Says how large the edit is, if it is too large: it waits to be cut, or to be left out. */
  receiveNack(counter: Counter, reason: NackReason, expected: Counter, retryAfterMs: number, now: Millis): number | undefined {
    // Settled since, or somebody else's.
    if (!this.#keyIsJoined || counter <= this.#ackedThrough || counter > this.lastSent) return undefined;
    switch (reason) {
      case "gap":
        this.#receiveGap(expected, now);
        return undefined;
      case "write-backpressure":
      case "log-stalled":
      case "tenant-rate":
        this.#cursor = Math.min(this.#cursor, counter);
        this.#waitUntil = (now + retryAfterMs) as Millis;
        this.#movedAt = now;
        return undefined;
      case "too-large":
        return this.#receiveTooLarge(counter);
      case "read-only": // The session stops sending.
      case "forged": // Of somebody's resubmission.
        return undefined;
    }
  }

  /** Sends everything in flight again if no answer came for long. */
  receiveTick(now: Millis): void {
    const dueAt = this.#silentAt;
    if (dueAt === undefined || now < dueAt) return;
    this.#cursor = this.#ackedThrough + 1;
    this.#movedAt = now;
    this.#silences += 1;
  }

  /** When it next has something to do that only time brings. `answersExpected`: silence means that something was lost. */
  dueAt(answersExpected: boolean, now: Millis): Millis | undefined {
    if (now < this.#waitUntil) return this.#waitUntil;
    return answersExpected ? this.#silentAt : undefined;
  }

  get #silentAt(): Millis | undefined {
    if (this.#cursor === this.#ackedThrough + 1) return undefined; // Nothing is on its way.
    return (this.#movedAt + this.#options.silenceMsMax * 2 ** Math.min(this.#silences, SILENCE_DOUBLINGS_MAX)) as Millis;
  }

  /** Once for each gap: the server refuses every edit that was on its way behind it. */
  #receiveGap(expected: Counter, now: Millis): void {
    if (expected > this.lastSent) return;
    if (this.#gap?.expected === expected && now - this.#gap.at < GAP_ECHO_MS) return;
    this.#gap = { expected, at: now };
    // A server that waits for less than was acknowledged learns from `ackedThrough` that it need not.
    this.#cursor = Math.min(this.#cursor, Math.max(expected, this.#ackedThrough + 1));
    this.#movedAt = now;
  }

  #receiveTooLarge(counter: Counter): number {
    const refusedBytes = this.#sent[counter - this.#ackedThrough - 1]!.payload.byteLength;
    this.#unsent.receiveTooLarge(refusedBytes);
    this.#receiveUnsendable(counter);
    return refusedBytes;
  }

  #receiveUnsendable(counter: Counter): void {
    if (this.#options.format !== undefined) return this.#takeBackFrom(counter);
    this.#leftOut = Math.min(this.#leftOut ?? Infinity, counter);
    this.#cursor = Math.min(this.#cursor, counter);
  }

  /**
   * Those behind it keep their counters: another server may still hold copies of them, and payloads of which nothing is
   * known must not be ordered twice. What they say of the edits before them covers this one, so no server waits for it.
   */
  #leaveOut(edit: SentEdit): NextEdit {
    this.#sent.shift();
    this.#count(edit, -1);
    this.#ackedThrough = edit.counter;
    this.#cursor = edit.counter + 1;
    this.#leftOut = undefined;
    this.#changes.settled += 1;
    return { kind: "too-large", payload: edit.payload };
  }

  /**
   * Another server may still hold copies of what was sent behind the edit that is too large, under the same counters.
   * So these are not given to other bytes: all of it goes out under a new key, that edit in pieces, and should a copy be
   * ordered after all, its format bears that. What no smaller pieces can be made of is told as too large when its turn comes.
   */
  #takeBackFrom(counter: Counter): void {
    const takenBack = this.#sent.splice(counter - this.#ackedThrough - 1);
    for (const edit of takenBack) this.#count(edit, -1);
    this.#unsent.putBack(takenBack);
    this.#changes.made += 1;
    this.#cursor = Math.min(this.#cursor, counter);
    this.#keyIsStale = true;
  }

  #count({ payload, made }: SentEdit, sign: 1 | -1): void {
    this.#sentBytes += sign * payload.byteLength;
    this.#sentMade += sign * made;
  }
}
