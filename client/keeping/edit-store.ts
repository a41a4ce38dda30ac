/**
 * What is kept of rooms on this device, so that a page that is closed, loaded again or gone loses nothing. A port,
 * and part of what the package offers: `io/indexed-db-store.ts` implements it for browsers, an application may for
 * anything else. Rules STO1 to STO14.
 */

import type { ClientId, ClientKey, Position, RoomId, Seq } from "../../shared/ids.ts";
import type { Counter } from "../../shared/wire/frames.ts";

export interface EditStore {
  /**
   * What is kept of the room. Edits that pages left behind which are gone are this page's from here on; those of pages
   * that still run are not told. Rejects where nothing can be kept: the message says why, for people who develop.
   */
  open(room: StoredRoom): Promise<RoomStore>;
}

export interface RoomStore {
  readonly kept: KeptRoom;
  /** All of it or nothing, and it lasts once this resolves. Asked again only after that. */
  keep(change: KeptChange): Promise<void>;
  /** Removes all that is kept of the room, other pages' edits too: it is deleted. Nothing is kept of it afterwards. */
  forget(): Promise<void>;
  /**
   * The room is left for good: what is made last is kept, and `close()` follows within seconds. Whoever opens the
   * room here meanwhile should be given that, so let them wait for it.
   */
  leave?(): void;
  /** Another page may take over what is kept. Nothing is asked of it afterwards. */
  close(): void;
}

export type StoredRoom = {
  /** The server's address, without the token. */
  readonly server: string;
  readonly room: RoomId;
  /** One payload with the state that these lead to, from the room's first edit on. Undefined: only edits that wait are kept. */
  readonly condense: ((payloads: readonly Uint8Array[]) => Uint8Array) | undefined;
  /** To be called when what was kept may be gone: all that waits is given to `keep()` anew. */
  readonly lost?: () => void;
};

export type KeptRoom = { readonly document: KeptDocument | undefined; readonly edits: readonly KeptEdit[] };

/** The room's content up to a position, without what waits here. `last`: the edit at the position, where it is known. */
export type KeptDocument = { readonly position: Position; readonly last: EditName | undefined; readonly payload: Uint8Array };

/** An edit that is not known to be committed. */
export type KeptEdit = {
  /** In order, and never used twice by one page. */
  readonly place: number;
  readonly payload: Uint8Array;
  /** By so many calls of the application. */
  readonly made: number;
  /** What it went out as, or was about to: the log may have it. Undefined: it was never sent. */
  readonly sent: SentAs | undefined;
};

/** `client`: as others see who sent it, where that is known. */
export type SentAs = {
  readonly clientKey: ClientKey;
  readonly client?: ClientId | undefined;
  readonly counter: Counter;
  readonly parentSeq: Seq;
};
/** What tells an edit from every other one. */
export type EditName = { readonly client: ClientId; readonly counter: Counter };

export type KeptChange = {
  readonly put: readonly KeptEdit[];
  /** Places. */
  readonly drop: readonly number[];
  /** In this order. */
  readonly document: readonly DocumentChange[];
};

export type DocumentChange =
  /**
   * The edits behind `after`, up to the position. What is kept may be further: other pages keep the same document.
   * What does not join on to it is left out.
   */
  | {
      readonly kind: "continued";
      readonly after: Seq;
      readonly position: Position;
      readonly last: EditName;
      readonly payloads: readonly Uint8Array[];
    }
  /** A snapshot; left out where what is kept is further. `last`: as of a document. */
  | { readonly kind: "begun"; readonly position: Position; readonly last?: EditName | undefined; readonly payload: Uint8Array }
  /** It is not of the server's log. */
  | { readonly kind: "forgotten" };
