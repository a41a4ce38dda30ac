/**
 * This client's edits in flight with one writer key: edits that were sent at least once and are not known to be
 * committed. Their counters have no gap. An edit keeps its counter and its bytes, and is sent again in order until it
 * is acknowledged.
 */

import { isSameBytes } from "../../shared/collections/bytes.ts";
import type { Millis } from "../../shared/ids.ts";
import type { Counter } from "../../shared/wire/frames.ts";
import { slowUploadMs } from "../connection/client-rates.ts";
import type { SentEdit } from "./unsent.ts";

export type SendWindowOptions = {
  /** Maximum number of edits in flight. */
  readonly inFlightEditsMax: number;
  /** Maximum bytes of their payloads. A single edit in flight may be larger. */
  readonly inFlightBytesMax: number;
  /**
   * Edits in flight that are not answered within this time are sent again. The time doubles with each repetition, and
   * grows by the time that a slow uplink needs for the largest of them: each edit is acknowledged separately.
   */
  readonly silenceMsMax: number;
};

/** The server refuses each edit after a gap, so the same gap within this time is not a new one. */
const GAP_ECHO_MS = 1_000;
const SILENCE_DOUBLINGS_MAX = 3;

export class SendWindow {
  readonly #options: SendWindowOptions;
  #sent: SentEdit[] = [];
  #bytes = 0;
  #made = 0;
  #ackedThrough: Counter = 0;
  /** The counter to send next: the counter of a repeated edit, or the first one after all edits in flight. */
  #cursor: Counter = 1;
  #waitUntil = 0 as Millis;
  /** The time at which an edit was last sent or acknowledged. */
  #movedAt = 0 as Millis;
  #silences = 0;
  /** The counter of an edit that is too large and cannot be cut. It is left out once all edits before it are acknowledged. */
  #leftOut: Counter | undefined;
  #gap: { readonly expected: Counter; readonly at: Millis } | undefined;

  constructor(options: SendWindowOptions) {
    this.#options = options;
  }

  get isEmpty(): boolean {
    return this.#sent.length === 0;
  }

  get edits(): readonly SentEdit[] {
    return this.#sent;
  }

  /** Number of application calls that made these edits. */
  get made(): number {
    return this.#made;
  }

  get ackedThrough(): Counter {
    return this.#ackedThrough;
  }

  /** The highest counter in use. */
  get lastSent(): Counter {
    return this.#ackedThrough + this.#sent.length;
  }

  get cursor(): Counter {
    return this.#cursor;
  }

  /** The edit at the cursor; undefined if the next edit is one that was never sent. */
  get next(): SentEdit | undefined {
    return this.#sent[this.#cursor - this.#ackedThrough - 1];
  }

  /** The next edit is too large for the server and has to be dropped. */
  get leavesOutNext(): boolean {
    return this.#cursor === this.#leftOut;
  }

  /** Whether another edit fits into the window. */
  get takesAnother(): boolean {
    const { inFlightEditsMax, inFlightBytesMax } = this.#options;
    return this.#sent.length === 0 || (this.#sent.length < inFlightEditsMax && this.#bytes < inFlightBytesMax);
  }

