/** Options and events of a provider. Some events have a second name, under which bindings for other providers listen. */

import type * as Y from "yjs";

import type { ClientId, Seq } from "../../shared/ids.ts";
import type { SavingState } from "../../shared/wire/frames.ts";
import type { SocketClose } from "../connection/connection-messages.ts";
import type { Participant, PresenceChange } from "../presence/participants.ts";
import type { ModeFacts } from "../presence/room-presence.ts";
import type { Problem, Refusal } from "../room/problems.ts";
import type { CommonRoom, CommonRoomOptions, StatusChange } from "../room/room-events.ts";

/** Options of a `CoroomProvider`. */
export type ProviderOptions = CommonRoomOptions & {
  /** The document to synchronize. With a store, give an empty one: its content is loaded from the store. */
  readonly doc: Y.Doc;
};

/** Events of a `CoroomProvider`, with the arguments of each listener. */
export type ProviderEvents = {
  /** `why` (text) and `retryInMs` (milliseconds) are set while it waits for the next attempt. */
  "status": [StatusChange];
  /** True: the document holds everything up to the head at the time of joining. */
  "synced": [boolean];
  /** Same as `synced`, under the name that y-websocket bindings use. Lexical fills an empty document on it. */
  "sync": [boolean];
  /** True: every change made here is acknowledged. */
  "saved": [boolean];
  /** True: every change made here is acknowledged or stored on this device, so closing the page loses nothing. */
  "stored": [boolean];
  /** The document holds the content of the local store. */
  "restored": [];
  /** State of the room's log: `saved`, `saving` (slow) or `refusing` (accepts no edits). */
  "saving": [SavingState];
  /** Seq of the newest edit in the document. */
  "seq": [Seq];
  /** A participant entered, left, or changed name, role or rights. */
  "participants": [ReadonlyMap<ClientId, Participant>];
  /** Participants whose presence changed, including this client. The awareness emits its own events. */
  "presence": [PresenceChange];
  /** How the room's presence is sent, and this client's maximum rate. */
  "mode": [ModeFacts];
  /** The socket closed; null: this client closed it. Then the provider. Under the name and with the arguments of y-websocket. */
  "connection-close": [SocketClose | null, CommonRoom];
  /** The socket broke or could not be opened. `connection-close` follows. Under the name of y-websocket. */
  "connection-error": [SocketClose, CommonRoom];
  /** Number of changes that are not acknowledged. Under the name of Hocuspocus. */
  "unsyncedChanges": [{ readonly number: number }];
  /** The server rejected the token, or the token does not admit to the room. `refused` follows. Under the name of Hocuspocus. */
  "authenticationFailed": [{ readonly reason: string }];
  /** The server refused this client. Nothing is tried until `connect()` is called. */
  "refused": [Refusal];
  /** A problem that does not stop the client. */
  "error": [Problem];
};
