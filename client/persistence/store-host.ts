/**
 * Carries out the effects of a room's persistence: opens the store, writes one change at a time, removes the room,
 * closes the store.
 */

import type { RoomSessionInput } from "../room/room-messages.ts";
import type { DocumentChange, EditStore, KeptChange, RoomStore, StoredRoom } from "./edit-store.ts";

/** Stays of this page in the room: one opens the store once the stays `before` have closed it. `left` resolves then. */
type OtherStays = { readonly before: Promise<unknown> | undefined; readonly leave: (left: Promise<void>) => void };

export class StoreHost {
  readonly #receive: (input: RoomSessionInput) => void;
  readonly #reportForgetFailed: (cause: unknown) => void;
  readonly #leave: OtherStays["leave"];
  #resolveLeft = (): void => {};
  readonly #opened: Promise<RoomStore>;
  /** Calls to the store run one after another. */
  #last: Promise<unknown>;
  #isClosed = false;
  readonly #replaced = new WeakMap<Uint8Array, Uint8Array>();

  constructor(
    store: EditStore,
    room: StoredRoom,
    receive: (input: RoomSessionInput) => void,
    reportForgetFailed: (cause: unknown) => void,
    { before, leave }: OtherStays,
  ) {
    this.#receive = receive;
    this.#reportForgetFailed = reportForgetFailed;
    this.#leave = leave;
    this.#opened = openAfter(before, store, { ...room, lost: () => this.#isClosed || receive({ kind: "store-lost" }) });
    this.#last = this.#opened;
    this.#opened.then(
      ({ kept }) => this.#isClosed || receive({ kind: "restored", kept }),
      (cause: unknown) => receive({ kind: "keep-failed", write: undefined, cause }), // Any error of the store: the room continues without it.
    );
  }

  /** The application left out this edit, so content without effect is stored in its place. Call it while the edit is delivered. */
  replace(payload: Uint8Array, stored: Uint8Array): void {
    this.#replaced.set(payload, stored);
  }

  keep(write: number, { document, ...edits }: KeptChange): void {
    const change = { ...edits, document: document.map((part) => this.#withReplaced(part)) };
    const kept = this.#last.then(async () => (await this.#opened).keep(change));
    this.#last = kept.catch(() => undefined); // Reported below. The next write is tried anyway.
    kept.then(
      () => this.#receive({ kind: "stored", write }),
      (cause: unknown) => this.#receive({ kind: "keep-failed", write, cause }),
    );
  }

  #withReplaced(change: DocumentChange): DocumentChange {
    if (change.kind !== "continued") return change;
    return { ...change, payloads: change.payloads.map((payload) => this.#replaced.get(payload) ?? payload) };
  }

  /** Runs after all earlier calls, as the last one. */
  forget(): void {
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
      .catch(this.#reportForgetFailed)
      .finally(this.#resolveLeft);
  }

  /** `close` or `forget` follows once everything is written. */
  leave(): void {
    if (!this.#isClosed) this.#leave(new Promise((left) => (this.#resolveLeft = left)));
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#opened.then(
      (store) => store.close(),
      () => undefined, // The store was never opened.
    );
    this.#resolveLeft(); // An open store closes first. One that never opens stops no other page.
  }
}

/** A store that throws synchronously counts as one that rejects. */
async function openAfter(before: Promise<unknown> | undefined, store: EditStore, room: StoredRoom): Promise<RoomStore> {
  await before;
  return store.open(room);
}
