/** What the leaderboard needs from the world, in its own words. `io/` implements each; tests fake each. */

import type { StoredRecord } from "../shared/bus/stored-record.ts";
import type { BoardNews } from "../shared/bus/board-messages.ts";
import type { RoomId, RoomKey, TenantId, UnixMillis } from "../shared/ids.ts";
import type { Said } from "../shared/lease.ts";
import type { Applied, Batch, BoardsDump, BoardState, Mark, Names, Standing, Uses } from "./boards/board.ts";
import type { Role } from "./boards/keys.ts";
import type { Window } from "./boards/windows.ts";

export interface EditLog {
  /**
   * The partition's records after the stream sequence `after`, in order, without end until the signal. Throws when
   * the log does not answer.
   */
  follow(partition: number, after: number, signal: AbortSignal): AsyncIterable<StoredRecord>;
  /** The stream sequence of the partition's last record. */
  end(partition: number): Promise<number>;
  /** Resolves once whoever follows was handed all that there is now, or after a while. */
  readNow(partition: number): Promise<void>;
}

/** What is told of and is no edit, in partitions as the log is. It holds what no checkpoint covers. */
export interface ActivityStream {
  /** As in the log; `bytes` are an activity. */
  follow(partition: number, after: number, signal: AbortSignal): AsyncIterable<StoredRecord>;
  /** The last stream sequence that was given. What had it may have been of a room that is deleted, and be gone. */
  end(partition: number): Promise<number>;
  /** The stream sequence of the last that is there. 0: nothing is. */
  last(partition: number): Promise<number>;
  readNow(partition: number): Promise<void>;
  /** Everything up to there is in checkpoints. What is told afterwards gets numbers behind it, also where the stream ended before. */
  forget(partition: number, through: number): Promise<void>;
  /** Up to which stream sequence nothing is there any more. A stream that was lost is made anew, behind all that it ever had. */
  forgotten(partition: number): Promise<number>;
}

export interface ActivityRemoval {
  /** What was told of the room, counted or not. */
  removeAll(room: RoomKey): Promise<void>;
}

/** `stale`: the boards are counted up to there, not to where the writer thought; nothing was done. */
export type Write = { readonly kind: "written" } | { readonly kind: "stale"; readonly counted: Mark };

/** The boards of rooms, for the one who counts. Every method throws when it cannot be known what was done. */
export interface Boards {
  /** Undefined: nothing is counted of the room. */
  load(room: RoomKey): Promise<{ readonly applied: Applied; readonly uses: Uses } | "deleted" | undefined>;
  /** All or nothing, once. */
  apply(room: RoomKey, batch: Batch): Promise<Write>;
  /** The room's boards of these windows, all at one instant. Undefined: nothing is counted of the room. */
  dump(room: RoomKey, windows: readonly Window[]): Promise<BoardsDump | undefined>;
  /** Unless the boards are counted as far already. */
  restore(room: RoomKey, dump: BoardsDump): Promise<Write>;
  /** The room is deleted: from now on nothing is counted of it or put back. Its boards of these windows go. */
  remove(room: RoomKey, windows: readonly Window[]): Promise<void>;
}

/** `first`: the place of the first, from 0 on. `ahead`: how many have more points than it. */
export type OrderedPlaces = { readonly first: number; readonly ahead: number; readonly standings: readonly Standing[] };
export type PlacesAsked =
  | { readonly kind: "around"; readonly member: string; readonly around: number }
  | { readonly kind: "from"; readonly offset: number; readonly limit: number };

/** The boards of rooms, for those who look. */
export interface BoardReads {
  read(room: RoomKey, role: Role, window: Window): Promise<BoardState>;
  /** Those of the members that have points, in no order. */
  members(room: RoomKey, role: Role, window: Window, members: readonly string[]): Promise<Standing[]>;
  /** Some places in a row, all at one instant. Undefined: the board's tail is in no order, or has no such member. */
  places(room: RoomKey, role: Role, window: Window, places: PlacesAsked): Promise<OrderedPlaces | undefined>;
  /** Everyone, in no order, some at a time. Of a board that is written meanwhile it may show a member twice or as they were. */
  all(room: RoomKey, role: Role, window: Window): AsyncIterable<readonly Standing[]>;
}

/**
 * What the one who counts a partition says of itself. `through`: all that the streams took before it is counted;
 * `told`: and the rooms' totals are told.
 */
export type Word = { readonly service: string; readonly through: UnixMillis; readonly told: UnixMillis; readonly isRebuilding: boolean };
/**
 * `kept`: nothing that was written can be gone. `doubtful`: nothing that was written before the last word. `lost`: neither
 * the last word nor a later one is there, and none was put there.
 */
export type Beat = { readonly kind: "kept" | "doubtful"; readonly said: Said } | { readonly kind: "lost" };

