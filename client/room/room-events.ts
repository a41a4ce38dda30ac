/** Options and events of a room. */

import type { ClientId, Position, Seq } from "../../shared/ids.ts";
import type { SavingState, TentativeEdit } from "../../shared/wire/frames.ts";
import type { ConnectionHost } from "../connection/connection-host.ts";
import type { ConnectionStatus, Outage, SocketClose } from "../connection/connection-messages.ts";
import type { Token } from "../connection/token-host.ts";
import type { DeviceStore } from "../persistence/device-store.ts";
import type { EditName } from "../persistence/edit-store.ts";
import type { Participant, PresenceChange } from "../presence/participants.ts";
import type { ModeFacts } from "../presence/room-presence.ts";
import type { Problem, Refusal } from "./problems.ts";
import type { KnownEdit, RestoredEdit, RoomEdit } from "./room-messages.ts";
import type { EditFormat } from "./unsent.ts";

/** Either `connection`, shared with other rooms, or `url` and `token` for a separate connection. */
export type ConnectionSource =
  | { readonly url: string; readonly token: Token; readonly connection?: undefined }
  | { readonly connection: ConnectionHost; readonly url?: undefined; readonly token?: undefined };

/** Options of a `RoomConnection`. */
export type RoomConnectionOptions = CommonRoomOptions & {
  /** Merges waiting edits and cuts large ones. Without it, payloads are sent as they are. */
  readonly format?: EditFormat | undefined;
  /** The application has all content up to this edit, for example from its own store. The room delivers only later edits. */
  readonly since?: KnownEdit | undefined;
};

/** Options of each room: where it is, and how edits are sent and kept. An option that is undefined has its default. */
export type CommonRoomOptions = ConnectionSource & {
  /** Id of the room: 1 to 128 characters, without control characters. */
  readonly room: string;
  /** False: connect only when `connect()` is called. Default: true. */
  readonly connect?: boolean | undefined;
  /** False: waiting edits are not merged before they are sent. Default: true. */
  readonly mergeUnsent?: boolean | undefined;
  /**
   * Maximum number of sent and unacknowledged edits, an integer from 1. The server's burst limit also applies. Default:
   * 400.
   */
  readonly inFlightEditsMax?: number | undefined;
  /**
   * Store that keeps the room on this device: `indexedDbStore()` of `@coroom/client/indexeddb`, or a `DeviceStore` of
   * `@coroom/client/store` around your own.
   */
  readonly store?: DeviceStore | undefined;
};

/** State of the connection to a room. Same values as for a connection. */
export type Status = ConnectionStatus;

/** The status, and while it is `waiting` the reason and the time until the next attempt. */
export type StatusChange = { readonly status: Status } & Partial<Outage>;

/** Events of a `RoomConnection`, with the arguments of each listener. */
export type RoomEvents = {
  /** `why` (text) and `retryInMs` (milliseconds) are set while it waits for the next attempt. */
  "status": [StatusChange];
  /** True: everything up to the head at the time of joining has been delivered. */
  "synced": [boolean];
  /** True: every edit made here, and everything it may build on, is in the server's log. */
  "saved": [boolean];
  /** True: every edit made here is acknowledged or stored on this device, and builds on nothing that may be lost. */
  "stored": [boolean];
  /**
   * The content of the local store was loaded; emitted after `snapshot`, if the store had the room's content. Lists
   * edits made on this device and not acknowledged yet: show them. They are sent automatically.
   */
  "restored": [readonly RestoredEdit[]];
  /** State of the room's log: `saved`, `saving` (slow) or `refusing` (accepts no edits). */
  "saving": [SavingState];
  /** The newest delivered seq. */
  "seq": [Seq];
  /** Committed edits in seq order without gaps; all edits of one frame together. */
  "edits": [readonly RoomEdit[]];
  /** Each committed edit, in seq order without gaps. */
  "edit": [RoomEdit];
  /** Edits of others that are not in the log yet. Each arrives again as a committed edit. */
  "tentative": [readonly TentativeEdit[]];
  /**
   * Tentative edits that were shown here and never committed, although they were resubmitted. Other clients may not
   * have them: send their payloads as new edits, or undo them. A client that may only read receives this event too. It
   * should keep them until it may write, and send them before edits that build on them.
   */
  "unconfirmed": [readonly TentativeEdit[]];
  /** The room's complete state at this position. It replaces everything delivered before. */
  "snapshot": [{ readonly position: Position; readonly last?: EditName | undefined; readonly payload: Uint8Array }];
  /**
   * The server lost edits that were delivered here, or cannot verify them after a very long absence. A snapshot or all
   * edits of the room follow.
   */
  "rolled-back": [];
  /** A participant entered, left, or changed name, role or rights. */
  "participants": [ReadonlyMap<ClientId, Participant>];
  /** Participants whose presence changed, including this client and participants that entered or left. */
  "presence": [PresenceChange];
  /** The mode in which the room's presence is sent, and this client's maximum rate. */
  "mode": [ModeFacts];
  /** The socket of the connection closed. Null: this client closed it. The client reconnects if `status` is `waiting`. */
  "connection-close": [SocketClose | null];
  /** The server refused this client. Nothing is tried until `connect()` is called. */
  "refused": [Refusal];
  /** A problem that does not stop the client. */
  "error": [Problem];
};

/** Events that a `RoomConnection` and a `CoroomProvider` emit alike. */
export type CommonRoomEvents = Pick<
  RoomEvents,
  "status" | "synced" | "saved" | "stored" | "saving" | "seq" | "participants" | "presence" | "mode" | "refused" | "error"
>;

/**
 * What a `RoomConnection` and a `CoroomProvider` have in common, for functions that take either. Of a union of both
 * classes TypeScript cannot call `on`.
 */
export type CommonRoom = {
  /** Id of the room. */
  readonly room: string;
  /** State of the connection to the room. */
  readonly status: Status;
  /** Why the room is not joined, and when the next attempt follows. */
  readonly outage: Outage | undefined;
  /** True: everything up to the head at the time of joining has been delivered. */
  readonly synced: boolean;
  /** True: every edit made here, and everything it may build on, is in the server's log. */
  readonly saved: boolean;
  /** True: every edit made here is acknowledged or stored on this device, and builds on nothing that may be lost. */
  readonly stored: boolean;
  /** The participants in the room, including this client. */
  readonly participants: ReadonlyMap<ClientId, Participant>;
  /** Calls the listener at each event of this name. */
  on<Name extends keyof CommonRoomEvents>(name: Name, listener: (...args: CommonRoomEvents[Name]) => void): void;
  /** Removes the listener. */
  off<Name extends keyof CommonRoomEvents>(name: Name, listener: (...args: CommonRoomEvents[Name]) => void): void;
};
