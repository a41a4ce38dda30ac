/**
 * The inputs of a document room, and its requests to its host. Each `StoreEffect` comes back as one input: its outcome,
 * or "failed" with the effect itself. All other effects have no outcome.
 */

import type { Checkpoint } from "../../shared/bus/checkpoint.ts";
import type { StoredRecord } from "../../shared/bus/record.ts";
import type { LeaseWrite } from "../../shared/cluster/lease.ts";
import type { Position, Seq, UserId } from "../../shared/ids.ts";
import type { MergedDocument } from "../merge.ts";
import type { MergeUrgency, StoredCheckpoint, Unread } from "../ports.ts";
import type { Written } from "../verified-write-host.ts";
import type { DisputedYjsId, EditAuthors } from "../yjs-authors.ts";
import type { AppliedPosition, MergedState } from "./document.ts";
import type { Watermark } from "./watermarks.ts";

/** "joinable": a long document may lack its newest edits, because a joining client receives them from the log. */
export type Freshness = "newest" | "joinable";

/** The client and counter that identify one edit. */
type SnapshotEdit = Pick<Watermark, "client" | "counter">;

export type Served =
  /** `last`: the edit at the position, where it is known. */
  | { kind: "snapshot"; state: Uint8Array; position: Position; last?: SnapshotEdit | undefined }
  /** This service knows no edit of the room. */
  | { kind: "no-document" }
  /** The log has edits of the room, and this service is about to read the first one. */
  | { kind: "behind" }
  /** None of the room's edits is a Yjs update. */
  | { kind: "not-a-document" }
  | { kind: "deleted" }
  /**
   * The room has no state, because its edits cannot be merged in time or its snapshot is lost. Tried again after a
   * pause that doubles.
   */
  | { kind: "stalled" }
  /** The document is not available now; the caller asks again. */
  | { kind: "loading" };

/** The part of the room that reads a checkpoint. */
type RoomCheckpointReader = "opening" | "gap" | "merge" | "job";

/** `superseded`: another service saved the room, and this one continues from that checkpoint. */
export type SaveOutcome = "saved" | "superseded" | "failed";

export type StoreEffect =
  | { readonly kind: "read-checkpoint"; readonly reader: RoomCheckpointReader }
  | { readonly kind: "read-snapshot"; readonly checkpoint: Checkpoint }
  /** Read the room's first record in the log, and the last one that the checkpoint covers. */
  | { readonly kind: "read-covered"; readonly checkpoint: Checkpoint }
  | {
      readonly kind: "merge";
      readonly base: Uint8Array;
      readonly edits: readonly Uint8Array[];
      readonly urgency: MergeUrgency;
      readonly authors: EditAuthors;
    }
  | { readonly kind: "write-snapshot"; readonly object: string; readonly state: Uint8Array }
  /** Queue the pending change notifications before a checkpoint covers their edits. */
  | { readonly kind: "queue-notifications" }
  /** Read the record at that stream sequence: the log must have it before a checkpoint names it, or records before it are trimmed. */
  | { readonly kind: "read-record"; readonly streamSeq: number }
  | { readonly kind: "write-checkpoint"; readonly checkpoint: Checkpoint; readonly revision: number }
  /** Never fails: a snapshot that stays costs only space, and a later sweep removes it. */
  | { readonly kind: "remove-snapshots"; readonly names: readonly string[]; readonly isAwaited: boolean }
  /** Read the checkpoint's snapshot again before records are trimmed that only it has. */
  | { readonly kind: "verify-snapshot"; readonly checkpoint: Checkpoint }
  | { readonly kind: "announce-snapshot"; readonly position: Position; readonly bytes: number }
  | { readonly kind: "check-version"; readonly seq: Seq }
  | { readonly kind: "add-version"; readonly present: MergedState }
  | { readonly kind: "archive"; readonly before: number }
  | { readonly kind: "trim-log"; readonly before: number }
  | { readonly kind: "wipe" };

/** What replaces a lost snapshot: the state in memory, the log if it still has every record, or only a backup. */
export type SnapshotRemedy = "state" | "log" | "backup";

