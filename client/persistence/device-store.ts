/**
 * The entry point `@coroom/client/store`: what a room needs to keep its edits and content in a store on this device.
 * Applications without a store do not load it.
 *
 * @module @coroom/client/store
 */

import { assert } from "../../shared/assert.ts";
import type { Problem } from "../room/problems.ts";
import type { Outbox } from "../room/outbox.ts";
import type { RoomSessionInput } from "../room/room-messages.ts";
import type { EditStore, RoomStore, StoredRoom } from "./edit-store.ts";
import { type PersistenceOptions, RoomPersistence, storageFailed } from "./persistence.ts";
import { StoreHost } from "./store-host.ts";

export type { ClientKey } from "../../shared/ids.ts";
export type {
  DocumentChange,
  EditName,
  EditStore,
  KeptChange,
  KeptDocument,
  KeptEdit,
  KeptRoom,
  RoomStore,
  SentAs,
  StoredRoom,
} from "./edit-store.ts";

const PERSISTENCE: Omit<PersistenceOptions, "keepsDocument"> = {
  openMsMax: 8_000,
  writeMsMax: 5_000,
  delayMs: 250,
  retryMs: 30_000,
  bytesMax: 8 * 1024 ** 2,
};

/** The option `store` of a room: `indexedDbStore()`, or a store of your own. */
export class DeviceStore implements EditStore {
  readonly #store: EditStore;
  /** Rooms that this page has left and whose store is not closed yet, for example because it is still opening. */
  readonly #leaving = new Map<string, Promise<unknown>>();

  /** `store`: your implementation of `EditStore`. */
  constructor(store: EditStore) {
    const { open } = (store ?? {}) as Partial<EditStore>;
    assert(
      typeof open === "function",
      "a DeviceStore needs your EditStore: an object with open(room), which returns a promise of a RoomStore",
    );
    this.#store = store;
  }

  /** Opens the store of a room. Rejects if nothing can be stored. */
  open(room: StoredRoom): Promise<RoomStore> {
    return this.#store.open(room);
  }

  /** @internal Decides what is written. `keepsDocument`: payloads can be condensed. */
  persistence(outbox: Outbox, keepsDocument: boolean): RoomPersistence {
    return new RoomPersistence({ ...PERSISTENCE, keepsDocument }, outbox);
  }

  /** @internal Opens the room and writes. A room that this page is leaving is opened once that is done, with the edits left there. */
  host(room: StoredRoom, receive: (input: RoomSessionInput) => void, report: (problem: Problem) => void): StoreHost {
    const key = `${room.server} ${room.room}`;
    const others = { before: this.#leaving.get(key), leave: (left: Promise<void>) => this.#receiveLeaving(key, left) };
    return new StoreHost(this, room, receive, (cause) => report(storageFailed(cause)), others);
  }

  #receiveLeaving(key: string, left: Promise<void>): void {
    const all: Promise<unknown> = Promise.all([this.#leaving.get(key), left]).then(
      () => this.#leaving.get(key) === all && this.#leaving.delete(key),
    );
    this.#leaving.set(key, all);
  }
}
