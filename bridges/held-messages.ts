/**
 * Messages of one client that wait for its room, counted against a budget of all clients. They are held as bytes,
 * because decoded awareness would be many times larger. Bytes of an incomplete message, which the socket holds, count
 * too.
 */

/** Estimated bytes of a message in addition to its content. */
const MESSAGE_OVERHEAD_BYTES = 256;

export class EarlyMessages {
  readonly #budget: EarlyMessagesBudget;
  #messages: Uint8Array[] = [];
  #messageBytes = 0;
  /** Bytes received since the last complete message. */
  #partBytes = 0;

  constructor(budget: EarlyMessagesBudget) {
    this.#budget = budget;
  }

  get all(): readonly Uint8Array[] {
    return this.#messages;
  }

  /** Counts bytes of an incomplete message. False: all clients together would exceed the budget. */
  holdPart(bytes: number): boolean {
    if (!this.#budget.take(bytes)) return false;
    this.#partBytes += bytes;
    return true;
  }

  /** The message is complete, or its bytes no longer count. */
  dropPart(): void {
    this.#budget.giveBack(this.#partBytes);
    this.#partBytes = 0;
  }

  /** False: all clients together would exceed the budget. */
  hold(message: Uint8Array): boolean {
    const bytes = message.byteLength + MESSAGE_OVERHEAD_BYTES;
    if (!this.#budget.take(bytes)) return false;
    this.#messages.push(message.slice()); // Copied, because the message may be part of a larger buffer.
    this.#messageBytes += bytes;
    return true;
  }

  /** Returns and forgets the held messages. The socket may keep its part until it is closed. */
  release(): readonly Uint8Array[] {
    const released = this.#messages;
    this.#budget.giveBack(this.#messageBytes);
    this.#messages = [];
    this.#messageBytes = 0;
    return released;
  }
}

/**
 * Maximum bytes that all clients together may send before their rooms are open, that is before any token is checked.
 */

export class EarlyMessagesBudget {
  readonly #bytesMax: number;
  #bytes = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /** False: the budget would be exceeded. */
  take(bytes: number): boolean {
    if (this.#bytes + bytes > this.#bytesMax) return false;
    this.#bytes += bytes;
    return true;
  }

  giveBack(bytes: number): void {
    this.#bytes -= bytes;
  }
}