/** Keeps a word where the data is, so that word and data are lost together. */
export interface Progress {
  /** The first word, said once all there was is back. */
  begin(partition: number, word: Word): Promise<Said>;
  /** `last`: the last word that is known to have been there, whoever said it. */
  beat(partition: number, word: Word, last: Said | undefined): Promise<Beat>;
  read(partition: number): Promise<Word | undefined>;
}

export type Closing = { readonly room: RoomKey; readonly window: Window };

/** Windows with points in them, until they are archived. */
export interface Closings {
  /** Has to be called before the first point counts, so that no window is forgotten. */
  open(partition: number, room: RoomKey, windows: readonly Window[]): Promise<void>;
  /** Those that ended before an instant, the oldest first. */
  due(partition: number, endedBefore: UnixMillis, countMax: number): Promise<Closing[]>;
  /** The window is in the archive: what Redis has of it goes after a while. */
  finish(partition: number, closing: Closing, keepUntil: UnixMillis): Promise<void>;
  /** The room is deleted: there is nothing to archive. */
  remove(partition: number, room: RoomKey, windows: readonly Window[]): Promise<void>;
}

/** A board as it was when its window closed: everyone counted, the first of them by name. */
export type ArchivedBoard = {
  readonly role: Role;
  readonly members: number;
  readonly points: number;
  readonly standings: readonly Standing[];
};
export type ArchivedWindow = { readonly applied: Applied; readonly boards: readonly ArchivedBoard[] };

export interface Archive {
  /** Once: where the window is there already, nothing is done. */
  write(room: RoomKey, window: Window, archived: ArchivedWindow): Promise<"written" | "there">;
  read(room: RoomKey, window: Window): Promise<ArchivedWindow | undefined>;
  /** All of the room's windows. None of them is written again. */
  remove(room: RoomKey): Promise<void>;
}

/** What is known of a room's checkpoint without reading it. `revision` 0: there is none. */
export type CheckpointMark = Mark & { readonly windows: readonly Window[]; readonly revision: number; readonly isDeleted: boolean };

export interface Checkpoints {
  /** Throws `Undecodable` where there is one that cannot be understood, as does `read`. */
  mark(room: RoomKey): Promise<CheckpointMark>;
  read(room: RoomKey): Promise<BoardsDump | undefined>;
  /** Replaces exactly `revision`. Throws when it cannot be known whether it did. */
  write(
    room: RoomKey,
    dump: BoardsDump,
    revision: number,
  ): Promise<{ readonly kind: "written"; readonly revision: number } | { readonly kind: "superseded" }>;
  /** Every room of the partition that has one. */
  rooms(partition: number): Promise<RoomKey[]>;
  /** The room is deleted: none is written any more. Resolves with the windows that were counted. */
  remove(room: RoomKey): Promise<readonly Window[]>;
  /** Removes what was written so long ago and is no room's checkpoint, and says how much that was. */
  sweep(ageMsMin: number): Promise<number>;
}

/** How users are called. */
export interface StoredNames {
  write(room: RoomKey, user: string, name: string): Promise<void>;
  /** Of those users who have one. */
  read(room: RoomKey, users: readonly string[]): Promise<Names>;
}

/** Rooms with equal points have the same rank. */
export type RankedRoom = { readonly rank: number; readonly room: RoomId; readonly points: number };

/** `people`: how many users have points in any of the rooms, give or take a percent. */
export type TenantPage = { readonly rooms: number; readonly people: number; readonly ranking: readonly RankedRoom[] };

/** The rooms of each tenant, by the points of all in them. */
export interface TenantBoards {
  /** These users have points in the room: to be told before the first of them counts. */
  meet(room: RoomKey, windows: readonly Window[], users: readonly string[]): Promise<void>;
  /** Brings the room's totals of these windows up to what its boards hold. It may be told again at any time. */
  tell(room: RoomKey, windows: readonly Window[]): Promise<void>;
  page(tenant: TenantId, window: Window, page: { readonly offset: number; readonly limit: number }): Promise<TenantPage>;
  /** Undefined: without points in the window. */
  rankOf(room: RoomKey, window: Window): Promise<RankedRoom | undefined>;
  /** The room is deleted: it is among these windows' rooms no more. */
  remove(room: RoomKey, windows: readonly Window[]): Promise<void>;
}

export type ClosedTenant = { readonly tenant: TenantId; readonly window: Window };

/** Tenants' windows with points in them, until they are archived. */
export interface ClosedTenants {
  /** Those that ended before an instant, the oldest first. */
  due(endedBefore: UnixMillis, countMax: number): Promise<ClosedTenant[]>;
  finish(closed: ClosedTenant, keepUntil: UnixMillis): Promise<void>;
}

export interface TenantArchive {
  /** Once: where the window is there already, nothing is done. `ranking`: the first of the rooms. */
  write(tenant: TenantId, window: Window, archived: TenantPage): Promise<"written" | "there">;
  read(tenant: TenantId, window: Window): Promise<TenantPage | undefined>;
}

/** Tells whoever watches. */
export interface Shown {
  publish(news: BoardNews): void;
}
