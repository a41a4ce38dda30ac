/**
 * Port of the local store, which keeps rooms on this device so that a closed or reloaded page loses nothing. Public:
 * `io/indexed-db-store.ts` implements it for browsers, and an application may implement its own. Rules STO1 to STO14.
 */

import type { ClientId, ClientKey, Position, RoomId, Seq } from "../../shared/ids.ts";
import type { Counter } from "../../shared/wire/frames.ts";

/** A store on this device, for all rooms of one user. Wrap your own in a `DeviceStore`. */
export interface EditStore {
  /**
   * Opens the store of a room. Edits of ended pages now belong to this page; edits of running pages are not returned.
   * Rejects if nothing can be stored, with an `Error` whose message gives the reason for developers.
   */
  open(room: StoredRoom): Promise<RoomStore>;
}

/** The store of one room, in one page. Each method may reject: the client then continues without a store. */
export interface RoomStore {
  /** What was stored when it was opened. */
  readonly kept: KeptRoom;
  /** Writes the complete change or nothing. The change is durable once the promise resolves. There is at most one call at a time. */
  keep(change: KeptChange): Promise<void>;
  /**
   * Removes everything stored of the room, including the edits of other pages, because the room is deleted. Nothing is
   * written afterwards.
   */
  forget(): Promise<void>;
  /** Releases the stored edits, so that another page may take them over. No method is called afterwards. */
  close(): void;
}

/** The room to open. */
export type StoredRoom = {
  /** URL of the server, without the token. */
  readonly server: string;
  /** Id of the room, unique on its server within a tenant. */
  readonly room: RoomId;
  /**
   * Merges payloads, from the room's first edit on, into one payload with the same state. Undefined: only
   * unacknowledged edits are stored.
   */
  readonly condense: ((payloads: readonly Uint8Array[]) => Uint8Array) | undefined;
  /** Call this if the stored data may be lost. The client then passes everything to `keep()` again. */
  readonly lost?: () => void;
};

/** The stored content of a room. */
export type KeptRoom = {
  /** Undefined: only edits are stored. */
  readonly document: KeptDocument | undefined;
  /** Unacknowledged edits, in order of `place`. */
  readonly edits: readonly KeptEdit[];
};

/** The room's content up to a position, without this device's unacknowledged edits. */
export type KeptDocument = {
  /** Position of the last edit that it contains. */
  readonly position: Position;
  /** The edit at the position, if known. */
  readonly last: EditName | undefined;
  /** The content, in the application's format. */
  readonly payload: Uint8Array;
};

/** An edit that is not known to be committed. */
export type KeptEdit = {
  /** Defines the order, and is used once per page. */
  readonly place: number;
  /** The content, in the application's format. */
  readonly payload: Uint8Array;
  /** Number of application calls that made the edit. */
  readonly made: number;
  /**
   * The key and counter with which the edit was sent or was about to be sent, so the log may contain it. Undefined: it
   * was never sent.
   */
  readonly sent: SentAs | undefined;
};

/** How an edit was sent, so that it can be sent again without being applied twice. */
export type SentAs = {
  /** Secret of the page that sent it. */
  readonly clientKey: ClientKey;
  /** The sender's client id, if known. */
  readonly client?: ClientId | undefined;
  /** Number of the edit among the edits of this client in the room, from 1. */
  readonly counter: Counter;
  /** Seq of the newest edit that the page had received. */
  readonly parentSeq: Seq;
};
/** Identifies an edit. */
export type EditName = {
  /** The client that made it. */
  readonly client: ClientId;
  /** Number of the edit among the edits of this client in the room, from 1. */
  readonly counter: Counter;
};

/** A change of the stored content, to be written completely or not at all. */
export type KeptChange = {
  /** Edits to add, or to replace those with the same `place`. */
  readonly put: readonly KeptEdit[];
  /** Places of the edits to remove. */
  readonly drop: readonly number[];
  /** Apply in this order. */
  readonly document: readonly DocumentChange[];
};

/** A change of the stored document. */
export type DocumentChange =
  /**
   * Edits after `after`, up to the position. If the stored content is already further (another page stores the same
   * document), or does not reach `after`, the change is ignored.
   */
  | {
      readonly kind: "continued";
      readonly after: Seq;
      readonly position: Position;
      readonly last: EditName;
      readonly payloads: readonly Uint8Array[];
    }
  /** A snapshot; ignored if the stored content is further. `last`: the edit at the position. */
  | { readonly kind: "begun"; readonly position: Position; readonly last?: EditName | undefined; readonly payload: Uint8Array }
  /** The stored content does not belong to the server's log: remove it. */
  | { readonly kind: "forgotten" };
