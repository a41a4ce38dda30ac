/** Inputs and effects of a pass. Each request is answered by one outcome; a failed request by "failed". */

import type { Sentinel } from "../../shared/cluster/lease.ts";
import type { RecordPlace, StoredRecord } from "../../shared/bus/record.ts";
import type { Millis, RoomKey, UnixMillis } from "../../shared/ids.ts";
import type { ArchivingOutcome, ArchivingRequest, ArchiveWrite } from "../archiving/archiving-messages.ts";
import type { SentinelWrite, ProgressReport } from "../ports.ts";
import type { BoardRoom } from "./board-room.ts";
import type { BoardRoomOutcome, BoardRoomRequest } from "./board-room-messages.ts";
import type { LogFloor } from "./progress.ts";
import type { Source } from "./received.ts";

export type PassTime = { readonly now: Millis; readonly wallNow: UnixMillis };

/** Facts from other parts of the process. */
export type PassView = { readonly watchedRooms: () => Iterable<RoomKey>; readonly countedPartitions: () => number };

export type PassInput =
  | { readonly kind: "begin" | "tick" }
  | { readonly kind: "record"; readonly source: Source; readonly stored: StoredRecord }
  /** A reader waits until all entries that the room received are counted. */
  | { readonly kind: "count-room"; readonly room: RoomKey }
  /** The lease is lost, or the leaderboard stops. */
  | { readonly kind: "stop" }
  /** Save the remaining checkpoints until the deadline. Follows "stop", once no request is in progress. */
  | { readonly kind: "drain"; readonly until: Millis }
  | { readonly kind: "failed"; readonly cause: unknown }
  | PassOutcome;

export type PassOutcome =
  | { readonly kind: "forgotten-read" | "activities-skipped" | "activities-forgotten"; readonly through: number }
  | { readonly kind: "progress-read"; readonly report: ProgressReport | undefined }
  | { readonly kind: "sentinel-written"; readonly beat: SentinelWrite }
  | { readonly kind: "progress-begun"; readonly sentinel: Sentinel }
  | { readonly kind: "checkpoints-listed"; readonly rooms: readonly RoomKey[] }
  | { readonly kind: "ends-read"; readonly edits: number; readonly activities: number }
  | { readonly kind: "last-activity-read"; readonly last: number }
  | { readonly kind: "activities-end-read"; readonly end: number }
  | { readonly kind: "activities-read-now" | "swept" }
  | { readonly kind: "checkpoint-tried"; readonly room: RoomKey; readonly isReadable: boolean }
  | { readonly kind: "room"; readonly room: BoardRoom; readonly outcome: BoardRoomOutcome }
  | { readonly kind: "archiving"; readonly outcome: ArchivingOutcome };

export type PassRequest =
  | { readonly kind: "read-forgotten" | "read-progress" | "list-checkpoints" | "read-ends" | "read-last-activity" }
  | { readonly kind: "read-activities-end" | "read-activities-now" }
  /** `last`: the last sentinel that is known to have been in Redis. */
  | { readonly kind: "write-sentinel"; readonly report: ProgressReport; readonly last: Sentinel | undefined }
  | { readonly kind: "begin-progress"; readonly report: ProgressReport }
  /** `end`: last stream sequence of the stream. */
  | { readonly kind: "skip-activities"; readonly end: number; readonly through: number }
  | { readonly kind: "forget-activities"; readonly through: number }
  | { readonly kind: "try-checkpoint"; readonly room: RoomKey }
  | { readonly kind: "sweep"; readonly ageMsMin: number }
  | { readonly kind: "room"; readonly room: BoardRoom; readonly request: BoardRoomRequest }
  | { readonly kind: "archiving"; readonly request: ArchivingRequest };

export type PassNotice =
  /** Pass the stream's records from this place on, one by one while the pass may read, until the pass is over. */
  | { readonly kind: "follow"; readonly source: Source; readonly after: number; readonly last?: RecordPlace | undefined }
  | { readonly kind: "floor-raised"; readonly floor: LogFloor }
  | { readonly kind: "restoring"; readonly rooms: number }
  | { readonly kind: "caught-up"; readonly through: Readonly<Record<Source, number>> }
  | { readonly kind: "counted"; readonly room: RoomKey; readonly edits: number }
  | { readonly kind: "edits-missing"; readonly room: RoomKey; readonly streamSeq: number; readonly missing: number }
  | { readonly kind: "record-undecodable"; readonly source: Source; readonly stored: StoredRecord }
  | { readonly kind: "set-aside"; readonly room: RoomKey; readonly cause: unknown; readonly count: number }
  | { readonly kind: "boards-removed" }
  | { readonly kind: "archived"; readonly outcome: ArchiveWrite | "behind" }
  | { readonly kind: "failed"; readonly cause: unknown; readonly floor: LogFloor };

export type PassEffect = PassRequest | PassNotice;
