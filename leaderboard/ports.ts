/** What the leaderboard needs from the world, in its own words. `io/` implements each; tests fake each. */

import type { RoomKey, Seq } from "../shared/ids.ts";
import type { Applied, Batch, BoardsDump, BoardState, MinuteUse, Standing } from "./board.ts";
import type { Role } from "./keys.ts";
import type { Window } from "./windows.ts";

/** `stale`: the boards are counted up to that seq, not to where the writer thought; nothing was done. */
export type Write = { readonly kind: "written" } | { readonly kind: "stale"; readonly seq: Seq };

/** The boards of rooms, for the one who counts. Every method throws when it cannot be known what was done. */
export interface Boards {
  /** Undefined: nothing is counted of the room. */
  load(room: RoomKey): Promise<{ readonly applied: Applied; readonly minute: MinuteUse } | undefined>;
  /** All or nothing, once. */
  apply(room: RoomKey, batch: Batch): Promise<Write>;
  /** The room's boards of these windows, all at one instant. Undefined: nothing is counted of the room. */
  dump(room: RoomKey, windows: readonly Window[]): Promise<BoardsDump | undefined>;
  /** Unless the boards are counted as far already. */
  restore(room: RoomKey, dump: BoardsDump): Promise<Write>;
}

/** The boards of rooms, for those who look. */
export interface BoardReads {
  read(room: RoomKey, role: Role, window: Window): Promise<BoardState>;
  /** Those of the members that have points, in no order. */
  members(room: RoomKey, role: Role, window: Window, members: readonly string[]): Promise<Standing[]>;
  /** Everyone, in no order, some at a time. Of a board that is written meanwhile it may show a member twice or as they were. */
  all(room: RoomKey, role: Role, window: Window): AsyncIterable<readonly Standing[]>;
}
