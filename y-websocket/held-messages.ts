/**
 * What one client says before its room is there, counted against what all may: messages as they came (decoded, awareness
 * would weigh many times that), and what has come of one that is not whole yet, which the socket keeps meanwhile.
 */

import type { HeldBudget } from "./held-budget.ts";

/** What a message costs beside its bytes. */
const MESSAGE_OVERHEAD_BYTES = 256;

export class HeldMessages {
  readonly #budget: HeldBudget;
  #messages: Uint8Array[] = [];
  #messageBytes = 0;
  /** What has come since the last whole message. */
  #partBytes = 0;

  constructor(budget: HeldBudget) {
    this.#budget = budget;
  }

  get all(): readonly Uint8Array[] {
    return this.#messages;
  }

  /** So much has come of a message. False: all clients together would have more held than they may. */
  holdPart(bytes: number): boolean {
    if (!this.#budget.take(bytes)) return false;
    this.#partBytes += bytes;
    return true;
  }

  /** It is whole, or the socket keeps nothing any more, or may keep what it likes. */
  dropPart(): void {
    this.#budget.giveBack(this.#partBytes);
    this.#partBytes = 0;
  }

  /** False: likewise. */
  hold(message: Uint8Array): boolean {
    const bytes = message.byteLength + MESSAGE_OVERHEAD_BYTES;
    if (!this.#budget.take(bytes)) return false;
    this.#messages.push(message.slice()); // It may be a part of much that was read at once, which would be held with it.
    this.#messageBytes += bytes;
    return true;
  }

  /** What was held. From here on nothing is. The socket may still keep its part, until it is closed. */
  release(): readonly Uint8Array[] {
    const released = this.#messages;
    this.#budget.giveBack(this.#messageBytes);
    this.#messages = [];
    this.#messageBytes = 0;
    return released;
  }
}
