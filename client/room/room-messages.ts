/** Inputs and effects of a room's state machine. */

import type { ClientId, ClientKey, Millis, Position, Seq } from "../../shared/ids.ts";
import type { ClientFrame, Counter, Limits, ServerFrame, TentativeEdit } from "../../shared/wire/frames.ts";
import type { EditSendRate, FrameSendRate } from "../connection/client-rates.ts";
import type { EditName, KeptChange, KeptRoom } from "../persistence/edit-store.ts";
import type { SnapshotAnswer } from "../ports.ts";
import type { Problem, Refusal } from "./problems.ts";

/** A committed edit. */
export type RoomEdit = {
  /** Number of the edit in the room, from 1, without gaps. */
  readonly seq: Seq;
  /** The client that made it. */
  readonly client: ClientId;
  /** Number of the edit among the edits of this client in the room, from 1. */
  readonly counter: Counter;
  /** The content, in the application's format. */
  readonly payload: Uint8Array;
  /** The application has it already, because it made the edit or received it as `restored`. */
  readonly own: boolean;
};

/** An edit and its position. The application has all content up to it. */
export type KnownEdit = {
  /** The room's `position` when the edit was delivered. */
  readonly position: Position;
  /** The edit at the position. */
  readonly last: EditName;
};

export type RoomFrame = Exclude<
  ServerFrame,
  { type: "welcome" | "pong" | "error" | "going-away" | "degraded" | "renewed" | "retry-later" }
>;

/** An open connection: the server's limits, and the send rates that all its rooms share. */
export type SharedLimits = { readonly limits: Limits; readonly editRate: EditSendRate; readonly presenceRate: FrameSendRate };

/** An edit from the local store that was not acknowledged yet. It is sent automatically. */
export type RestoredEdit = {
  /** The content, in the application's format. */
  readonly payload: Uint8Array;
  /** Number of the application's calls that made it, from 1, because waiting edits are merged. */
  readonly made: number;
};

export type RoomSessionInput =
  | { kind: "enter" }
  | { kind: "leave" }
  | ({ kind: "connection-open" } & SharedLimits)
  | { kind: "connection-lost"; lastReceivedAt: Millis }
  | { kind: "frame"; frame: RoomFrame }
  /** Sent with the next input, so that edits made in one task go out together. */
  | { kind: "edit"; payload: Uint8Array }
  | { kind: "snapshot"; answer: SnapshotAnswer }
  /** The content of the local store. */
  | { kind: "restored"; kept: KeptRoom }
  | { kind: "stored"; write: number }
  /** `write` is undefined if the store could not be opened. */
  | { kind: "keep-failed"; write: number | undefined; cause: unknown }
  /** The local store may have lost its content. */
  | { kind: "store-lost" }
  | { kind: "tick" };

/** A feature of a room in an entry point of its own, so that applications without it do not load it. */
export interface RoomPart {
  /** Called before the room takes the input. */
  receiveInput?(input: RoomSessionInput): void;
  /** A frame of the room was passed to the connection. */
  receiveSent?(frame: ClientFrame): void;
  /** The room is left permanently. */
  end(): void;
}

export type RoomSessionEffect =
  | { kind: "join"; clientKey: ClientKey; position: Position }
  | { kind: "send"; frame: ClientFrame }
  | { kind: "fetch-snapshot" }
  | { kind: "deliver"; edits: readonly RoomEdit[] }
  | { kind: "show-tentative"; edits: readonly TentativeEdit[] }
  /** Shown before and abandoned: other clients may not have these edits. */
  | { kind: "unconfirmed"; edits: readonly TentativeEdit[] }
  | { kind: "load-snapshot"; position: Position; last?: EditName | undefined; payload: Uint8Array }
  /** The server's log has lost edits that this client had received. */
  | { kind: "log-rolled-back" }
  /** Unacknowledged edits from the local store, to be shown again. */
  | { kind: "restored"; edits: readonly RestoredEdit[] }
  | { kind: "keep"; write: number; change: KeptChange }
  /** The room is deleted: remove it from the local store. */
  | { kind: "forget-room" }
  /** This page must not use the local store. */
  | { kind: "close-store" }
  | { kind: "refused"; refusal: Refusal }
  | { kind: "problem"; problem: Problem };
