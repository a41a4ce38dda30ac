/**
 * What may go out over a line: a token bucket that fills no further than what is on its way leaves room for. A network
 * may stall and hand over at once all that was sent meanwhile, so what is not known to have arrived, and what may be sent
 * beside it, are together never more than `size`. What has arrived a PONG says (`line-paces.ts`). Rules LIB1 to LIB4.
 */

import type { Millis } from "../../shared/ids.ts";

/** While nothing arrives nobody knows when it will: so it is looked again. */
const HELD_UP_MS = 100;

export class LineBucket {
  readonly size: number;
  readonly #perMs: number;
  /** Below nothing: so much is to be made up for, or has a turn that is still to come. */
  #left: number;
  #filledAt: Millis;
  #onTheirWay = 0;
  /** Of what is on its way, what the server was asked about. */
  #asked = 0;

  constructor({ size, perSecond }: { readonly size: number; readonly perSecond: number }, now: Millis) {
    this.size = size;
    this.#perMs = perSecond / 1000;
    this.#left = size;
    this.#filledAt = now;
  }

  /** So much is on its way that it is time to ask what of it has arrived. */
  get asksSoon(): boolean {
    return this.#onTheirWay * 2 >= this.size;
  }

  mayTake(now: Millis): boolean {
    this.#fill(now);
    return this.#left >= 1;
  }

  /** Also more than there is. */
  take(amount: number, now: Millis): void {
    this.#fill(now);
    this.#left -= amount;
    this.#onTheirWay += amount;
  }

  /** It was taken, and does not go out. */
  giveBack(amount: number): void {
    this.#left = Math.min(this.size, this.#left + amount);
    this.#onTheirWay = Math.max(0, this.#onTheirWay - amount);
  }

  /** When so much is left, as far as is known: while nothing arrives it may turn out to be later. */
  hasAt(amount: number, now: Millis): Millis {
    this.#fill(now);
    if (this.#left >= amount) return now;
    const isHeldUp = this.size - this.#onTheirWay < amount;
    const waitMs = Math.max((amount - this.#left) / this.#perMs, isHeldUp ? HELD_UP_MS : 0);
    return (now + Math.ceil(waitMs)) as Millis;
  }

  /** The server is asked now whether what was sent has arrived. */
  asked(): void {
    this.#asked = this.#onTheirWay;
  }

  /** It has answered. */
  arrived(now: Millis): void {
    this.#fill(now); // As far as it could until now.
    this.#onTheirWay = Math.max(0, this.#onTheirWay - this.#asked);
    this.#asked = 0;
  }

  #fill(now: Millis): void {
    const elapsedMs = Math.max(0, now - this.#filledAt); // A clock set back gives nothing and takes nothing.
    const room = Math.max(this.#left, this.size - this.#onTheirWay);
    this.#left = Math.min(room, this.#left + elapsedMs * this.#perMs);
    this.#filledAt = now;
  }
}
