/** What the document service needs from the world, in its own words. `io/` implements each; tests fake each. */

import type { CheckpointEntry } from "../shared/bus/checkpoint.ts";
import type { StoredRecord } from "../shared/bus/stored-record.ts";
import type { WebhookEvent } from "../shared/bus/webhook-events.ts";
import type { Position, RoomKey, Seq } from "../shared/ids.ts";
import type { Replaced } from "../shared/lease.ts";
import type { Content, Diff, Made, TextFound, Wanted } from "./content.ts";
import type { History } from "./past/history.ts";
import type { WebhookEndpoint } from "../shared/webhook-endpoints.ts";
import type { DeliveryOutcome, NextStep } from "./webhooks/delivery.ts";
import type { Merged } from "./merge.ts";
import type { Reverted } from "./past/reverting.ts";

/** `at`: the last seq ordered; 0: none, though somebody has owned the room. */
export type LogEnd =
  { readonly kind: "empty" } | { readonly kind: "at"; readonly seq: Seq } | { readonly kind: "deleted"; readonly streamSeq: number };
export interface EditLog {
  /**
   * The partition's records after the stream sequence `after`, in order, without end until the signal. Throws when
   * the log does not answer: begin again after the last one received.
   */
  follow(partition: number, after: number, signal: AbortSignal): AsyncIterable<StoredRecord>;
  /** What the room's log ends in. */
  end(room: RoomKey): Promise<LogEnd>;
  /** The partition's rooms that have more than one record in the log. */
  untrimmed(partition: number): Promise<readonly RoomKey[]>;
  /**
   * The room's records in `after < streamSeq <= through` that are there, in order. A record that is not new may be
   * missing where a replica lags.
   */
  read(room: RoomKey, after: number, through: number): AsyncIterable<StoredRecord>;
  /** The same of all rooms of the partition. */
  readAll(partition: number, after: number, through: number): AsyncIterable<StoredRecord>;
  /** Removes the room's records before the stream sequence `before`. */
  trim(room: RoomKey, before: number): Promise<void>;
}

/** The end of rooms. */
export interface Deletions {
  /**
   * Appends the record that is the room's last, whatever stands before it; resolves with its stream sequence once the
   * log has it. Throws when that is not known.
   */
  append(room: RoomKey): Promise<number>;
  /** Has the room's owner look at its log. `nobody`: there is no owner, so nobody orders or tells anything of the room. Never rejects. */
  tellOwner(room: RoomKey): Promise<"nobody" | "somebody">;
}

/** `revision` 0: there is none yet. */
export type StoredCheckpoint = { readonly checkpoint: CheckpointEntry | undefined; readonly revision: number };
export interface Checkpoints {
  /** Throws `Undecodable` where there is one that cannot be understood. */
  read(room: RoomKey): Promise<StoredCheckpoint>;
  /** Replaces exactly `revision`. Throws when it cannot be known whether it did; the same call again then settles it. */
  write(room: RoomKey, checkpoint: CheckpointEntry, revision: number): Promise<Replaced>;
}

/** `revision` 0: there is none yet. */
export type StoredHistory = { readonly history: History; readonly revision: number };
export interface Histories {
  read(room: RoomKey): Promise<StoredHistory>;
  /** As checkpoints are written. */
  write(room: RoomKey, history: History, revision: number): Promise<Replaced>;
}

/**
 * Bytes by name: the room's key, a slash, and what is unique about this object. A name is written once and never again,
 * so nothing is asked of a store about two who write the same.
 */
export interface ObjectStore {
  /** Resolves once the bytes are durable. */
  write(name: string, bytes: Uint8Array): Promise<void>;
  /** Undefined: no such object. What was damaged may be given back as it is: whoever reads knows the digest. */
  read(name: string): Promise<Uint8Array | undefined>;
  /** Nothing happens where there is none. */
  remove(name: string): Promise<void>;
  /** The names of all there are. */
  list(): Promise<readonly string[]>;
  /** Removes what writers that died left unfinished, once no living one can be at it; of how many objects. */
  sweep(): Promise<number>;
}

/**
 * "overran": it took longer than any question to a thread may, and was given up. "busy": too many wait already, or
 * its thread died. "unreadable": what is in it cannot be read or made so, however often it is asked, or ended every
 * thread that tried.
 */
export type Unread = "overran" | "busy" | "unreadable";

/** `mergeEdits` (merge.ts), somewhere it blocks nobody. */
export interface Merging {
  /** Waits for its turn however many wait. */
  merge(state: Uint8Array, edits: readonly Uint8Array[]): Promise<Merged | Unread>;
}

/** What is asked of a document's state, and of content on its way into one (content.ts), somewhere it blocks nobody. */
export interface Reading {
  diff(state: Uint8Array, vector: Uint8Array): Promise<Diff | Unread>;
  json(state: Uint8Array, wanted: readonly Wanted[]): Promise<Uint8Array | Unread>;
  text(state: Uint8Array, name: string | undefined): Promise<TextFound | Unread>;
  check(edit: Uint8Array): Promise<Made | Unread>;
  make(content: Content): Promise<Made | Unread>;
}

/** What the past is made of, somewhere it blocks nobody. Nothing is begun for somebody whose signal is aborted by then. */
export interface Reverting {
  /** `mergeEdits` for a reader, who is told when too many wait. */
  mergePast(state: Uint8Array, edits: readonly Uint8Array[], signal?: AbortSignal): Promise<Merged | Unread>;
  /** `revertingEdit` (reverting.ts), by an author that no other edit has. */
  revert(current: Uint8Array, past: Uint8Array): Promise<Reverted | Unread>;
}

/** SHA-256 in hex. */
export type Digest = (bytes: Uint8Array) => string;

/** Told what happens to documents, for those outside who want to hear of it. */
export interface News {
  /** The room's edits up to the position are read, so many of them new. */
  receiveEdits(room: RoomKey, position: Position, edits: number): void;
  /** Resolves once what was received of the room is queued: before a checkpoint covers it, for then nobody reads it again. */
  settle(room: RoomKey): Promise<void>;
  receiveSnapshot(room: RoomKey, position: Position, bytes: number): Promise<void>;
  /** Resolves once it is queued. */
  receiveDeleted(room: RoomKey): Promise<void>;
}

/** `event` undefined: it does not decode. `attempt`: from 1. */
export type QueuedEvent = {
  readonly id: string;
  readonly event: WebhookEvent | undefined;
  readonly attempt: number;
  readonly settle: (next: NextStep) => void;
};

/** What is to be told outside, kept until it is told, within bounds. */
export interface WebhookQueue {
  /** Resolves once it is durable. The same id again within two minutes is the same event. */
  add(id: string, event: WebhookEvent): Promise<void>;
  /**
   * What is due for the endpoint, `most` at a time, each to be settled in time or it comes again; several services
   * share it. Throws when NATS does not answer.
   */
  take(endpoint: WebhookEndpoint, most: number, signal: AbortSignal): AsyncIterable<QueuedEvent>;
  /** How many are not settled yet. */
  waiting(endpoint: WebhookEndpoint): Promise<number>;
}

/** One try to deliver. Never rejects. */
export interface WebhookCalls {
  deliver(endpoint: WebhookEndpoint, id: string, event: WebhookEvent): Promise<DeliveryOutcome>;
}
