/** Finds the present name of the person who wrote last. A person who has left has no name, because the names come from presence. */

import type { RoomAwareness } from "@coroom/client";
import type * as Y from "yjs";

import { nameIn } from "./people.ts";

export class LatestWriter {
  readonly #awareness: RoomAwareness;
  readonly #listeners: (() => void)[] = [];
  #counts = false;
  #writer: number | undefined;

  constructor(text: Y.Text, awareness: RoomAwareness) {
    this.#awareness = awareness;
    text.observe((_, transaction) => this.#receive(writerOf(transaction)));
  }

  get name(): string | undefined {
    return this.#writer === undefined ? undefined : nameIn(this.#awareness.getStates().get(this.#writer)?.["user"]);
  }

  get isSelf(): boolean {
    return this.#writer === this.#awareness.clientID;
  }

  /** Ignores everything written before this call. */
  beginNow(): void {
    this.#counts = true;
  }

  onChange(changed: () => void): void {
    this.#listeners.push(changed);
  }

  #receive(writer: number | undefined): void {
    if (!this.#counts || writer === undefined || writer === this.#writer) return;
    this.#writer = writer;
    for (const notify of this.#listeners) notify();
  }
}

/** Returns undefined for a deletion: Yjs does not record who deletes. */
function writerOf({ beforeState, afterState }: Y.Transaction): number | undefined {
  let writer: number | undefined;
  for (const [client, clock] of afterState) if (clock > (beforeState.get(client) ?? 0)) writer = client;
  return writer;
}
