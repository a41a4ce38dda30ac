/** The inputs and effects of a room's history plan (history-plan.ts). */

import type { StoredRecord } from "../../shared/bus/record.ts";
import type { LeaseWrite } from "../../shared/cluster/lease.ts";
import type { Position } from "../../shared/ids.ts";
import type { RoomLogEnd, StoredHistory } from "../ports.ts";
import type { Written } from "../verified-write-host.ts";
import type { DocumentVersion, History, Segment } from "./history.ts";

/** The document as it is now. `leftOut`: edits at or below the position that it lacks. */
export type CurrentDocument = { readonly state: Uint8Array; readonly applied: Position; readonly leftOut: number };

export type HistoryJob =
  /** Puts the room's records before this one into segments. */
  | { readonly kind: "archive"; readonly before: number }
  /** A version without a name is removed once it is too old. */
  | { readonly kind: "add-version"; readonly document: CurrentDocument; readonly name: string | undefined }
  | { readonly kind: "remove-version"; readonly id: string }
  /** Removes the objects that the entry does not name. */
  | { readonly kind: "remove-orphans"; readonly names: readonly string[] }
  /** Removes all history of a deleted room. */
  | { readonly kind: "wipe" };

export type VersionOutcome = { readonly kind: "named"; readonly version: DocumentVersion } | { readonly kind: "too-many" | "deleted" };
export type HistoryResult =
  | VersionOutcome
  | { readonly kind: "done" }
  | { readonly kind: "no-version" }
  /** The job was not done; the caller may try again. */
  | { readonly kind: "failed"; readonly why: string };

export type HistoryInput =
  | { readonly kind: "job"; readonly job: HistoryJob }
  | { readonly kind: "entry-read"; readonly found: StoredHistory }
  | { readonly kind: "entry-written"; readonly write: LeaseWrite }
  /** `isComplete`: the read reached the end of the range or its byte limit. */
  | { readonly kind: "records-read"; readonly records: readonly StoredRecord[]; readonly isComplete: boolean }
  | { readonly kind: "log-end-read"; readonly end: RoomLogEnd }
  /** `bytes` undefined: the object is missing or damaged. */
  | { readonly kind: "segment-read"; readonly bytes: Uint8Array | undefined }
  /** `written` undefined: the object read back differs from what was written. */
  | { readonly kind: "object-written"; readonly written: Written | undefined }
  | { readonly kind: "objects-removed" }
  /** The last effect failed, and with it the running job. */
  | { readonly kind: "failed" };

export type HistoryEffect =
  | { readonly kind: "read-entry" }
  | { readonly kind: "write-entry"; readonly history: History; readonly revision: number }
  /** The room's records in `after < streamSeq < before`, until they have more than `bytesMax` bytes. */
  | { readonly kind: "read-records"; readonly after: number; readonly before: number; readonly bytesMax: number }
  | { readonly kind: "read-log-end" }
  | { readonly kind: "read-segment"; readonly segment: Segment }
  | { readonly kind: "write-object"; readonly object: string; readonly bytes: Uint8Array }
  /** An object that stays only costs space: a later sweep removes it. */
  | { readonly kind: "remove-objects"; readonly objects: readonly string[] }
  /** Removes every object, or fails. */
  | { readonly kind: "erase-objects"; readonly objects: readonly string[] }
  /** Ends the job that was received first. */
  | { readonly kind: "end"; readonly result: HistoryResult };
