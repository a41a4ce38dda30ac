/** The ports of the document service. `io/` implements each, and tests replace them. */

import type { CheckpointEntry } from "../shared/bus/checkpoint.ts";
import type { ReadPosition, StoredRecord } from "../shared/bus/record.ts";
import type { FullStorage, StorageAnswer, StoragePeaks, TenantCounts } from "../shared/bus/storage-messages.ts";
import type { WebhookEvent } from "../shared/bus/webhook-events.ts";
import type { Position, RoomId, RoomKey, Seq, TenantId, UnixMillis } from "../shared/ids.ts";
import type { LeaseWrite } from "../shared/cluster/lease.ts";
import type { DocumentContent, DocumentFormat, Diff, Made, TextFound, Wanted } from "./content.ts";
import type { Rendering } from "./formats/rendering.ts";
import type { History } from "./history/history.ts";
import type { WebhookEndpoint } from "../shared/settings/webhook-endpoints.ts";
import type { MergedDocument } from "./merge.ts";
import type { Reverted } from "./history/reverting.ts";
import type { EditAuthors } from "./yjs-authors.ts";

/** `at`: the last ordered seq; 0 if the room has had an owner but no edit. */
export type RoomLogEnd =
  { readonly kind: "empty" } | { readonly kind: "at"; readonly seq: Seq } | { readonly kind: "deleted"; readonly streamSeq: number };
/** The log of one partition, over all its rooms. */
export interface StoredPartitionLog {
  /**
   * The partition's records after a position, in order, until the signal. Throws when the log does not answer; the
   * caller then continues after the last record received. Throws `LogEndLost` when the log does not have a record that
   * was read before; the caller then starts from the first record.
   */
  follow(partition: number, from: ReadPosition, signal: AbortSignal): AsyncIterable<StoredRecord>;
  /**
   * The existing records of the partition in `after < streamSeq <= through`, in order. A lagging replica may omit a record
   * that is not new.
   */
  readAll(partition: number, after: number, through: number): AsyncIterable<StoredRecord>;
  /** The partition's rooms that have more than one record in the log. */
  untrimmed(partition: number): Promise<readonly RoomKey[]>;
}

/** The log of one room. */
export interface StoredRoomLog {
  /** The end of the room's log. Throws `UndecodableEntry` if its last record does not decode. */
  end(room: RoomKey): Promise<RoomLogEnd>;
  /** Like `readAll`, of the room's records only. */
  read(room: RoomKey, after: number, through: number): AsyncIterable<StoredRecord>;
  /** The room's record at that stream sequence. A former leader may answer undefined for a new one. */
  at(room: RoomKey, streamSeq: number): Promise<StoredRecord | undefined>;
  /** Removes the room's records before the stream sequence `before`. */
  trim(room: RoomKey, before: number): Promise<void>;
}

export type EditLog = StoredPartitionLog & StoredRoomLog;

/** Names of the rooms in the log. */
export interface RoomNames {
  /** All rooms of the tenant that ever had an owner, deleted ones included, in no order. */
  roomsOf(tenant: TenantId): Promise<readonly RoomId[]>;
}

/** Ends rooms. */
export interface Deletions {
  /**
   * Appends the room's last record, without an expected sequence. Resolves with its stream sequence once the log has
   * it. Throws when the outcome is unknown.
   */
  append(room: RoomKey): Promise<number>;
  /**
   * Makes the room's owner read its log. `nobody`: there is no owner, so no service orders or sends anything of the
   * room. Never rejects.
   */
  notifyOwner(room: RoomKey): Promise<"nobody" | "somebody">;
}

/** `revision` 0: there is no checkpoint. */
export type StoredCheckpoint = { readonly checkpoint: CheckpointEntry | undefined; readonly revision: number };
export interface Checkpoints {
  /** Throws `UndecodableEntry` if the checkpoint does not decode. */
  read(room: RoomKey): Promise<StoredCheckpoint>;
  /** Replaces exactly `revision`. Throws when the outcome is unknown; the same call again settles it. */
  write(room: RoomKey, checkpoint: CheckpointEntry, revision: number): Promise<LeaseWrite>;
}

/** `revision` 0: there is no history. */
export type StoredHistory = { readonly history: History; readonly revision: number };
export interface Histories {
  read(room: RoomKey): Promise<StoredHistory>;
  /** Like `Checkpoints.write`. */
  write(room: RoomKey, history: History, revision: number): Promise<LeaseWrite>;
  /** The store's date, which does not depend on the date of this machine. It may be late, but not early. */
  storeDate(): UnixMillis;
}

/**
 * Bytes by name: the room's key, a slash, and a part unique to the object. A name is written once, so a store needs no
 * rule for concurrent writes of one name.
 */
export interface ObjectStore {
  /** Resolves once the bytes are durable. */
  write(name: string, bytes: Uint8Array): Promise<void>;
  /** Undefined: there is no such object. The bytes may be damaged: the reader checks the digest. */
  read(name: string): Promise<Uint8Array | undefined>;
  /** Has no effect if there is no such object. */
  remove(name: string): Promise<void>;
  /** The bytes of all objects by name. Undefined: the size is not known now. */
  list(): Promise<ReadonlyMap<string, number | undefined>>;
  /**
   * Removes the unfinished objects of dead writers, once they are too old to belong to a living one. Resolves with
   * their number.
   */
  sweep(): Promise<number>;
}

/**
 * "overran": the task exceeded its time. "busy": too many tasks wait, or the thread died. "unreadable": the content
 * cannot be read or converted, at any try, or it ended every thread that tried.
 */
