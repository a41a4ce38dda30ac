/** What gateways send while a claim is under way. Bounded: what does not fit is dropped, and sent again by its gateway. */

import type { FromGateway } from "../../shared/bus/envelope.ts";

export type HeldOptions = { readonly heldMessagesMax: number; readonly heldBytesMax: number };

export class HeldMessages {
  readonly #options: HeldOptions;
  #messages: FromGateway[] = [];
  #bytes = 0;

  constructor(options: HeldOptions) {
    this.#options = options;
  }

  /** False when it does not fit. */
  hold(message: FromGateway, bytes: number): boolean {
    if (this.#messages.length >= this.#options.heldMessagesMax || this.#bytes + bytes > this.#options.heldBytesMax) return false;
    this.#messages.push(message);
    this.#bytes += bytes;
    return true;
  }

  takeAll(): readonly FromGateway[] {
    const messages = this.#messages;
    this.#messages = [];
    this.#bytes = 0;
    return messages;
  }
}
