/**
 * Group commit for one partition of the log. A replicated stream stores an atomic batch of records for little more than
 * the price of one record. While few appends are in flight, each is sent at once and alone. Further ones wait until
 * those are answered, and are then sent together. Rules APQ1 to APQ4, ADR 62.
 */

/** nats-server refuses batches of more than 1,000 messages. */
const BATCH_MAX = 500;

export class AppendQueue<Append> {
  readonly #aloneMax: number;
  readonly #inFlight = new Set<Append>();
  readonly #waiting = new Set<Append>();

  /** `aloneMax`: the number of appends in flight from which further ones wait. Infinity: none waits. */
  constructor(aloneMax: number) {
    this.#aloneMax = aloneMax;
  }

  /** Returns the appends to send now, together: none, or this one. */
  add(append: Append): readonly Append[] {
    if (this.#waiting.size === 0 && this.#inFlight.size < this.#aloneMax) {
      this.#inFlight.add(append);
      return [append];
    }
    this.#waiting.add(append);
    return [];
  }

  /** The append was answered or abandoned, or is sent again outside of the queue. */
  remove(append: Append): void {
    this.#waiting.delete(append);
    this.#inFlight.delete(append);
  }

  /** Returns the appends to send now, together: all that wait, if none is in flight. */
  takeTurn(): readonly Append[] {
    return this.#inFlight.size === 0 ? this.takeWaiting() : [];
  }

  /** Returns the appends to send now, together, whether or not those in flight are answered. */
  takeWaiting(): readonly Append[] {
    const taken = [...this.#waiting].slice(0, BATCH_MAX);
    for (const append of taken) {
      this.#waiting.delete(append);
      this.#inFlight.add(append);
    }
    return taken;
  }

  clear(): void {
    this.#inFlight.clear();
    this.#waiting.clear();
  }
}
