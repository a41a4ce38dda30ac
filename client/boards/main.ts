/**
 * The entry point `@coroom/client/leaderboard`: leaderboards of a room and of a tenant, bound to the platform.
 *
 * @module @coroom/client/leaderboard
 */

import { fetchJson } from "../io/fetch-json.ts";
import { watchNetwork } from "../io/network-changes.ts";
import { watchVisibility } from "../io/page-visibility.ts";
import { reportError, systemChance, systemClock } from "../io/system.ts";
import { assertRoom } from "../options.ts";
import type { MakePart, RoomConnection } from "../room/room-connection-host.ts";
import type { YjsProvider } from "../yjs/yjs-provider.ts";
import { Leaderboard } from "./leaderboard.ts";
import { type TenantBoardOptions, type TenantRankings, WatchedTenantBoard } from "./tenant-board-host.ts";

export type { BoardRole, BoardWindow } from "../../shared/wire/boards.ts";
export type { BoardReading, BoardReadOptions, PastWindow } from "./board-reads-host.ts";
export { Board, type BoardEvents, type BoardOptions, Leaderboard } from "./leaderboard.ts";
export type { RankedUser } from "./room-boards.ts";
export {
  type RankedRoom,
  type TenantBoardEvents,
  type TenantBoardOptions,
  type TenantRankings,
  WatchedTenantBoard,
} from "./tenant-board-host.ts";
export type { TenantBoardState } from "./tenant-polls.ts";

/** The leaderboards of a room: `leaderboardOf(room).subscribe({ window: "day" })`. */
export function leaderboardOf<State extends object>(room: RoomConnection | YjsProvider<State>): Leaderboard {
  assertRoom(room);
  return room.part(newLeaderboard);
}

const newLeaderboard: MakePart<Leaderboard> = (room, world, link) => new Leaderboard(room, { ...world, fetchJson }, link);

/**
 * A tenant's ranking of people or rooms, kept up to date until `stop()`. It is requested over HTTP while the page is
 * visible, at the interval that the server sets. Throws an `Error` that names a wrong option.
 */
export function watchTenantBoard<Ranks extends keyof TenantRankings>(options: TenantBoardOptions<Ranks>): WatchedTenantBoard<Ranks> {
  const world = { clock: systemClock, chance: systemChance, reportError, fetchJson, watchNetwork, watchVisibility };
  return new WatchedTenantBoard(options, world);
}
