/**
 * The frames that a client and a gateway exchange. WIRE.md is the same list for readers who do not
 * write TypeScript; vectors.json is the same list as bytes; codec.ts turns one into the other.
 */

import type { ClientId, ClientKey, Epoch, Position, RoomId, Seq, UserId } from "../ids.ts";
import type { BoardPlace, BoardRole, BoardState, BoardWindow } from "./boards.ts";
import type { PresenceField, PresenceNews } from "./presence.ts";

export const PROTOCOL_VERSION = 1;

/**
 * The first byte of a frame: client to gateway below 0x80, gateway to client from 0x80.
 * A number is never reused; a number not listed is skipped by the receiver.
 */
export const FrameType = {
  "presence": 0x01,
  "edit": 0x02,
  "hello": 0x03,
  "join": 0x04,
  "leave": 0x05,
  "replay-request": 0x06,
  "ping": 0x07,
  "resubmit": 0x08,
  "renew": 0x09,
  "watch-board": 0x0b,
  "presence-news": 0x81,
  "committed": 0x82,
  "welcome": 0x83,
  "joined": 0x84,
  "join-refused": 0x85,
  "left": 0x86,
  "pong": 0x87,
  "ack": 0x88,
  "acked-through": 0x89,
  "nack": 0x8a,
  "resync-required": 0x8b,
  "tentative": 0x8c,
  "saving": 0x8d,
  "error": 0x8e,
  "going-away": 0x8f,
  "mode": 0x90,
  "board": 0x92,
  "degraded": 0x93,
  "renewed": 0x94,
  "retry-later": 0x95,
  "own-rank": 0x96,
  "presence-again": 0x97,
} as const;

/** A room on one socket: the number that JOINED gave it. Of one gateway's making, 1 and up. */
export type Channel = number;
/** The number of an edit among its client's edits in one room: 1, 2, 3, ... without a hole. */
export type Counter = number;

/** client -> gateway */
export type ClientFrame =
  | { type: "hello"; version: number; token: string; agent: string }
  | { type: "join"; request: number; room: RoomId; clientKey: ClientKey; position: Position }
  | { type: "leave"; channel: Channel }
  | EditFrame
  | { type: "resubmit"; channel: Channel; edit: TentativeEdit }
  | { type: "replay-request"; channel: Channel; after: Seq; through: Seq }
  | { type: "ping"; nonce: number }
  | { type: "renew"; token: string }
  /** The fields of the sender's presence that changed. */
  | { type: "presence"; channel: Channel; fields: readonly PresenceField[] }
  /** `shown`: how many from the first on; 0: no more of it. */
  | { type: "watch-board"; channel: Channel; role: BoardRole; window: BoardWindow; shown: number };

/** `ackedThrough`: every edit of this client up to it is known committed; `counter` is above it. */
export type EditFrame = { type: "edit"; channel: Channel; counter: Counter; ackedThrough: Counter; parentSeq: Seq; payload: Uint8Array };

/** gateway -> client */
export type ServerFrame =
  | { type: "welcome"; version: number; connection: string; limits: Limits; tokenExpiresInMs: number }
  | { type: "joined"; request: number; channel: Channel; client: ClientId; epoch: Epoch; head: Seq; rights: Rights }
  | { type: "join-refused"; request: number; reason: JoinRefusal; retryAfterMs: number; message: string }
  | { type: "left"; channel: Channel; reason: LeftReason }
  | { type: "committed"; channel: Channel; edits: CommittedEdits }
  | { type: "ack"; channel: Channel; epoch: Epoch; counter: Counter; seq: Seq; count: number }
  | { type: "acked-through"; channel: Channel; epoch: Epoch; counter: Counter; seq: Seq }
  | { type: "nack"; channel: Channel; counter: Counter; reason: NackReason; expected: Counter; retryAfterMs: number }
  | { type: "resync-required"; channel: Channel; reason: ResyncReason; head: Position }
  | { type: "tentative"; channel: Channel; edit: TentativeEdit }
  | { type: "saving"; channel: Channel; state: SavingState }
  | { type: "pong"; nonce: number }
  | { type: "going-away"; reconnectAfterMs: number }
  | { type: "degraded"; backbone: BackboneState; reconnectAfterMs: number }
  | { type: "renewed"; tokenExpiresInMs: number }
  | { type: "retry-later"; retryAfterMs: number }
  | { type: "presence-news"; channel: Channel; news: PresenceNews }
  | { type: "mode"; channel: Channel; mode: RoomMode; participants: number; presencePerSecond: number; shed: number }
  | BoardFrame
  /** The receiver's own place on a board that it watches. `rank` 0: it stands beyond those whose order is told, or has no points. */
  | { type: "own-rank"; channel: Channel; role: BoardRole; window: BoardWindow; rank: number; score: number }
  /** Something that the client said of itself came too fast, and was passed over. */
  | { type: "presence-again"; channel: Channel }
  | { type: "error"; code: number; message: string };

