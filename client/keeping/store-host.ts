/** Carries out what a room's keeping decides: opens the store, has it write one change after the other, forget the room, lets it go. */

import type { EditStore, KeptChange, RoomStore, StoredRoom } from "./edit-store.ts";
import type { RoomInput } from "../room/room-messages.ts";

export class StoreHost {
  readonly #receive: (input: RoomInput) => void;
  readonly #opened: Promise<RoomStore>;
  /** Nothing is asked of the store before it has done what was asked before. */
  #last: Promise<unknown>;
  #isClosed = false;

  constructor(store: EditStore, room: StoredRoom, receive: (input: RoomInput) => void) {
    this.#receive = receive;
    this.#opened = openIn(store, { ...room, lost: () => this.#isClosed || receive({ kind: "store-lost" }) });
    this.#last = this.#opened;
    this.#opened.then(
      ({ kept }) => receive({ kind: "restored", kept }),
      (cause: unknown) => receive({ kind: "keep-failed", write: undefined, cause }), // Whatever the store says: the room goes on without.
    );
  }

  keep(write: number, change: KeptChange): void {
    const kept = this.#last.then(async () => (await this.#opened).keep(change));
    this.#last = kept.catch(() => undefined); // Told below; what comes next is tried all the same.
    kept.then(
      () => this.#receive({ kind: "kept", write }),
      (cause: unknown) => this.#receive({ kind: "keep-failed", write, cause }),
    );
  }

  /** After all that was asked before, and the last that is asked. */
  forget(failed: (cause: unknown) => void): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#last
      .then(async () => {
        const store = await this.#opened;
        try {
          await store.forget();
        } finally {
          store.close();
        }
      })
      .catch(failed);
  }

  /** `close` or `forget` comes once all is written. */
  leave(): void {
    if (this.#isClosed) return;
    this.#opened.then(
      (store) => store.leave?.(),
      () => undefined, // Never opened.
    );
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#opened.then(
      (store) => store.close(),
      () => undefined, // Never opened.
    );
  }
}

async function openIn(store: EditStore, room: StoredRoom): Promise<RoomStore> {
  return await store.open(room); // One that throws at once rejects like any other.
}
