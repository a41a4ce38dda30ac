/**
 * Send rates of one connection, and the part of the sent data that has arrived. When much data is on its way, the
 * client sends a PING. The PONG confirms that the server has received everything sent before it. An ACK is not enough:
 * it covers only edits, and a room without an owner sends none for some time. Rules LIP1 to LIP4.
 */

import type { Millis } from "../../shared/ids.ts";
import type { Limits } from "../../shared/wire/frames.ts";

/** due: a PING has to be sent. asked: the PING with this nonce is not answered yet. */
type Asking = { readonly kind: "idle" } | { readonly kind: "due" } | { readonly kind: "asked"; readonly nonce: number };

export class ClientRates {
  /** Limits edits, and the bytes of all frames. */
  readonly edits: EditSendRate;
  readonly presence: FrameSendRate;
  readonly controls: FrameSendRate;
  readonly limits: Limits;
  #asking: Asking = { kind: "idle" };

  constructor(limits: Limits, now: Millis) {
    const { presenceBurst, presencePerSecond, controlBurst, controlsPerSecond } = limits;
    this.limits = limits;
    this.edits = new EditSendRate(limits, now);
    this.presence = new FrameSendRate({ burst: presenceBurst, perSecond: presencePerSecond }, now);
    this.controls = new FrameSendRate({ burst: controlBurst, perSecond: controlsPerSecond }, now);
  }

