/** What a room on this gateway is told, and what it wants done. */

import type { Answer, SubmittedEdit, ToOwner } from "../../shared/bus/envelope.ts";
import type { ClientId, Epoch, Position, Seq, ServerId } from "../../shared/ids.ts";
import type { JoinRefusal, ServerFrame, TentativeEdit } from "../../shared/wire/frames.ts";
import type { Heard } from "./from-owner.ts";
import type { CommittedBatch } from "./in-order.ts";
import type { SearchOutcome, SearchStep } from "./owner-search.ts";
import type { ConnectionId } from "../ports.ts";
import type { WriteOutcome, WriteRefusal } from "./writes-host.ts";

export type RoomInput =
  | JoinInput
  | { kind: "leave"; connection: ConnectionId }
  | { kind: "edit"; connection: ConnectionId; edit: SubmittedEdit }
  /** An edit of nobody who is in the room. */
  | { kind: "write"; edit: SubmittedEdit }
  | { kind: "resubmit"; edit: TentativeEdit }
  | { kind: "replay"; connection: ConnectionId; after: Seq; through: Seq }
  /** All edits of this turn of the event loop are in. */
  | { kind: "turn-ended" }
  | { kind: "from-owner"; message: Heard }
  | { kind: "answer"; answer: Answer }
  | { kind: "no-responders" }
  /** Nobody has it, and its tenant may open no further room. */
  | { kind: "not-opened" }
  | { kind: "search"; outcome: SearchOutcome }
  /** This room server is no longer heard, by anybody. */
  | { kind: "server-lost"; server: ServerId }
  /** From now on nothing said in the room is missed; what was said before may have been. */
  | { kind: "attached" }
  | { kind: "detached" }
  | { kind: "tick" };

export type JoinInput = { kind: "join"; connection: ConnectionId; request: number; client: ClientId; position: Position };

export type RoomEffect =
  /** The room is deleted: the connection is to be told, and is in it no more. */
  | { kind: "expel"; connection: ConnectionId }
  /** Of the writes that wait for the room none will be answered otherwise. */
  | { kind: "refuse-writes"; reason: WriteRefusal }
  | { kind: "tell"; message: ToOwner }
  | { kind: "search"; step: SearchStep }
  /** `toSnapshot`: only to be sent to one, and to join again from there. */
  | {
      kind: "let-in";
      connection: ConnectionId;
      client: ClientId;
      request: number;
      epoch: Epoch;
      head: Seq;
      waitedMs: number;
      toSnapshot: boolean;
    }
  | { kind: "turn-away"; connection: ConnectionId; request: number; reason: JoinRefusal }
  | { kind: "send"; to: readonly ConnectionId[]; frame: ServerFrame }
  | { kind: "publish"; frame: ServerFrame; except: ConnectionId | undefined }
  /** What catches connections up, as they asked. */
  | { kind: "send-edits"; to: readonly ConnectionId[]; edits: Uint8Array }
  /** What the owner sent for a connection that did not wait for it. */
  | { kind: "asked-in-vain"; connection: ConnectionId; bytes: number }
  | { kind: "publish-edits"; batch: CommittedBatch; except: ConnectionId | undefined }
  | { kind: "listen"; connection: ConnectionId }
  | { kind: "unlisten"; connection: ConnectionId }
  /** Its edits are in the log, however that was learned: nobody sends them again. */
  | { kind: "settled"; batch: CommittedBatch }
  /** What the owner said of its edit, to whoever may wait for it. */
  | { kind: "write-answered"; client: ClientId; outcome: WriteOutcome }
  | { kind: "write-refused"; client: ClientId; reason: WriteRefusal }
  | { kind: "noted"; what: Noted; count: number };

/** What only the counters want to know. */
export type Noted = "gap" | "edits-sent-again" | "search-unheard" | "search-lost" | "search-silent";
