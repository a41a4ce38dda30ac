/** The ports of the leaderboard. `io/` implements each, and tests replace them. */

import type { BoardUpdate } from "../shared/bus/board-messages.ts";
import type { ReadPosition, StoredRecord } from "../shared/bus/record.ts";
import type { Sentinel } from "../shared/cluster/lease.ts";
import type { RoomKey, TenantId, UnixMillis } from "../shared/ids.ts";
import type { CountedPosition, ScoreBatch, BoardsDump, BoardContents, CountedMark, Names, RankEntry, Uses } from "./boards/board.ts";
import type { BoardOwner, MemberRole } from "./boards/keys.ts";
import type { Window } from "./boards/windows.ts";

export interface CountedEditLog {
  /**
   * The partition's records after a position, in order, until the signal. Throws when the log does not answer, and
   * `LogEndLost` when the log does not have a record that was read before.
   */
  follow(partition: number, from: ReadPosition, signal: AbortSignal): AsyncIterable<StoredRecord>;
  /** The stream sequence of the partition's last record. */
  end(partition: number): Promise<number>;
  /** Resolves once the followers have received everything that the log contains now, or after a time limit. */
  readNow(partition: number): Promise<void>;
}

/** Activities other than edits, in the same partitions as the log. The stream contains the activities that no checkpoint covers. */
export interface ActivityStream {
  /** The partition's activities after the stream sequence `after`, in order, until the signal. `bytes` are an activity. */
  follow(partition: number, after: number, signal: AbortSignal): AsyncIterable<StoredRecord>;
  /** The last stream sequence that was assigned. Its entry may be removed if its room is deleted. */
  end(partition: number): Promise<number>;
  /** The stream sequence of the last stored entry. 0: the stream is empty. */
  last(partition: number): Promise<number>;
  readNow(partition: number): Promise<void>;
  /**
   * Removes entries up to `through`: checkpoints cover them. Later activities get higher sequences, even if the stream
   * ended before `through`.
   */
  forget(partition: number, through: number): Promise<void>;
  /**
   * Returns the stream sequence up to which every entry is removed. A lost stream is created again, above all sequences
   * that it ever had.
   */
  forgotten(partition: number): Promise<number>;
}

export interface ActivityRemoval {
  /** Removes the room's activities, counted or not. */
  removeAll(room: RoomKey): Promise<void>;
}

/** `stale`: the boards are counted up to `counted`, which differs from the mark that the writer expected. Nothing was written. */
export type BoardWrite = { readonly kind: "written" } | { readonly kind: "stale"; readonly counted: CountedMark };

/** Undefined: no entry of the room is counted. */
export type StoredBoards = { readonly applied: CountedPosition; readonly uses: Uses } | "deleted" | undefined;

/** The boards of rooms, for the leaderboard that counts them. A method throws when it is unknown whether it took effect. */
export interface BoardStore {
  load(room: RoomKey): Promise<StoredBoards>;
  apply(room: RoomKey, batch: ScoreBatch): Promise<BoardWrite>;
  /** The room's boards of these windows at one instant. Undefined: no entry of the room is counted. */
  dump(room: RoomKey, windows: readonly Window[]): Promise<BoardsDump | undefined>;
  /** Writes nothing if the boards are counted as far as the dump, or further. */
  restore(room: RoomKey, dump: BoardsDump): Promise<BoardWrite>;
  /** The room is deleted: nothing is counted or restored any more. Removes its boards of these windows. */
  remove(room: RoomKey, windows: readonly Window[]): Promise<void>;
}

/** `first`: the place of the first entry, from 0. `ahead`: number of members with more points. */
export type OrderedPlaces = { readonly first: number; readonly ahead: number; readonly standings: readonly RankEntry[] };
export type PlacesAsked =
  | { readonly kind: "around"; readonly member: string; readonly around: number }
  | { readonly kind: "from"; readonly offset: number; readonly limit: number };

/** All boards, for readers. A tenant's boards have no counted position. */
export interface BoardReads {
  read(owner: BoardOwner, role: MemberRole, window: Window): Promise<BoardContents>;
  /** The entries of those members that have points, in no order. */
  members(owner: BoardOwner, role: MemberRole, window: Window, members: readonly string[]): Promise<RankEntry[]>;
  /**
   * Consecutive places of one instant. Undefined: the board's tail is not in order, or the member is not on the board.
   */
  places(owner: BoardOwner, role: MemberRole, window: Window, places: PlacesAsked): Promise<OrderedPlaces | undefined>;
  /** All entries, in no order, in parts. During writes a member may appear twice, or with an older score. */
  all(owner: BoardOwner, role: MemberRole, window: Window): AsyncIterable<readonly RankEntry[]>;
}

/**
 * Report of the leaderboard that counts a partition. `through`: every entry that the streams stored before this date is
 * counted. `totalsSent`: the scores of all entries stored before this date are also sent to the tenants' boards.
 */
export type ProgressReport = {
  readonly service: string;
  readonly through: UnixMillis;
  readonly totalsSent: UnixMillis;
  readonly isRebuilding: boolean;
};
/**
 * `kept`: no write can be lost. `doubtful`: writes since the last sentinel may be lost. `lost`: Redis holds neither the
 * last sentinel nor a later one, and none was written.
 */
