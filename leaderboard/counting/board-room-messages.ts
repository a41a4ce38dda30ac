/** Inputs and effects of a room in a pass. Each effect of the first group is answered by one outcome. */

import type { RemovalEffect, RemovalInput } from "../archiving/removal.ts";
import type { ScoreBatch, BoardsDump } from "../boards/board.ts";
import type { Window } from "../boards/windows.ts";
import type { BoardWrite, CheckpointMark, CheckpointWrite, RoomChange, StoredBoards } from "../ports.ts";
import type { ReceivedEntry } from "./received.ts";

export type BoardRoomInput =
  | { readonly kind: "open" }
  | { readonly kind: "received"; readonly received: ReceivedEntry }
  /** The log's record of the deletion. Nothing more is counted, and the next checkpoint removes the boards. */
  | { readonly kind: "deleted"; readonly streamSeq: number }
  | { readonly kind: "apply" | "send-totals" | "save" }
  | BoardRoomOutcome;

/** "windows-opened" may also belong to a batch, and "removed" to a room that is not being opened. */
export type OpeningOutcome =
  | { readonly kind: "looked-up"; readonly stored: StoredBoards; readonly mark: CheckpointMark }
  | { readonly kind: "deletion-marked" }
  | { readonly kind: "restored" }
  | { readonly kind: "checkpoint-read"; readonly dump: BoardsDump | undefined }
  | { readonly kind: "windows-opened" }
  | { readonly kind: "loaded"; readonly stored: StoredBoards }
  | RemovalInput;

export type BoardRoomOutcome =
  | OpeningOutcome
  | { readonly kind: "undecodable"; readonly cause: unknown }
  | { readonly kind: "activities-confirmed" }
  | { readonly kind: "batch-applied"; readonly write: BoardWrite }
  | { readonly kind: "totals-sent" }
  | { readonly kind: "dumped"; readonly dump: BoardsDump | undefined }
  | { readonly kind: "checkpoint-written"; readonly write: CheckpointWrite };

export type BoardRoomRequest =
  | { readonly kind: "look-up" | "mark-deleted" | "read-checkpoint" | "load" }
  | { readonly kind: "open-windows" | "dump"; readonly windows: readonly Window[] }
  | { readonly kind: "send-totals"; readonly changes: readonly RoomChange[] }
  | { readonly kind: "restore"; readonly dump: BoardsDump }
  | { readonly kind: "apply-batch"; readonly batch: ScoreBatch }
  | { readonly kind: "write-checkpoint"; readonly dump: BoardsDump; readonly revision: number }
  | RemovalEffect;

/** Reports to the pass. */
type BoardRoomNotice =
  /** Answer with "activities-confirmed" once new activities are sure to get numbers above `counted`. */
  | { readonly kind: "confirm-activities"; readonly counted: number }
  | { readonly kind: "set-aside"; readonly cause: unknown }
  /** The pass cannot continue. "stale": the stored boards differ from the expected ones. "gap": edits may lie below the floor. */
  | { readonly kind: "fail"; readonly reason: "stale" | "gap"; readonly message: string }
  | { readonly kind: "counted"; readonly edits: number }
  | { readonly kind: "edits-missing"; readonly streamSeq: number; readonly missing: number }
  | { readonly kind: "boards-removed" };

export type BoardRoomEffect = BoardRoomRequest | BoardRoomNotice;
