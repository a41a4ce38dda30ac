/** Collects the messages of JetStream's atomic batches until each batch is complete. */

import type { Published } from "./sim-nats.ts";

/** The answer of the server. */
export const BATCH_INCOMPLETE = { error: { err_code: 10_176, description: "batch publish is incomplete" } };

/** `facts`: what the answer to the last message states besides the sequence. */
export type StagedMessages = {
  readonly messages: readonly Published[];
  readonly facts: { readonly batch?: string; readonly count?: number };
};

export class SimBatches {
  readonly #staged = new Map<string, Published[]>();

  /** Returns the messages to store together: a message alone at once, and a batch with its last message. */
  receive(message: Published): StagedMessages | "staged" | "incomplete" {
    const batch = message.headers?.get("Nats-Batch-Id");
    if (batch === undefined) return { messages: [message], facts: {} };
    const messages = [...(this.#staged.get(batch) ?? []), message];
    this.#staged.set(batch, messages);
    if (message.headers?.get("Nats-Batch-Commit") !== "1") return "staged";
    this.#staged.delete(batch);
    const isComplete = messages.every(({ headers }, index) => headers?.get("Nats-Batch-Sequence") === String(index + 1));
    return isComplete ? { messages, facts: { batch, count: messages.length } } : "incomplete";
  }

  /** The server was killed. */
  clear(): void {
    this.#staged.clear();
  }
}
