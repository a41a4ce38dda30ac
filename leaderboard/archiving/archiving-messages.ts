/** Inputs and effects of a partition's archiving. Each request is answered by one outcome. */

import type { RoomKey, UnixMillis } from "../../shared/ids.ts";
import type { MemberRole, TenantRanking } from "../boards/keys.ts";
import type { ArchivedBoard, ArchivedWindow, CheckpointMark, ClosedTenant, Closing, StoredBoards, ProgressReport } from "../ports.ts";

export type ArchiveWrite = "written" | "there";
/** The boards of both rankings. */
export type TenantWindow = Readonly<Record<TenantRanking, readonly ArchivedBoard[]>>;

export type ArchivingRequest =
  | { readonly kind: "find-closings"; readonly endedBefore: UnixMillis; readonly countMax: number }
  /** Reads the checkpoint's mark before the boards. The boards can only advance in between. */
  | { readonly kind: "check-closing" | "check-deleted" | "remove-archive"; readonly closing: Closing }
  /** `countMax`: maximum number of members read from each board, by rank. */
  | { readonly kind: "read-window"; readonly closing: Closing; readonly roles: readonly MemberRole[]; readonly countMax: number }
  | { readonly kind: "write-archive"; readonly closing: Closing; readonly archived: ArchivedWindow }
  | { readonly kind: "finish-closing"; readonly closing: Closing; readonly keepUntil: UnixMillis }
  | { readonly kind: "read-progress"; readonly partitions: number }
  | { readonly kind: "find-closed-tenants"; readonly endedBefore: UnixMillis; readonly countMax: number }
  | { readonly kind: "read-tenant"; readonly closed: ClosedTenant; readonly roles: readonly MemberRole[]; readonly countMax: number }
  | { readonly kind: "write-tenant"; readonly closed: ClosedTenant; readonly boards: TenantWindow }
  | { readonly kind: "finish-tenant"; readonly closed: ClosedTenant; readonly keepUntil: UnixMillis };

/** Reports to the pass. */
type ArchivingNotice =
  /** Answer with "confirmed" once a sentinel proves that Redis has lost nothing. */
  | { readonly kind: "confirm"; readonly subject: Closing | ClosedTenant }
  /** The room's checkpoint has more than Redis. Answer with "room-restored". */
  | { readonly kind: "restore-room"; readonly closing: Closing }
  | { readonly kind: "set-room-aside"; readonly room: RoomKey; readonly cause: unknown }
  | { readonly kind: "archived"; readonly closing: Closing | undefined; readonly outcome: ArchiveWrite | "behind" };

export type ArchivingEffect = ArchivingRequest | ArchivingNotice;

export type ArchivingOutcome =
  | { readonly kind: "closings-found"; readonly closings: readonly Closing[] }
  | { readonly kind: "closing-checked"; readonly closing: Closing; readonly mark: CheckpointMark; readonly stored: StoredBoards }
  | { readonly kind: "closing-undecodable"; readonly closing: Closing; readonly cause: unknown }
  | { readonly kind: "window-read"; readonly closing: Closing; readonly boards: readonly ArchivedBoard[] }
  | { readonly kind: "archive-written"; readonly closing: Closing; readonly outcome: ArchiveWrite }
  | { readonly kind: "deleted-checked"; readonly closing: Closing; readonly isDeleted: boolean }
  | { readonly kind: "archive-removed" | "closing-finished"; readonly closing: Closing }
  | { readonly kind: "progress-read"; readonly reports: readonly (ProgressReport | undefined)[] }
  | { readonly kind: "closed-tenants-found"; readonly closed: readonly ClosedTenant[] }
  | { readonly kind: "tenant-read"; readonly boards: TenantWindow }
  | { readonly kind: "tenant-written"; readonly outcome: ArchiveWrite }
  | { readonly kind: "tenant-finished" };

export type ArchivingInput =
  /** `through`: every entry that the streams stored before this date is counted; undefined while the date is unknown. */
  | { readonly kind: "look"; readonly through: UnixMillis | undefined }
  | { readonly kind: "confirmed"; readonly subject: Closing | ClosedTenant }
  | { readonly kind: "room-restored"; readonly room: RoomKey }
  | ArchivingOutcome;
