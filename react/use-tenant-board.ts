/** The hook `useTenantBoard`: a tenant's ranking of people or rooms, kept up to date over the HTTP API of a gateway. */

import { useMemo, useSyncExternalStore } from "react";

import { type TenantBoardOptions, type TenantRankings, watchTenantBoard, type WatchedTenantBoard } from "@coroom/client/leaderboard";
import { useRooms } from "./coroom-provider.ts";

/** Which ranking to show, and how much of it. `Ranks`: `people` or `rooms`. */
export type TenantBoardViewOptions<Ranks extends keyof TenantRankings> = Omit<TenantBoardOptions<Ranks>, "url" | "token">;

/** A tenant's ranking, as last received. `Ranks`: `people` or `rooms`. */
export type TenantBoardView<Ranks extends keyof TenantRankings> = Pick<
  WatchedTenantBoard<Ranks>,
  "ranking" | "state" | "windowId" | "members" | "points"
> & {
  /** Why the last request failed: the server's message. */
  readonly error?: Error;
};

const NO_TENANT_BOARD = { ranking: [], state: "waiting", windowId: "", members: 0, points: 0 } as const;

/**
 * A ranking of the tenant: 10 places of all time, unless the options differ. The token of the `CoroomProvider` needs the
 * right `boards`, or `admin` with the rooms `*`. Without them, `state` is `stopped`. Throws without a `CoroomProvider`
 * above, and for a wrong option when the component is mounted.
 */
export function useTenantBoard<Ranks extends keyof TenantRankings>({
  board: ranks,
  window = "all",
  role = "everyone",
  shown = 10,
}: TenantBoardViewOptions<Ranks>): TenantBoardView<Ranks> {
  const rooms = useRooms();
  const board = useMemo(() => {
    let view: TenantBoardView<Ranks> = NO_TENANT_BOARD;
    return {
      subscribe: (onChange: () => void) => {
        const watched = watchTenantBoard({ ...rooms.server, board: ranks, window, role, shown });
        watched.on("change", ({ ranking, state, windowId, members, points, error }) => {
          view = { ranking, state, windowId, members, points, ...(error && { error }) };
          onChange();
        });
        return () => watched.stop();
      },
      get: () => view,
    };
  }, [rooms, ranks, window, role, shown]);
  return useSyncExternalStore(board.subscribe, board.get, () => NO_TENANT_BOARD);
}
