/**
 * The frames between a client and a gateway. WIRE.md describes them in prose, vectors.json gives examples in bytes, and
 * codec.ts encodes and decodes them.
 */

import type { ClientId, ClientKey, Epoch, Position, RoomId, Seq, UserId } from "../ids.ts";
import type { BoardPlace, BoardRole, BoardState, BoardWindow } from "./boards.ts";
import type { PresenceField, PresenceDelta } from "./presence.ts";

export const PROTOCOL_VERSION = 1;

/**
 * The first byte of a frame: client to gateway below 0x80, gateway to client from 0x80. A number is never reused. The
 * receiver skips an unknown number.
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
  "part": 0x0c,
  "presence-delta": 0x81,
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

/** A room on one WebSocket, by the number that the gateway chose in JOINED, from 1. */
export type Channel = number;
/** The number of an edit among its client's edits in one room: 1, 2, 3, ... without a gap. */
export type Counter = number;

/** client -> gateway */
export type ClientFrame =
  | { type: "hello"; version: number; token: string; agent: string }
  | { type: "join"; request: number; room: RoomId; clientKey: ClientKey; position: Position }
  | { type: "leave"; channel: Channel }
  /** The next bytes of a frame that is too large for one message. */
  | { type: "part"; flags: { readonly last: boolean }; payload: Uint8Array }
  | EditFrame
  | { type: "resubmit"; channel: Channel; edit: TentativeEdit }
  | { type: "replay-request"; channel: Channel; after: Seq; through: Seq }
  | { type: "ping"; nonce: number }
  | { type: "renew"; token: string }
  /** The changed fields of the sender's presence. */
  | { type: "presence"; channel: Channel; fields: readonly PresenceField[] }
  /** `shown`: number of places from the first place; 0 ends the watch. */
  | { type: "watch-board"; channel: Channel; role: BoardRole; window: BoardWindow; shown: number };

/** `ackedThrough`: the client knows that its edits up to this counter are committed; `counter` is above it. */
type EditFrame = { type: "edit"; channel: Channel; counter: Counter; ackedThrough: Counter; parentSeq: Seq; payload: Uint8Array };

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
  | { type: "presence-delta"; channel: Channel; delta: PresenceDelta }
  | { type: "mode"; channel: Channel; mode: RoomMode; participants: number; presencePerSecond: number; shed: number }
  | BoardFrame
  /** The receiver's own rank on a watched board. `rank` 0: below the known places, or without points. */
  | { type: "own-rank"; channel: Channel; role: BoardRole; window: BoardWindow; rank: number; score: number }
  /** The client's presence exceeded the rate and was dropped. The client must send all of it again. */
  | { type: "presence-again"; channel: Channel }
  | { type: "error"; code: number; message: string };

/** `windowId`: the hour, day, ... of the window. The board counts edits up to `epoch` and `seq`. */
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

/** A frame of an unknown type. The receiver skips it. */
export type UnknownFrame = { type: "unknown"; number: number };

export type Frame = ClientFrame | ServerFrame;

/** Limits for the client; sizes in bytes, times in milliseconds. */
export type Limits = {
  readonly pingIntervalMs: number;
  readonly silenceMsMax: number;
  readonly frameBytesMax: number;
  readonly editBytesMax: number;
  readonly editBurst: number;
  readonly editsPerSecond: number;
  /** For all frames of the client together. */
  readonly bytesBurst: number;
  readonly bytesPerSecond: number;
  /** Presence frames of the client in all rooms together. */
  readonly presenceBurst: number;
  readonly presencePerSecond: number;
  /** Names and values that the client shows in one room, and their number. */
  readonly presenceBytesMax: number;
  readonly presenceFieldsMax: number;
  /** Frames that are neither edits nor presence. */
  readonly controlBurst: number;
  readonly controlsPerSecond: number;
  /**
   * Maximum bytes of a frame that is sent in parts; `frameBytesMax` is then the size of one message. Absent: no frame
   * may be sent in parts.
   */
  readonly partedFrameBytesMax?: number | undefined;
};

/** What a client may do in a room, from its token and from sanctions. */
export type Rights = {
  /** Receives edits and presence. */
  readonly read: boolean;
  /** May send edits. */
  readonly write: boolean;
};