  /** Starts with another writer key, and with the edits that were sent with it before. */
  begin(sent: readonly SentEdit[]): void {
    this.#sent = [...sent];
    for (const edit of this.#sent) this.#count(edit, 1);
    this.#ackedThrough = (sent[0]?.counter ?? 1) - 1;
    this.#cursor = this.#ackedThrough + 1;
  }

  /** The room is joined: everything in flight is sent again, in order. */
  restart(now: Millis): void {
    this.#cursor = this.#ackedThrough + 1;
    this.#waitUntil = 0 as Millis;
    this.#movedAt = now;
    this.#silences = 0;
    this.#gap = undefined;
  }

  /** Whether the edit at the cursor may be sent. `windowMax`: maximum number of unacknowledged edits sent since the last restart. */
  isOpen(windowMax: number, now: Millis): boolean {
    if (now < this.#waitUntil) return false;
    if (this.leavesOutNext) return this.#leftOut === this.#ackedThrough + 1;
    return this.#cursor <= this.#ackedThrough + Math.max(1, windowMax);
  }

  push(edit: SentEdit): void {
    this.#sent.push(edit);
    this.#count(edit, 1);
  }

  /** The edit at the cursor was sent. */
  advance(now: Millis): void {
    this.#cursor += 1;
    this.#movedAt = now;
  }

  /** Returns the edits that this settles, in order. Ignores counters that are settled already or were never sent. */
  receiveAck(through: Counter, now: Millis): SentEdit[] {
    if (through <= this.#ackedThrough || through > this.lastSent) return [];
    const settled = this.#sent.splice(0, through - this.#ackedThrough);
    for (const edit of settled) this.#count(edit, -1);
    this.#ackedThrough = through;
    this.#cursor = Math.max(this.#cursor, through + 1);
    if ((this.#leftOut ?? Infinity) <= through) this.#leftOut = undefined;
    this.#movedAt = now;
    this.#silences = 0;
    this.#gap = undefined;
    return settled;
  }

  has(counter: Counter): boolean {
    return counter > this.#ackedThrough && counter <= this.lastSent;
  }

  /** Whether this page did not send these bytes with that counter: it sent other bytes, or none so far. */
  isOther(counter: Counter, payload: Uint8Array): boolean {
    return counter > this.lastSent || (this.has(counter) && !isSameBytes(this.#sent[counter - this.#ackedThrough - 1]!.payload, payload));
  }

  bytesOf(counter: Counter): number {
    return this.#sent[counter - this.#ackedThrough - 1]!.payload.byteLength;
  }

  /** Sends again from the first edit that the server lacks, once for each gap: it also refuses every edit after the gap. */
  receiveGap(expected: Counter, now: Millis): void {
    if (expected > this.lastSent) return;
    if (this.#gap?.expected === expected && now - this.#gap.at < GAP_ECHO_MS) return;
    this.#gap = { expected, at: now };
    // A server that expects an acknowledged counter sees from `ackedThrough` that it need not wait for it.
    this.#cursor = Math.min(this.#cursor, Math.max(expected, this.#ackedThrough + 1));
    this.#movedAt = now;
  }

  /** Sends again from this counter, after the delay that the server asked for. */
  receiveBackpressure(counter: Counter, retryAfterMs: number, now: Millis): void {
    this.#cursor = Math.min(this.#cursor, counter);
    this.#waitUntil = (now + retryAfterMs) as Millis;
    this.#movedAt = now;
  }

  /** Sends everything in flight again if no answer came for long. */
  receiveTick(now: Millis): void {
    const dueAt = this.#silentAt;
    if (dueAt === undefined || now < dueAt) return;
    this.#cursor = this.#ackedThrough + 1;
    this.#movedAt = now;
    this.#silences += 1;
  }

  /** The time of the next tick. `answersExpected`: a missing answer means that something was lost. */
  dueAt(answersExpected: boolean, now: Millis): Millis | undefined {
    if (now < this.#waitUntil) return this.#waitUntil;
    return answersExpected ? this.#silentAt : undefined;
  }

  /** Removes this edit and all later ones, so that they can be sent with another key. */
  takeBackFrom(counter: Counter): SentEdit[] {
    const takenBack = this.#sent.splice(counter - this.#ackedThrough - 1);
    for (const edit of takenBack) this.#count(edit, -1);
    this.#cursor = Math.min(this.#cursor, counter);
    if ((this.#leftOut ?? 0) >= counter) this.#leftOut = undefined;
    return takenBack;
  }

  /** The edit is dropped when its turn comes. */
  planLeavingOut(counter: Counter): void {
    this.#leftOut = Math.min(this.#leftOut ?? Infinity, counter);
    this.#cursor = Math.min(this.#cursor, counter);
  }

  /**
   * Drops the first edit. The later edits keep their counters: another server may have copies of them, and payloads of
   * an unknown format must not be ordered twice. Their `ackedThrough` covers this counter, so no server waits for it.
   */
  leaveOut(edit: SentEdit): void {
    this.#sent.shift();
    this.#count(edit, -1);
    this.#ackedThrough = edit.counter;
    this.#cursor = edit.counter + 1;
    this.#leftOut = undefined;
  }

  get #silentAt(): Millis | undefined {
    if (this.#cursor === this.#ackedThrough + 1) return undefined; // No edit waits for an answer.
    const bytesMax = this.#sent.reduce((max, { payload }) => Math.max(max, payload.byteLength), 0);
    const uploadMs = slowUploadMs(bytesMax); // Repeats of edits that still wait for the uplink would block it. Edits of other rooms are not counted.
    return (this.#movedAt + uploadMs + this.#options.silenceMsMax * 2 ** Math.min(this.#silences, SILENCE_DOUBLINGS_MAX)) as Millis;
  }

  #count({ payload, made }: SentEdit, sign: 1 | -1): void {
    this.#bytes += sign * payload.byteLength;
    this.#made += sign * made;
  }
}
