/** What an application gives a room, and what it hears of it. */

import type { ClientId, Position, Seq } from "../../shared/ids.ts";
import type { SavingState, TentativeEdit } from "../../shared/wire/frames.ts";
import type { LineStatus, Outage } from "../connection/connection-messages.ts";
import type { ConnectionHost } from "../connection/connection-host.ts";
import type { Token } from "../connection/token-answer.ts";
import type { EditStore } from "../keeping/edit-store.ts";
import type { RoomEdit } from "./inbox.ts";
import type { Participant, PresenceChange } from "../presence/participants.ts";
import type { Problem, Refusal } from "./problems.ts";
import type { RestoredEdit } from "./room-messages.ts";
import type { ModeFacts } from "../presence/room-presence.ts";
import type { EditFormat } from "./unsent.ts";

/** `connection`: one that is shared with other rooms. Else the room has its own, made of url and token. */
export type Reach =
  | { readonly url: string; readonly token: Token; readonly connection?: never }
  | { readonly connection: ConnectionHost; readonly url?: never; readonly token?: never };

/** How waiting edits are merged, and large ones cut. Without it they are sent as they are. */
export type RoomHostOptions = RoomOptions & { readonly format?: EditFormat };

export type RoomOptions = Reach & {
  /** The room's id: 1 to 128 characters, no control characters among them. */
  readonly room: string;
  /** False: wait for `connect()`. Default: true. */
  readonly connect?: boolean;
  /** False: each edit is sent by itself, even where several wait. Default: true. */
  readonly mergeUnsent?: boolean;
  /** Edits sent and not acknowledged yet, at most: from 1 on, and never more than the server's burst allows. Default: 400. */
  readonly inFlightEditsMax?: number;
  /** Keeps the room on this device, over the page's end: `indexedDbStore()` of `@coroom/client/indexeddb`, or one of your own. */
  readonly store?: EditStore;
};

/** disconnected: not asked to connect. stopped: refused for good. waiting: between two attempts. */
export type Status = LineStatus;

export type StatusChange = { readonly status: Status } & Partial<Outage>;

export type RoomEvents = {
  /** `why` and `retryInMs`: while it waits for the server. */
  "status": [StatusChange];
  /** Whether everything up to the head that the server told has been delivered. */
  "synced": [boolean];
  /** Whether every edit made here is acknowledged, and all that it may build upon. */
  "saved": [boolean];
  /** Whether every edit made here is acknowledged or kept on this device, and builds upon nothing that may be lost. */
  "stored": [boolean];
  /**
   * What was kept on this device is here again: after `snapshot`, if the room's content was kept. Edits made here and
   * not acknowledged yet: show them. They go out by themselves.
   */
  "restored": [readonly RestoredEdit[]];
  /** How the room's log keeps up. */
  "saving": [SavingState];
  /** The newest seq delivered. */
  "seq": [Seq];
  /** Committed edits, in seq order without a hole; those of one frame together. */
  "edits": [readonly RoomEdit[]];
  "edit": [RoomEdit];
  /** Edits of others that the log does not hold yet. Each comes again as a committed edit. */
  "tentative": [readonly TentativeEdit[]];
  /**
   * Tentative edits that were shown here and never committed, however often they were sent in again: nobody else may
   * have them. Send their payloads, or take them back. Who may only read is told, too: keep them until writing is allowed, and
   * send them before what builds upon them.
   */
  "unconfirmed": [readonly TentativeEdit[]];
  /** The room's whole state at this position: what was delivered before is part of it. */
  "snapshot": [{ readonly position: Position; readonly payload: Uint8Array }];
  /** The server has lost edits that were delivered here, or can no longer tell after a very long absence. A snapshot or all its edits follow. */
  "rolled-back": [];
  /** Somebody came, went, or is another now: their name, role or rights. */
  "participants": [ReadonlyMap<ClientId, Participant>];
  /** Whose presence changed, this client's own too; those who came and went among them. */
  "presence": [PresenceChange];
  /** How the room's presence travels, and how often this client may say something. */
  "mode": [ModeFacts];
  /** Nothing is tried any more, until `connect()` is called. */
  "refused": [Refusal];
  /** What the application should know while it goes on. */
  "error": [Problem];
};
