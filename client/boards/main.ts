/**
 * The entry point `@coroom/client/leaderboard`: a room's leaderboards, bound to the platform.
 *
 * @module @coroom/client/leaderboard
 */

import { fetchJson } from "../io/fetch-json.ts";
import type { MakePart, RoomConnection } from "../room/room-connection-host.ts";
import type { YjsProvider } from "../yjs/yjs-provider.ts";
import { Leaderboard } from "./leaderboard.ts";

export type { BoardRole, BoardWindow } from "../../shared/wire/boards.ts";
export type { BoardReading, BoardReadOptions, PastWindow } from "./board-reads-host.ts";
export { Board, type BoardEvents, type BoardOptions, Leaderboard } from "./leaderboard.ts";
export type { RankedUser } from "./room-boards.ts";

/** The leaderboards of a room: `leaderboardOf(room).subscribe({ window: "day" })`. */
export function leaderboardOf<State extends object>(room: RoomConnection | YjsProvider<State>): Leaderboard {
  return room.part(newLeaderboard);
}

const newLeaderboard: MakePart<Leaderboard> = (room, world, link) => new Leaderboard(room, { ...world, fetchJson }, link);
