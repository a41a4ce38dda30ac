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

/** Ends a connection whose message never ends. */
type UnfinishedSender = { cut(code: number, reason: string): void };

/**
 * Unfinished messages of all connections, verified or not, within one budget. The sockets hold the bytes. Above it the connection
 * with the oldest unfinished message is cut. The budget exceeds that of early messages, so clients without a valid token
 * alone do not reach it.
 */
export class UnfinishedMessages {
  readonly #bytesMax: number;
  readonly #receiveExcess: (sender: UnfinishedSender) => void;
  /** The oldest first. `bytes`: without the overhead of the pieces. */
  readonly #partOf = new Map<UnfinishedSender, { bytes: number; pieces: number }>();
  #bytes = 0;

  constructor(bytesMax: number, receiveExcess: (sender: UnfinishedSender) => void) {
    this.#bytesMax = bytesMax;
    this.#receiveExcess = receiveExcess;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Each piece counts for more than its bytes, because the socket holds it as an object. */
  receiveBytes(sender: UnfinishedSender, count: number): void {
    const part = this.#partOf.get(sender) ?? { bytes: 0, pieces: 0 };
    this.#partOf.set(sender, part);
    part.bytes += count;
    part.pieces += 1;
    this.#bytes += count + MESSAGE_OVERHEAD_BYTES;
    for (const oldest of this.#partOf.keys()) {
      if (this.#bytes <= this.#bytesMax) return;
      this.forget(oldest);
      this.#receiveExcess(oldest);
    }
  }

  /** `count` of the received bytes were a ping or the answer to one, which the socket does not keep. */
  receiveControlFrame(sender: UnfinishedSender, count: number): void {
    const part = this.#partOf.get(sender);
    if (part === undefined) return;
    if (part.bytes <= count) return this.forget(sender);
    part.bytes -= count;
    this.#bytes -= count;
  }

  /** A message of the sender is complete, or its connection is closed. */
  forget(sender: UnfinishedSender): void {
    const { bytes, pieces } = this.#partOf.get(sender) ?? { bytes: 0, pieces: 0 };
    this.#bytes -= bytes + pieces * MESSAGE_OVERHEAD_BYTES;
    this.#partOf.delete(sender);
  }
}
