/** What one client says before its room is there. As it came: decoded, awareness would weigh many times that. */

import type { HeldBudget } from "./held-budget.ts";

export class HeldMessages {
  readonly #budget: HeldBudget;
  #messages: Uint8Array[] = [];

  constructor(budget: HeldBudget) {
    this.#budget = budget;
  }

  get all(): readonly Uint8Array[] {
    return this.#messages;
  }

  /** False: all clients together would have more held than they may. */
  hold(message: Uint8Array): boolean {
    if (!this.#budget.take(message)) return false;
    this.#messages.push(message.slice()); // It may be a part of much that was read at once, which would be held with it.
    return true;
  }

  /** What was held. From here on nothing is. */
  release(): readonly Uint8Array[] {
    const released = this.#messages;
    this.#budget.giveBack(released);
    this.#messages = [];
    return released;
  }
}
