/** Inputs and effects of a room that a gateway follows, and the decoder of its owner's messages. */

import type { OwnerReply, SubmittedEdit, ToOwner } from "../../shared/bus/envelope.ts";
import type { ClientId, Epoch, Position, Seq, ServerId } from "../../shared/ids.ts";
import type { Channel, JoinRefusal, ServerFrame, TentativeEdit, Counter } from "../../shared/wire/frames.ts";
import { type CommittedBatch, batchFrom } from "../../shared/wire/committed-edits.ts";
import type { CatchUpQuestions } from "./catch-up-questions.ts";
import type { FirstContentOutcome } from "./first-content-host.ts";
import type { UnackedBudget } from "./unacked-budget.ts";
import type { SearchOutcome, SearchStep } from "./owner-search.ts";
import type { ConnectionId } from "../ports.ts";
import type { WriteOutcome, WriteRefusal } from "./writes-host.ts";
import { decodeFromOwner, type FromOwner } from "../../shared/bus/envelope.ts";
import type { EditsRecord } from "../../shared/bus/record.ts";
import { editsBytesOf, serverOf } from "../../shared/bus/record.ts";
import { Tag } from "../../shared/bus/record.ts";

/**
 * A message of the owner to all gateways. Only the authors of committed edits are decoded: decoding everything took a
 * third of a gateway's time for a record.
 */
type OwnerMessage = Exclude<FromOwner, EditsRecord> | { readonly kind: "committed"; readonly batch: CommittedBatch };

export type LiveOwnerMessage = Exclude<OwnerMessage, { kind: "deleted" }>;

/** Undefined: the bytes are not such a message. */
export function readFromOwner(bytes: Uint8Array): OwnerMessage | undefined {
  if (bytes[0] !== Tag.editsRecord) {
    const message = decodeFromOwner(bytes);
    return message?.kind === "edits" ? undefined : message;
  }
  const batch = batchFrom(editsOf(bytes));
  return batch === undefined ? undefined : { kind: "committed", batch };
}

export function epochOfMessage(message: LiveOwnerMessage): Epoch {
  if (message.kind === "committed") return message.batch.epoch;
  return message.kind === "tentative" ? message.edit.epoch : message.epoch;
}

export function ownerOf(message: LiveOwnerMessage): ServerId | undefined {
  return message.kind === "epoch" ? serverOf(message) : undefined;
}

function editsOf(record: Uint8Array): Uint8Array {
  try {
    return editsBytesOf(record);
  } catch {
    return new Uint8Array(0); // A truncated record contains no committed edits.
  }
}

/** The parts of one room. `questions` have numbers that no other room of the gateway has. */
export type FollowedRoomParts = {
  readonly channel: Channel;
  readonly budget: UnackedBudget;
  readonly questions: CatchUpQuestions;
  readonly isGated?: boolean | undefined;
};

export type FollowedRoomInput =
  | JoinInput
  | { kind: "leave"; connection: ConnectionId }
  /** Without a connection: an edit over HTTP, whose author need not be in the room. */
  | { kind: "edit"; connection: ConnectionId | undefined; edit: SubmittedEdit }
  | { kind: "resubmit"; edit: TentativeEdit }
  | { kind: "replay"; connection: ConnectionId; after: Seq; through: Seq }
  /** The outcome of `watch-read`. */
  | { kind: "read"; connection: ConnectionId }
  /** All edits of this turn of the event loop have arrived. */
  | { kind: "turn-ended" }
  | { kind: "from-owner"; message: OwnerMessage }
  | { kind: "answer"; answer: OwnerReply }
  | { kind: "no-responders" }
  /** The room has no owner, and its tenant has reached its limit of open rooms. */
  | { kind: "not-opened" }
  | { kind: "search"; outcome: SearchOutcome }
  /** The room server no longer sends heartbeats. */
  | { kind: "server-lost"; server: ServerId }
  /** The outcome of `request-content`. */
  | { kind: "content"; outcome: FirstContentOutcome }
  /** No later message of the room is missed. Earlier messages may have been missed. */
  | { kind: "attached" }
  | { kind: "detached" }
  | { kind: "tick" };

export type JoinInput = { kind: "join"; connection: ConnectionId; request: number; client: ClientId; position: Position };

/** `no-content`: the application did not answer with the room's first content. Clients see it as unavailable. */
export type JoinRejection = JoinRefusal | "no-content";

/** The limit of unacknowledged edits that an edit exceeds: of its room, or of the gateway. */
export type UnackedLimit = "room-unacked" | "gateway-unacked";

export type FollowedRoomEffect =
  /** The room is deleted: the connection leaves it and is informed. */
  | { kind: "expel"; connection: ConnectionId }
  /** The waiting writes of the room get no other answer. */
  | { kind: "refuse-writes"; reason: WriteRefusal }
  | { kind: "send-to-owner"; message: ToOwner }
  | { kind: "search"; step: SearchStep }
  /** Asks the application for the first content of the room. Input `content` is the outcome. */
  | { kind: "request-content" }
  /** The room has a later owner. Its name is unknown if the record of its epoch was missed. */
  | { kind: "owner-known"; owner: ServerId | undefined; epoch: Epoch }
  /** `toSnapshot`: the client has to fetch a snapshot, and to join again. */
  | {
      kind: "admit";
      connection: ConnectionId;
      client: ClientId;
      request: number;
      epoch: Epoch;
      head: Seq;
      waitedMs: number;
      toSnapshot: boolean;
    }
  | { kind: "reject"; connection: ConnectionId; request: number; reason: JoinRejection }
  | { kind: "send"; to: readonly ConnectionId[]; frame: ServerFrame }
  | { kind: "publish"; frame: ServerFrame; except: ConnectionId | undefined }
  /** The edits of a catch-up. */
  | { kind: "send-edits"; to: readonly ConnectionId[]; edits: Uint8Array }
  /** Input `read` follows once the client has read what it was sent. */
  | { kind: "watch-read"; connection: ConnectionId }
  /** The owner answered for a connection that no longer waits for it. */
  | { kind: "unwanted-catch-up"; connection: ConnectionId; bytes: number }
  | { kind: "publish-edits"; batch: CommittedBatch; except: ConnectionId | undefined }
  | { kind: "listen"; connection: ConnectionId }
  | { kind: "unlisten"; connection: ConnectionId }
  /**
   * The edits are in the log, so they are not sent again. `acked`: those that this gateway forwarded for clients that
   * are still in the room. `ownBytes`: payload bytes of all edits that this gateway forwarded.
   */
  | { kind: "settled"; batch: CommittedBatch; acked: readonly SubmittedEdit[]; ownBytes: number }
  /** The owner's answer to an edit. A write over HTTP may wait for it. */
  | { kind: "write-answered"; client: ClientId; counter: Counter; outcome: WriteOutcome }
  | { kind: "write-refused"; client: ClientId; reason: WriteRefusal }
  /** This effect and the three after it are only counted. */
  | { kind: "limit-reached"; limit: UnackedLimit }
  | { kind: "gap-found" }
  | { kind: "edits-sent-again"; count: number }
  | { kind: "search-begun"; cause: "no-responders" | "silent" | "lost" };

/** A deleted room stays closed permanently. */
export function onceDeleted(input: FollowedRoomInput): FollowedRoomEffect[] {
  if (input.kind === "join") return [{ kind: "reject", connection: input.connection, request: input.request, reason: "deleted" }];
  const isOverHttp = input.kind === "edit" && input.connection === undefined;
  return isOverHttp ? [{ kind: "write-refused", client: input.edit.author.client, reason: "deleted" }] : [];
}
