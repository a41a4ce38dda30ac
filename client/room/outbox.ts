/**
 * Keeps this client's edits of one room until they are acknowledged, and sends them when rate, window, log and rights
 * allow it. A sent edit keeps its counter and its bytes (`send-window.ts`). Others may still be merged (`unsent.ts`).
 * Edits of earlier pages go first, under their own keys (`writer-numbering.ts`). Rules OBX1 to OBX18, SEN1 to SEN9.
 */

import { assertNever } from "../../shared/assert.ts";
import type { ClientId, ClientKey, Millis, Seq } from "../../shared/ids.ts";
import type { Counter, NackReason, Channel, Rights, SavingState } from "../../shared/wire/frames.ts";
import { wholeFrameBytesMax } from "../../shared/wire/parts.ts";
import type { Inheritance, Pending } from "../persistence/journal.ts";
import { outboxFull, readOnly, tooLarge } from "./problems.ts";
import type { SharedLimits, RoomSessionEffect, RoomFrame } from "./room-messages.ts";
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

const FRAME_OVERHEAD_BYTES = 64;

/** `synced`: everything up to the head in JOINED has arrived. */
type Where = { readonly channel: Channel; readonly parentSeq: Seq; readonly synced: boolean; readonly saving: SavingState };

/** Decides when edits leave the outbox: by send rate, window, state of the log and rights. Handles refusals. Rules SEN1 to SEN9. */
export class EditSender {
  readonly #outbox: Outbox;
  #rights: Rights = { read: false, write: false };
  #hasReportedReadOnly = true;
  /** Servers may have forgotten this client's edits, and would order a repeated one again. */
  isLongAway = false;
  /** The smallest edit that the server refused as too large. */
  #bytesRefused = Infinity;

  constructor(outbox: Outbox) {
    this.#outbox = outbox;
  }

  get rights(): Rights {
    return this.#rights;
  }

  joined({ client, rights }: { client: ClientId; rights: Rights }, now: Millis, effects: RoomSessionEffect[]): void {
    this.#rights = rights;
    this.#hasReportedReadOnly = false;
    this.#outbox.joined(client, now);
    if (!this.#outbox.isEmpty) this.#reportReadOnly(effects);
  }

  receiveEdit(payload: Uint8Array, effects: RoomSessionEffect[]): void {
    if (!this.#outbox.add(payload)) effects.push({ kind: "problem", problem: outboxFull(payload) });
    this.#reportReadOnly(effects);
  }

  receiveNack({ counter, reason, expected, retryAfterMs }: RoomFrame & { type: "nack" }, now: Millis, effects: RoomSessionEffect[]): void {
    if (reason === "read-only") {
      this.#rights = { ...this.#rights, write: false };
      return this.#reportReadOnly(effects);
    }
    const refusedBytes = this.#outbox.receiveNack(counter, reason, expected, retryAfterMs, now);
    if (refusedBytes !== undefined) this.#bytesRefused = Math.min(this.#bytesRefused, refusedBytes);
  }

  /** Sends what may be sent now. */
  flush(connection: SharedLimits, { channel, parentSeq, synced, saving }: Where, now: Millis, effects: RoomSessionEffect[]): void {
    if (!this.#rights.write) return;
    const bytesMax = this.bytesMaxOf(connection);
    const resentBytesMax = resentBytesMaxOf(connection);
    while (this.#hasNext(connection, synced, saving, now) && connection.editRate.nextAt(now) <= now) {
      const next = this.#outbox.takeNext(parentSeq, { bytesMax, resentBytesMax }, now);
      if (next.kind === "numbered") return;
      if (next.kind === "taken-back") continue; // The server would close the connection again and again for a larger frame.
      if (next.kind === "too-large") {
        effects.push({ kind: "problem", problem: tooLarge(next.payload, bytesMax) });
        continue;
      }
      connection.editRate.take(now);
      const { counter, payload } = next.edit;
      connection.editRate.spend(payload.byteLength + FRAME_OVERHEAD_BYTES, now);
      effects.push({
        kind: "send",
        frame: { type: "edit", channel, counter, ackedThrough: next.ackedThrough, parentSeq: next.edit.parentSeq, payload },
      });
    }
  }

  /** Repeats unanswered edits. While the log is slow, missing answers are normal. */
  receiveTick(saving: SavingState, now: Millis): void {
    if (this.#rights.write && saving === "saved") this.#outbox.receiveTick(now);
  }

  dueAt(connection: SharedLimits, { synced, saving }: Pick<Where, "synced" | "saving">, now: Millis): Millis | undefined {
    if (!this.#rights.write) return undefined;
    if (this.#hasNext(connection, synced, saving, now)) return connection.editRate.nextAt(now);
    return this.#outbox.dueAt(saving === "saved", now);
  }

  bytesMaxOf({ limits }: SharedLimits): number {
    return Math.min(limits.editBytesMax, wholeFrameBytesMax(limits) - FRAME_OVERHEAD_BYTES, this.#bytesRefused - 1);
  }

  /** An edit that was sent long ago, or is now too large to repeat, waits until the room is synced: the log may have it. */
  #hasNext(connection: SharedLimits, synced: boolean, saving: SavingState, now: Millis): boolean {
    return this.#outbox.hasNext(windowOf(connection, saving), now) && (synced || this.#mayRepeat(connection));
  }

  #mayRepeat(connection: SharedLimits): boolean {
    const { resentBytes, ownThrough } = this.#outbox;
    const isRecent = !this.isLongAway && ownThrough === Infinity; // An earlier page may have sent its edits long ago.
    return resentBytes === 0 || (isRecent && resentBytes <= resentBytesMaxOf(connection));
  }

  /** At most once per join. */
  #reportReadOnly(effects: RoomSessionEffect[]): void {
    if (this.#rights.write || this.#hasReportedReadOnly) return;
    this.#hasReportedReadOnly = true;
    effects.push({ kind: "problem", problem: readOnly() });
  }
}

function resentBytesMaxOf({ limits }: SharedLimits): number {
  return wholeFrameBytesMax(limits) - FRAME_OVERHEAD_BYTES;
}

/** Maximum number of edits on their way: one burst, which is within the server's limits. While the log is slow there is no maximum. */
function windowOf({ editRate }: SharedLimits, saving: SavingState): number {
  switch (saving) {
    case "saved":
      return editRate.burst;
    case "saving":
      return Infinity;
    case "refusing":
      return 1; // One edit, to detect when the log accepts edits again.
    default:
      return assertNever(saving);
  }
}
