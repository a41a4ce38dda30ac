/** What the document service needs from the world, in its own words. `io/` implements each; tests fake each. */

import type { Checkpoint } from "../shared/bus/checkpoint.ts";
import type { Millis, RoomKey, Seq } from "../shared/ids.ts";
import type { Lease } from "./lease.ts";
import type { Merged } from "./merge.ts";

/** One record as the log holds it. `time` is when the log took it, on the log's clock. */
export type StoredRecord = { readonly room: RoomKey; readonly streamSeq: number; readonly time: Millis; readonly bytes: Uint8Array };

export interface EditLog {
  /** The partition's records after the stream sequence `after`, in order, without end until the signal. Throws when the log does not answer: begin again after the last one received. */
  follow(partition: number, after: number, signal: AbortSignal): AsyncIterable<StoredRecord>;
  /** The last seq ordered in the room; 0: none. */
  head(room: RoomKey): Promise<Seq>;
  /** The partition's rooms that have more than one record in the log. */
  untrimmed(partition: number): Promise<readonly RoomKey[]>;
  /** Removes the room's records before the stream sequence `before`. */
  trim(room: RoomKey, before: number): Promise<void>;
}

/** `revision` 0: there is none yet. */
export type StoredCheckpoint = { readonly checkpoint: Checkpoint | undefined; readonly revision: number };
/** `superseded`: somebody wrote after that revision. */
export type Write = { readonly kind: "written"; readonly revision: number } | { readonly kind: "superseded" };

export interface Checkpoints {
  read(room: RoomKey): Promise<StoredCheckpoint>;
  /** Replaces exactly `revision`. Throws when it cannot be known whether it did; the same call again then settles it. */
  write(room: RoomKey, checkpoint: Checkpoint, revision: number): Promise<Write>;
}

/** Snapshots by name: the room's key, a slash, and what is unique about this one. A name is written once and never again. */
export interface Snapshots {
  /** Resolves once the bytes are durable. */
  write(name: string, bytes: Uint8Array): Promise<void>;
  /** Undefined: no such snapshot. */
  read(name: string): Promise<Uint8Array | undefined>;
  remove(name: string): Promise<void>;
  /** The names of all there are. */
  list(): Promise<readonly string[]>;
}

export interface Leases {
  read(partition: number): Promise<{ readonly lease: Lease | undefined; readonly revision: number }>;
  write(partition: number, lease: Lease, revision: number): Promise<Write>;
}

/** `mergeEdits` (merge.ts), somewhere it blocks nobody. */
export interface Merging {
  merge(state: Uint8Array, edits: readonly Uint8Array[]): Promise<Merged>;
}

/** SHA-256 in hex. */
export type Digest = (bytes: Uint8Array) => string;