  /**
   * True once if a PING should be sent, then false until its PONG. After a PONG only edits cause the next PING, because
   * all of them may wait for its PONG. Frames of other kinds cause one when they are sent.
   */
  takeArrivalRequest(behind: "frame" | "pong"): boolean {
    const rates = behind === "frame" ? this.#all : [this.edits];
    if (this.#asking.kind !== "idle" || !rates.some(({ needsArrival }) => needsArrival)) return false;
    this.#asking = { kind: "due" };
    return true;
  }

  /** A PING was sent after all earlier frames. Its PONG also confirms the PING itself. */
  receivePingSent(nonce: number): void {
    if (this.#asking.kind === "asked") return;
    this.#asking = { kind: "asked", nonce };
    for (const rate of this.#all) rate.markAsked();
  }

  /** The PONG of a later PING confirms at least as much. */
  receivePong(nonce: number, now: Millis): void {
    if (this.#asking.kind !== "asked" || nonce < this.#asking.nonce) return;
    this.#asking = { kind: "idle" };
    for (const rate of this.#all) rate.receiveArrival(now);
  }

  get #all(): readonly (EditSendRate | FrameSendRate)[] {
    return [this.edits, this.presence, this.controls];
  }
}

/** 50 kbit/s, a slow mobile network. */
const SLOW_UPLINK_BYTES_PER_MS = 6;

/** Time that a slow uplink needs for these bytes. No answer to them, or to anything sent after them, is overdue before. */
export function slowUploadMs(bytes: number): number {
  return Math.floor(bytes / SLOW_UPLINK_BYTES_PER_MS);
}

/** While nothing is confirmed, the time of the next send is unknown. It is checked again after this time. */
const HELD_UP_MS = 100;

/**
 * A token bucket that also counts what is on its way. A network may stall and deliver everything at once, so
 * unconfirmed data plus what may be sent now never exceeds `size`. A PONG confirms arrival. Rules LIB1 to LIB4.
 */
export class SendBucket {
  readonly #size: number;
  readonly #perMs: number;
  /** Negative: this amount was overdrawn, or is reserved for later turns. */
  #left: number;
  #filledAt: Millis;
  #onTheirWay = 0;
  /** The part of the unconfirmed data that the last PING covers. */
  #asked = 0;

  constructor({ size, perSecond }: { readonly size: number; readonly perSecond: number }, now: Millis) {
    this.#size = size;
    this.#perMs = perSecond / 1000;
    this.#left = size;
    this.#filledAt = now;
  }

  /** True: so much data is unconfirmed that a PING should confirm it. */
  get needsArrival(): boolean {
    return this.#onTheirWay * 2 >= this.#size;
  }

  mayTake(now: Millis): boolean {
    this.#fill(now);
    return this.#left >= 1;
  }

  /** May take more than is left. */
  take(amount: number, now: Millis): void {
    this.#fill(now);
    this.#left -= amount;
    this.#onTheirWay += amount;
  }

  /** Returns an amount that was taken and is not sent. */
  giveBack(amount: number): void {
    this.#left = Math.min(this.#size, this.#left + amount);
    this.#onTheirWay = Math.max(0, this.#onTheirWay - amount);
  }

  /**
   * The earliest time at which `amount` is left, as far as is known. It may become later while nothing is confirmed.
   */
  hasAt(amount: number, now: Millis): Millis {
    this.#fill(now);
    if (this.#left >= amount) return now;
    const isHeldUp = this.#size - this.#onTheirWay < amount;
    const waitMs = Math.max((amount - this.#left) / this.#perMs, isHeldUp ? HELD_UP_MS : 0);
    return (now + Math.ceil(waitMs)) as Millis;
  }

  /** A PING is sent now. It covers all unconfirmed data. */
  markAsked(): void {
    this.#asked = this.#onTheirWay;
  }

  /** The PONG has arrived. */
  receiveArrival(now: Millis): void {
    this.#fill(now); // Refill with the old limit first.
    this.#onTheirWay = Math.max(0, this.#onTheirWay - this.#asked);
    this.#asked = 0;
  }

  #fill(now: Millis): void {
    const elapsedMs = Math.max(0, now - this.#filledAt); // A clock that is set back changes nothing.
    const room = Math.max(this.#left, this.#size - this.#onTheirWay);
    this.#left = Math.min(room, this.#left + elapsedMs * this.#perMs);
    this.#filledAt = now;
  }
}

/** Fraction of the server's burst and rate that the client uses. */
const BURST_PART = 0.7;
const RATE_PART = 0.9;

type EditSendLimits = Pick<Limits, "editBurst" | "editsPerSecond" | "editBytesMax" | "bytesBurst" | "bytesPerSecond">;

/**
 * Send rate of edits on one connection, in edits and in bytes. It stays below the limits of WELCOME, so that the server
 * never closes honest typing or a large paste for its rate, even if the network delivers late. Repeated edits count
 * too. Rules PAC1 to PAC4.
 */
export class EditSendRate {
  readonly burst: number;
  readonly #edits: SendBucket;
  /**
   * The bytes of an edit are known only after it was taken, so the level may become negative. The next edit waits until
   * it is refilled.
   */
  readonly #bytes: SendBucket;

  constructor({ editBurst, editsPerSecond, editBytesMax, bytesBurst, bytesPerSecond }: EditSendLimits, now: Millis) {
    this.burst = Math.max(1, Math.floor(editBurst * BURST_PART));
    this.#edits = new SendBucket({ size: this.burst, perSecond: Math.max(1, editsPerSecond) * RATE_PART }, now);
    const size = Math.max(1, Math.min(bytesBurst * BURST_PART, bytesBurst - editBytesMax)); // One edit may exceed this size.
    this.#bytes = new SendBucket({ size, perSecond: Math.max(1, bytesPerSecond) * RATE_PART }, now);
  }

  get needsArrival(): boolean {
    return this.#edits.needsArrival || this.#bytes.needsArrival;
  }

  take(now: Millis): boolean {
    if (!this.#edits.mayTake(now) || !this.#bytes.mayTake(now)) return false;
    this.#edits.take(1, now);
    return true;
  }

  /** Counts the bytes of an edit that was taken. */
  spend(bytes: number, now: Millis): void {
    this.#bytes.take(bytes, now);
  }

  /** The earliest time of the next edit, as far as is known. */
  nextAt(now: Millis): Millis {
    return Math.max(this.#edits.hasAt(1, now), this.#bytes.hasAt(1, now)) as Millis;
  }

  markAsked(): void {
    this.#edits.markAsked();
    this.#bytes.markAsked();
  }

  receiveArrival(now: Millis): void {
    this.#edits.receiveArrival(now);
    this.#bytes.receiveArrival(now);
  }
}

/** The server's limit: burst in frames, and frames per second. */
type FrameLimit = { readonly burst: number; readonly perSecond: number };

/**
 * Send rate of one kind of frame, shared by all rooms of a connection. It stays below the limits of WELCOME. Senders
 * ask for a turn and get turns in the order in which they asked, so no room blocks another. Turns come later while
 * nothing is confirmed. Rules FPA1 to FPA4.
 */
export class FrameSendRate {
  readonly #frames: SendBucket;

  constructor({ burst, perSecond }: FrameLimit, now: Millis) {
    const size = Math.max(1, Math.floor(burst * BURST_PART));
    this.#frames = new SendBucket({ size, perSecond: Math.max(1, perSecond) * RATE_PART }, now);
  }

  get needsArrival(): boolean {
    return this.#frames.needsArrival;
  }

  /** The time at which the frame may be sent: `now` or later. Send it then, or call `giveBack`. */
  takeTurn(now: Millis): Millis {
    this.#frames.take(1, now);
    return this.#frames.hasAt(0, now);
  }

  giveBack(): void {
    this.#frames.giveBack(1);
  }

  markAsked(): void {
    this.#frames.markAsked();
  }

  receiveArrival(now: Millis): void {
    this.#frames.receiveArrival(now);
  }
}