/** `windowId` says which hour, day, ... it is. It counts the room's edits up to `epoch` and `seq`. */
export type BoardFrame = {
  type: "board";
  channel: Channel;
  role: BoardRole;
  window: BoardWindow;
  state: BoardState;
  windowId: string;
  epoch: number;
  seq: Seq;
  members: number;
  ranking: readonly BoardPlace[];
};

/** A frame of a type that this version does not know. The receiver skips it. */
export type UnknownFrame = { type: "unknown"; number: number };

export type Frame = ClientFrame | ServerFrame;

/** What the client must keep to; sizes in bytes, times in milliseconds. */
export type Limits = {
  readonly pingIntervalMs: number;
  readonly silenceMsMax: number;
  readonly frameBytesMax: number;
  readonly editBytesMax: number;
  readonly editBurst: number;
  readonly editsPerSecond: number;
  /** Of all its frames together. */
  readonly bytesBurst: number;
  readonly bytesPerSecond: number;
  /** Frames of presence in all its rooms together. */
  readonly presenceBurst: number;
  readonly presencePerSecond: number;
  /** Of what it shows in one room: names and values, and how many. */
  readonly presenceBytesMax: number;
  readonly presenceFieldsMax: number;
  /** Frames that are neither edits nor presence. */
  readonly controlBurst: number;
  readonly controlsPerSecond: number;
};

export type Rights = { readonly read: boolean; readonly write: boolean };

/** Edits as the log has them: consecutive seqs from `firstSeq`, all of one epoch. Never empty. */
export type CommittedEdits = { readonly epoch: Epoch; readonly firstSeq: Seq; readonly edits: readonly CommittedEdit[] };
export type CommittedEdit = { readonly client: ClientId; readonly counter: Counter; readonly parentSeq: Seq; readonly payload: Uint8Array };

/** An edit that reached the room before the log had it. `mac` proves that a room server saw its author send it. */
export type TentativeEdit = {
  readonly epoch: Epoch;
  readonly user: UserId;
  readonly client: ClientId;
  readonly counter: Counter;
  readonly ackedThrough: Counter;
  readonly parentSeq: Seq;
  readonly mac: Uint8Array;
  readonly payload: Uint8Array;
};

/**
 * Why a join was refused. `retryAfterMs` is 0 where trying again is of no use. tenant-rooms: the tenant has as many
 * open rooms as it may. deleted: for good.
 */
export const JOIN_REFUSALS = {
  "not-allowed": 1,
  "room-full": 2,
  "too-many-rooms": 3,
  "unavailable": 4,
  "tenant-rooms": 5,
  "deleted": 6,
} as const;
export type JoinRefusal = keyof typeof JOIN_REFUSALS;

/** rights-changed: the room may be joined again at once, with the rights that its JOINED tells. deleted: never again. */
export const LEFT_REASONS = { "asked": 1, "rights-revoked": 2, "rights-changed": 3, "deleted": 4 } as const;
export type LeftReason = keyof typeof LEFT_REASONS;

/**
 * Why an edit was refused; refusing one refuses all behind it of the same client.
 *
 * gap                 `expected` is the counter to send next
 * write-backpressure  too many edits of the room wait for the log; wait `retryAfterMs`
 * log-stalled         the log has not answered for 10 s; wait `retryAfterMs`
 * tenant-rate         the tenant sends as many edits a second as it may; wait `retryAfterMs`
 * read-only, too-large, forged   sending it again would be refused again
 */
export const NACK_REASONS = {
  "gap": 1,
  "read-only": 2,
  "write-backpressure": 3,
  "log-stalled": 4,
  "too-large": 5,
  "forged": 6,
  "tenant-rate": 7,
} as const;
export type NackReason = keyof typeof NACK_REASONS;

/** too-old: the edits after the position are gone; ahead, other-epoch: the position is not of this log. */
export const RESYNC_REASONS = { "too-old": 1, "ahead": 2, "other-epoch": 3 } as const;
export type ResyncReason = keyof typeof RESYNC_REASONS;

/**
 * How a room's presence travels, told when it changes. flat: everybody sees everybody; hierarchical: from afar only
 * what is near one's viewport. `presencePerSecond`: how often a client may send its own; `shed`: 0, or how much is
 * left out or delayed under pressure, by the drop order.
 */
export const ROOM_MODES = { flat: 1, hierarchical: 2 } as const;
export type RoomMode = keyof typeof ROOM_MODES;

/** lost: the gateway cannot reach the rooms; edits wait, and nobody hears of anybody. found: it can again. */
export const BACKBONE_STATES = { found: 0, lost: 1 } as const;
export type BackboneState = keyof typeof BACKBONE_STATES;

/** saved: the log keeps up; saving: it is slow, edits go out as tentative; refusing: new edits are refused. */
export const SAVING_STATES = { saved: 0, saving: 1, refusing: 2 } as const;
export type SavingState = keyof typeof SAVING_STATES;
