/** What all clients together may have said before their rooms are there: before anybody has looked at their tokens. */

/** What a message costs beside its bytes. */
const MESSAGE_OVERHEAD_BYTES = 256;

export class HeldBudget {
  readonly #bytesMax: number;
  #bytes = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /** False: it is more than may be held. */
  take(message: Uint8Array): boolean {
    const bytes = this.#bytes + costOf(message);
    if (bytes > this.#bytesMax) return false;
    this.#bytes = bytes;
    return true;
  }

  giveBack(messages: readonly Uint8Array[]): void {
    for (const message of messages) this.#bytes -= costOf(message);
  }
}

function costOf(message: Uint8Array): number {
  return message.byteLength + MESSAGE_OVERHEAD_BYTES;
}