export type SentinelWrite = { readonly kind: "kept" | "doubtful"; readonly sentinel: Sentinel } | { readonly kind: "lost" };

/** Keeps a sentinel with the boards, so that a loss of Redis data loses both. */
export interface Progress {
  /** Writes the first sentinel, once all boards are restored. */
  begin(partition: number, report: ProgressReport): Promise<Sentinel>;
  /** Writes a sentinel. `last`: the last sentinel that is known to have been in Redis, of any service. */
  beat(partition: number, report: ProgressReport, last: Sentinel | undefined): Promise<SentinelWrite>;
  read(partition: number): Promise<ProgressReport | undefined>;
}

export type Closing = { readonly room: RoomKey; readonly window: Window };

/** Windows with points, until they are archived. */
export interface Closings {
  /** Call this before the first point counts, so that no window is forgotten. */
  open(partition: number, room: RoomKey, windows: readonly Window[]): Promise<void>;
  /** Windows that ended before an instant, the oldest first. */
  due(partition: number, endedBefore: UnixMillis, countMax: number): Promise<Closing[]>;
  /** The window is archived: Redis keeps it until `keepUntil`. */
  finish(partition: number, closing: Closing, keepUntil: UnixMillis): Promise<void>;
  /** The room is deleted, so its windows are not archived. */
  remove(partition: number, room: RoomKey, windows: readonly Window[]): Promise<void>;
}

/** The final state of a board when its window closed: the number of all members, and the first members by name. */
export type ArchivedBoard = {
  readonly role: MemberRole;
  readonly members: number;
  readonly points: number;
  readonly standings: readonly RankEntry[];
};
/** `applied`: of a tenant's window, only the time has a meaning: all entries before it are counted. */
export type ArchivedWindow = { readonly applied: CountedPosition; readonly boards: readonly ArchivedBoard[] };

export interface Archive {
  /** Writes once: does nothing if the window is archived already. */
  write(owner: BoardOwner, window: Window, archived: ArchivedWindow): Promise<"written" | "there">;
  read(owner: BoardOwner, window: Window): Promise<ArchivedWindow | undefined>;
  /** Removes all of the room's windows. They are never written again. */
  remove(room: RoomKey): Promise<void>;
}

/** Facts about a room's checkpoint, without reading it. `revision` 0: no checkpoint. */
export type CheckpointMark = CountedMark & { readonly windows: readonly Window[]; readonly revision: number; readonly isDeleted: boolean };

export type CheckpointWrite = { readonly kind: "written"; readonly revision: number } | { readonly kind: "superseded" };

export interface BoardCheckpoints {
  /** Throws `UndecodableEntry` if the checkpoint does not decode, and so does `read`. */
  mark(room: RoomKey): Promise<CheckpointMark>;
  read(room: RoomKey): Promise<BoardsDump | undefined>;
  /** Replaces exactly `revision`, and no checkpoint that counts more, and no deletion. Throws when it is not known whether the write took effect. */
  write(room: RoomKey, dump: BoardsDump, revision: number): Promise<CheckpointWrite>;
  /** Every room of the partition that has a checkpoint. */
  rooms(partition: number): Promise<RoomKey[]>;
  /** The room is deleted: no checkpoint is written any more. Resolves with the windows that were counted. */
  remove(room: RoomKey): Promise<readonly Window[]>;
  /** Removes objects of at least this age that are not the checkpoint of any room. Returns their number. */
  sweep(ageMsMin: number): Promise<number>;
}

/** Users' display names. */
export interface StoredNames {
  /** `full`: the maximum number of names of the room or tenant is stored, and this name is not. */
  write(owner: BoardOwner, user: string, name: string): Promise<"written" | "full">;
  /** The names of those users who have one. */
  read(owner: BoardOwner, users: readonly string[]): Promise<Names>;
}

/** Members whose scores in the window may be higher in the room's board than in the tenant's. */
export type RoomChange = { readonly window: Window; readonly members: ReadonlySet<string> | "all" };

/** The people and the rooms of each tenant, by the sums of their points. */
export interface TenantBoards {
  /**
   * Raises the scores of these members, and the room's totals, to those of the room's boards. A call may be repeated at
   * any time.
   */
  sendTotals(room: RoomKey, changes: readonly RoomChange[]): Promise<void>;
  /** The room is deleted: it leaves these windows, and its points leave the people's scores. A call may be repeated. */
  remove(room: RoomKey, windows: readonly Window[]): Promise<void>;
}

export type ClosedTenant = { readonly tenant: TenantId; readonly window: Window };

/** Tenants' windows with points, until they are archived. */
export interface ClosedTenants {
  /** Windows that ended before an instant, the oldest first. */
  due(endedBefore: UnixMillis, countMax: number): Promise<ClosedTenant[]>;
  finish(closed: ClosedTenant, keepUntil: UnixMillis): Promise<void>;
}

/** Sends board updates to the gateways. */
export interface BoardPublisher {
  publish(update: BoardUpdate): void;
}