/** Edits in the log: consecutive seqs from `firstSeq`, all in one epoch. Never empty. */
export type CommittedEdits = { readonly epoch: Epoch; readonly firstSeq: Seq; readonly edits: readonly CommittedEdit[] };
export type CommittedEdit = { readonly client: ClientId; readonly counter: Counter; readonly parentSeq: Seq; readonly payload: Uint8Array };

/** An edit shown to the room before the log stored it. `mac` proves that a room server received it from its author. */
export type TentativeEdit = {
  /** The epoch in which the room server accepted it. */
  readonly epoch: Epoch;
  /** The user who made the edit. */
  readonly user: UserId;
  /** The client that made it. */
  readonly client: ClientId;
  /** Number of the edit among the edits of this client in the room, from 1. */
  readonly counter: Counter;
  /** The author knows that its edits up to this counter are committed. 0: none. */
  readonly ackedThrough: Counter;
  /** Seq of the newest edit that the author had received. */
  readonly parentSeq: Seq;
  /** The room server's signature. */
  readonly mac: Uint8Array;
  /** The content, in the application's format. */
  readonly payload: Uint8Array;
};

/**
 * The reason why a join was refused. `retryAfterMs` is 0 if another attempt is useless. tenant-rooms: the tenant's
 * limit of open rooms is reached. deleted: permanently.
 */
export const JOIN_REFUSALS = {
  "not-allowed": 1,
  "room-full": 2,
  "too-many-rooms": 3,
  "unavailable": 4,
  "tenant-rooms": 5,
  "deleted": 6,
} as const;
/** Why a join was refused: the keys of `JOIN_REFUSALS`. */
export type JoinRefusal = keyof typeof JOIN_REFUSALS;

/** rights-changed: join again at once; JOINED gives the new rights. deleted: never again. */
export const LEFT_REASONS = { "asked": 1, "rights-revoked": 2, "rights-changed": 3, "deleted": 4 } as const;
export type LeftReason = keyof typeof LEFT_REASONS;

/** Why an edit was refused. A refusal covers all later edits of the same client. */
export const NACK_REASONS = {
  /** `expected` is the counter to send next. */
  "gap": 1,
  /** Like `too-large` and `forged`: the same edit would be refused again. */
  "read-only": 2,
  /** Too many edits of the room wait for the log: wait `retryAfterMs`. */
  "write-backpressure": 3,
  /** The log has not answered for 10 s, or has no storage: wait `retryAfterMs`. */
  "log-stalled": 4,
  "too-large": 5,
  "forged": 6,
  /** The tenant or the user is at its limit of edits per second: wait `retryAfterMs`. */
  "tenant-rate": 7,
} as const;
export type NackReason = keyof typeof NACK_REASONS;

/** too-old: the edits after the position are no longer stored. ahead, other-epoch: the position is not in this log. */
export const RESYNC_REASONS = { "too-old": 1, "ahead": 2, "other-epoch": 3 } as const;
export type ResyncReason = keyof typeof RESYNC_REASONS;

/**
 * The mode in which a room's presence is sent, announced on a change. flat: every member receives all presence.
 * hierarchical: a member receives distant cursors only near its viewport. `presencePerSecond`: maximum frames per
 * second of a client. `shed`: 0, or the amount of presence that is dropped or delayed under pressure.
 */
export const ROOM_MODES = { flat: 1, hierarchical: 2 } as const;
/** flat: each member receives all presence. hierarchical: distant cursors only near the viewport. */
export type RoomMode = keyof typeof ROOM_MODES;

/** lost: the gateway cannot reach the rooms; edits wait, and no updates arrive. found: it can reach them again. */
export const BACKBONE_STATES = { found: 0, lost: 1 } as const;
export type BackboneState = keyof typeof BACKBONE_STATES;

/** saved: the log is fast enough. saving: it is slow, and edits are sent as tentative. refusing: new edits are refused. */
export const SAVING_STATES = { saved: 0, saving: 1, refusing: 2 } as const;
/** saved: the log is fast enough. saving: it is slow, and edits are shown as tentative. refusing: new edits are refused. */
export type SavingState = keyof typeof SAVING_STATES;