export type Unread = "overran" | "busy" | "unreadable";

/** Whether a client waits for a merge. */
export type MergeUrgency = "awaited" | "background";

/** Runs `mergeEdits` (merge.ts) in a thread. Rooms share the threads fairly. */
export interface Merging {
  /** Waits for a thread, even if many tasks wait. A room that takes too long waits only for other such rooms. */
  merge(
    state: Uint8Array,
    edits: readonly Uint8Array[],
    room: RoomKey,
    urgency: MergeUrgency,
    authors?: EditAuthors,
  ): Promise<MergedDocument | Unread>;
}

/** Reads the room's state in a thread (content.ts). Rooms share the threads fairly. */
export interface DocumentReads {
  diff(state: Uint8Array, room: RoomKey, vector: Uint8Array): Promise<Diff | Unread>;
  json(state: Uint8Array, room: RoomKey, wanted: readonly Wanted[]): Promise<Uint8Array | Unread>;
  text(state: Uint8Array, room: RoomKey, name: string | undefined): Promise<TextFound | Unread>;
  rendered(state: Uint8Array, room: RoomKey, format: DocumentFormat, wanted: Wanted | undefined): Promise<Rendering | Unread>;
}

/** Makes edits of given content in a thread. Clients accept each edit. `room`: the one that is written. Rooms share the thread fairly. */
export interface EditMaking {
  /** The edit itself. */
  check(edit: Uint8Array, room: RoomKey): Promise<Made | Unread>;
  make(content: DocumentContent, room: RoomKey): Promise<Made | Unread>;
  /** `body`: JSON, as `DocumentReads.json` answers it. */
  makeOfJson(body: Uint8Array, room: RoomKey): Promise<Made | Unread>;
}

/** Computes old states in a thread. A task whose signal is aborted is not started. */
export interface Reverting {
  /** `mergeEdits` for a reader: answers "busy" when too many tasks wait. */
  mergeHistory(state: Uint8Array, edits: readonly Uint8Array[], room: RoomKey, signal?: AbortSignal): Promise<MergedDocument | Unread>;
  /** Runs `revertingEdit` (reverting.ts) with an author that no other edit has. */
  revert(current: Uint8Array, earlier: Uint8Array, room: RoomKey): Promise<Reverted | Unread>;
}

/** Reports of what rooms and tenants store, to other document services and to gateways. */
export interface StorageBus {
  publishCounts(counts: TenantCounts): void;
  publishFull(full: FullStorage): void;
  publishPeaks(peaks: StoragePeaks): void;
  onCounts(receive: (counts: TenantCounts) => void): void;
  onFull(receive: (full: FullStorage) => void): void;
}

/** Questions of operators about what a room stores. */
export interface StorageQuestions {
  /** Undefined: another service reads the room's partition. */
  onQuestion(answer: (room: RoomKey) => Promise<StorageAnswer | undefined>): void;
}

/** SHA-256 in hex. */
export type Digest = (bytes: Uint8Array) => string;

/** Receives changes of documents, and notifies webhooks. */
export interface ChangeNotifications {
  /** The room's edits up to the position were read; `edits` of them are new. */
  receiveEdits(room: RoomKey, position: Position, edits: number): void;
  /**
   * Resolves once the room's pending notifications are queued. Call it before a checkpoint covers their edits: after
   * that no service reads these edits again.
   */
  queuePending(room: RoomKey): Promise<void>;
  receiveSnapshot(room: RoomKey, position: Position, bytes: number): Promise<void>;
  /** Resolves once the notification is queued. */
  receiveDeleted(room: RoomKey): Promise<void>;
}

/** `failed`: no answer, or an error that may be temporary. `refused`: the endpoint answers that it does not want the event. */
export type DeliveryOutcome =
  | { readonly kind: "delivered" }
  | { readonly kind: "failed"; readonly why: string; readonly retryAfterMs?: number }
  | { readonly kind: "refused"; readonly why: string };
export type NextStep =
  { readonly kind: "done" } | { readonly kind: "again"; readonly afterMs: number } | { readonly kind: "give-up"; readonly why: string };

/** `event` undefined: it does not decode. `attempt` counts from 1. */
export type QueuedEvent = {
  readonly id: string;
  readonly event: WebhookEvent | undefined;
  readonly attempt: number;
  readonly settle: (next: NextStep) => void;
};

/** Stores events until they are delivered, up to a limit. */
export interface WebhookQueue {
  /** Resolves once the event is durable. The same id within two minutes is the same event. */
  add(id: string, event: WebhookEvent): Promise<void>;
  /**
   * The events due for the endpoint, `most` at a time. An event that is not settled in time is taken again. Several
   * services share them. Throws when NATS does not answer.
   */
  take(endpoint: WebhookEndpoint, most: number, signal: AbortSignal): AsyncIterable<QueuedEvent>;
  /** The number of events that are not settled. */
  waiting(endpoint: WebhookEndpoint): Promise<number>;
}

/** Makes one delivery attempt. Never rejects. */
export interface WebhookCalls {
  deliver(endpoint: WebhookEndpoint, id: string, event: WebhookEvent): Promise<DeliveryOutcome>;
}

/** The application's answer to the request for a room's first content. `why`: for operators. */
export type ApplicationAnswer =
  | { readonly kind: "content"; readonly contentType: string; readonly content: Uint8Array }
  | { readonly kind: "none" }
  | { readonly kind: "failed"; readonly why: string };