/** For the log and the metrics. */
export type DocumentRoomReport =
  | { readonly kind: "set-aside"; readonly after: AppliedPosition | undefined; readonly bytes: number }
  | { readonly kind: "released-undecodable"; readonly fromStreamSeq: number; readonly bytes: number }
  | { readonly kind: "gap-crossed"; readonly streamSeq: number; readonly after: AppliedPosition }
  | { readonly kind: "record-unreadable"; readonly streamSeq: number }
  | { readonly kind: "writers-forgotten"; readonly count: number }
  | { readonly kind: "merged"; readonly ms: number }
  | ({ readonly kind: "yjs-id-disputed" } & DisputedYjsId)
  /** `users`: of the edits that were merged together. */
  | {
      readonly kind: "edits-refused";
      readonly refused: number;
      readonly through: AppliedPosition;
      readonly users: readonly UserId[];
    }
  | {
      readonly kind: "merge-abandoned";
      readonly edits: number;
      readonly baseBytes: number;
      readonly through: AppliedPosition;
      readonly pauseMs: number;
      readonly why: Unread;
      readonly users: readonly UserId[];
      /** Number of abandoned merges in a row. */
      readonly tries: number;
      /** No merge since the last `merge-recovered` was abandoned. */
      readonly isNew: boolean;
    }
  /** The edits of abandoned merges are merged, or need not be merged here any more. */
  | { readonly kind: "merge-recovered" }
  | { readonly kind: "snapshot-lost"; readonly object: string; readonly remedy: SnapshotRemedy }
  | { readonly kind: "snapshot-damaged"; readonly object: string }
  | { readonly kind: "superseded"; readonly revision: number }
  | { readonly kind: "save-ended"; readonly outcome: SaveOutcome; readonly ms: number }
  | { readonly kind: "trim-ended"; readonly outcome: "trimmed" | "failed" | "refused" }
  | { readonly kind: "storage-failed"; readonly what: string; readonly cause: unknown };

export type DocumentRoomEffect =
  | StoreEffect
  /** The room has read new edits up to the position. */
  | { readonly kind: "notify-edits"; readonly position: Position; readonly edits: number }
  /** The checkpoint is known, or known not to decode: the room no longer counts as opening. May come more than once. */
  | { readonly kind: "looked-up" }
  | { readonly kind: "opened"; readonly isOpen: boolean }
  | { readonly kind: "answer"; readonly request: number; readonly served: Served }
  | { readonly kind: "answer-state"; readonly request: number; readonly state: MergedState | undefined }
  | { readonly kind: "answer-failure"; readonly request: number; readonly cause: unknown }
  | { readonly kind: "job-ended"; readonly isTrimmed: boolean }
  | { readonly kind: "report"; readonly report: DocumentRoomReport };

/** A failure of a store. `isUndecodable`: the entry exists, and only a person can repair it. */
export type StoreFailure = { readonly cause: unknown; readonly isUndecodable: boolean };

/** A job on a room that excludes other jobs on it. `before`: a trim stops before this record of the room. */
export type RoomJobRequest =
  | { readonly kind: "save" }
  | { readonly kind: "trim"; readonly before: number | undefined }
  | { readonly kind: "wipe" }
  | { readonly kind: "remove-orphans"; readonly names: readonly string[] };

/** Outcomes of the effects of a job. */
export type RoomJobOutcome =
  | { readonly kind: "snapshot-written"; readonly written: Written | undefined }
  | { readonly kind: "notifications-queued" }
  | { readonly kind: "record-read"; readonly stored: StoredRecord | undefined }
  | { readonly kind: "checkpoint-written"; readonly checkpoint: Checkpoint; readonly write: LeaseWrite }
  | { readonly kind: "snapshots-removed"; readonly isAwaited: boolean }
  | { readonly kind: "snapshot-verified"; readonly isReadable: boolean }
  | { readonly kind: "snapshot-announced" }
  | { readonly kind: "version-checked"; readonly isDue: boolean }
  | { readonly kind: "version-added" }
  | { readonly kind: "archived" }
  | { readonly kind: "log-trimmed" }
  | { readonly kind: "wiped"; readonly isWiped: boolean };

export type CoveredRead = {
  readonly kind: "covered-read";
  readonly first: StoredRecord | undefined;
  readonly last: StoredRecord | undefined;
};

/** Outcomes of the effects of a merge. */
export type MergeStepOutcome =
  | { readonly kind: "snapshot-read"; readonly state: Uint8Array | undefined }
  | CoveredRead
  | { readonly kind: "merge-ended"; readonly outcome: MergedDocument | Unread };

export type CheckpointRead = {
  readonly kind: "checkpoint-read";
  readonly reader: RoomCheckpointReader;
  readonly found: StoredCheckpoint;
};

export type DocumentRoomInput =
  | { readonly kind: "record"; readonly stored: StoredRecord }
  /** The stream sequence of the log record that deletes the room. */
  | { readonly kind: "deletion"; readonly streamSeq: number }
  /** `isPressed`: the partition needs memory. */
  | { readonly kind: "tick"; readonly isPressed: boolean }
  | { readonly kind: "serve"; readonly request: number; readonly freshness: Freshness; readonly minSeq: number }
  | { readonly kind: "read-state"; readonly request: number }
  | { readonly kind: "job"; readonly job: RoomJobRequest }
  | { readonly kind: "failure"; readonly what: string; readonly failure: StoreFailure }
  | { readonly kind: "close" }
  | CheckpointRead
  | MergeStepOutcome
  | RoomJobOutcome
  | { readonly kind: "failed"; readonly effect: StoreEffect; readonly failure: StoreFailure };
