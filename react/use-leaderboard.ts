/** The hook `useLeaderboard`: a live board of the room, or a window that has ended, read over the HTTP API of a gateway. */

import { useMemo, useSyncExternalStore } from "react";

import {
  type Board,
  type BoardOptions,
  type BoardReading,
  type BoardReadOptions,
  type BoardWindow,
  leaderboardOf,
} from "@coroom/client/leaderboard";
import type { AnyRoom } from "./hooks.ts";
import type { OpenRoom } from "./used-rooms.ts";

/** Which board to show, and how much of it. */
export type BoardViewOptions = Omit<BoardOptions, "window"> & {
  /** A current window is live; `last-week` and the others, or an id such as `2026-W27`, are read over HTTP. Default: `all`. */
  readonly window?: BoardReadOptions["window"] | undefined;
};

/** A board as last received. */
export type BoardView = Pick<Board, "ranking" | "own" | "windowId" | "members" | "seq"> & {
  /** Of a live board, its `state`. Of a window that is read: `waiting`, then `read`, or `unavailable` if it cannot be read. */
  readonly state: Board["state"] | "read";
  /** Why the window cannot be read. The hook reads it again every five seconds. */
  readonly error?: Error;
};

const LIVE: Readonly<Record<BoardWindow, true>> = { hour: true, day: true, week: true, month: true, year: true, all: true };
const NO_BOARD: BoardView = { ranking: [], own: undefined, state: "waiting", windowId: "", members: 0, seq: 0 as Board["seq"] };
/** Interval of readings until a window is final, or can be read. */
const READ_AGAIN_MS = 5_000;
/** Interval of readings of a window with a name such as `last-hour`, which becomes the name of the next one. */
const NEXT_WINDOW_MS = 300_000;

type Provider = OpenRoom["provider"];
/** Shows views until the returned function is called. */
type Shown = (show: (view: BoardView) => void) => () => void;

/** A ranking of the room: 10 places of all time, unless the options differ. */
export function useLeaderboard(room: AnyRoom, { window = "all", role = "everyone", shown = 10 }: BoardViewOptions = {}): BoardView {
  const { provider } = room as OpenRoom;
  const board = useMemo(() => {
    let view = NO_BOARD;
    const begin = isLive(window) ? liveBoard(provider, { window, role, shown }) : pastBoard(provider, { window, role, shown });
    return {
      subscribe: (onChange: () => void) =>
        begin((next) => {
          view = next;
          onChange();
        }),
      get: () => view,
    };
  }, [provider, window, role, shown]);
  return useSyncExternalStore(board.subscribe, board.get, () => NO_BOARD);
}

function isLive(window: string): window is BoardWindow {
  return Object.hasOwn(LIVE, window);
}

function liveBoard(provider: Provider, options: BoardOptions): Shown {
  return (show) => {
    if (provider.doc.isDestroyed) return () => {}; // The room was left while the component was hidden. The next render has a new one.
    const board = leaderboardOf(provider).subscribe(options);
    board.on("change", () => {
      const { ranking, own, state, windowId, members, seq } = board;
      show({ ranking, own, state, windowId, members, seq });
    });
    return () => board.unsubscribe();
  };
}

function pastBoard(provider: Provider, options: BoardReadOptions): Shown {
  return (show) => {
    let isEnded = false;
    let isRead = false;
    let timer: ReturnType<typeof setTimeout> | undefined;
    /** The first reading throws for a wrong option. */
    const read = (): void => void leaderboardOf(provider).read(options).then(receive, fail);
    const receive = ({ ranking, own, windowId, members, seq, isFinal }: BoardReading): void => {
      if (isEnded) return;
      isRead = true;
      if (!isFinal && windowId !== "")
        timer = setTimeout(read, READ_AGAIN_MS); // Without an id, nothing was counted.
      else if (options.window.startsWith("last-")) timer = setTimeout(read, NEXT_WINDOW_MS);
      show({ ranking, own, state: "read", windowId, members, seq });
    };
    /** The network, a refusal, or no leaderboard: the next reading may succeed. */
    const fail = (error: Error): void => {
      if (isEnded) return;
      timer = setTimeout(read, READ_AGAIN_MS);
      if (!isRead) show({ ...NO_BOARD, state: "unavailable", error });
    };
    read();
    return () => {
      isEnded = true;
      clearTimeout(timer);
    };
  };
}
