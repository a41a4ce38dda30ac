/**
 * The boards that this gateway's connections watch. Watchers that show a similar number of entries of the same board
 * share one frame, which is sent when the list changes. Only a user's own rank is sent to a single connection. The
 * caller carries out the returned effects.
 */

import {
  type DisplayName,
  type BoardUpdate,
  type BoardSnapshot,
  type BoardWatch,
  SOUGHT_USERS_MAX,
} from "../../shared/bus/board-messages.ts";
import { type Millis, type RoomKey, type Seq, tenantOf, type UserId } from "../../shared/ids.ts";
import type { BoardRole, BoardState, BoardWindow } from "../../shared/wire/boards.ts";
import type { BoardFrame, Channel, ServerFrame } from "../../shared/wire/frames.ts";
import type { ConnectionId } from "../ports.ts";
import { BoardTurns } from "./board-turns.ts";

/** A connection's request to watch a board. `shown` 0 stops watching. */
export type BoardRequest = {
  readonly connection: ConnectionId;
  readonly user: UserId;
  readonly name: string;
  readonly room: RoomKey;
  readonly channel: Channel;
  readonly role: BoardRole;
  readonly window: BoardWindow;
  readonly shown: number;
};

/** Connections that watch the same number of entries of one board. They listen to the same topic. */
export type BoardEffect =
  | { readonly kind: "follow" | "unfollow"; readonly room: RoomKey }
  | { readonly kind: "watch"; readonly watch: BoardWatch }
  | { readonly kind: "publish-name"; readonly name: DisplayName }
  | { readonly kind: "listen" | "unlisten"; readonly connection: ConnectionId; readonly topic: string }
  | { readonly kind: "send"; readonly to: ConnectionId; readonly frame: ServerFrame }
  | { readonly kind: "publish"; readonly topic: string; readonly frame: ServerFrame }
  /** The tenant's boards have too many bytes: this one is sent later. */
  | { readonly kind: "delayed" };

type BoardsOptions = {
  readonly boardsPerConnectionMax: number;
  /** A leaderboard forgets a watcher that does not renew its watch within this time. */
  readonly boardWatchMs: number;
  /** Bytes of boards times watchers, of one tenant. */
  readonly tenantBoardBytesBurst: number;
  readonly tenantBoardBytesPerSecond: number;
};

type OwnRank = { readonly rank: number; readonly score: number };
type Watcher = {
  readonly user: UserId;
  readonly name: string;
  readonly length: number;
  own: OwnRank | undefined;
  hasPublishedName: boolean;
};
type Board = {
  readonly room: RoomKey;
  readonly role: BoardRole;
  readonly window: BoardWindow;
  readonly channel: Channel;
  readonly watchers: Map<ConnectionId, Watcher>;
  /** The list that was published last, by its number of entries. */
  readonly publishedLists: Map<number, string>;
  /** Undefined until the first answer. */
  state: BoardState | undefined;
  latest: BoardSnapshot | undefined;
  askedAt: Millis;
  /** An update arrived since the last request, and a leaderboard has sent heartbeats since then. */
  isAnswered: boolean;
  /** Users outside the ranking that the leaderboard was last asked for. */
  sought: ReadonlySet<string>;
};

/** Few numbers of entries, so that few frames are sent: a request for another number gets the next longer list. */
const LENGTHS = [10, 30, 100];
const LENGTH_MAX = 1_000;
const ANSWER_MS_MAX = 2_000;
/** A share of the time that a watch is valid. */
const RENEW_SHARE = 1 / 3;
const NO_RANK: OwnRank = { rank: 0, score: 0 };
const DELAYED: BoardEffect = { kind: "delayed" };

export class GatewayBoards {
  readonly #options: BoardsOptions;
  readonly #byRoom = new Map<RoomKey, Map<string, Board>>();
  readonly #byConnection = new Map<ConnectionId, Set<Board>>();
  readonly #turns: BoardTurns<Board>;

  constructor(options: BoardsOptions) {
    this.#options = options;
    this.#turns = new BoardTurns({ burst: options.tenantBoardBytesBurst, perSecond: options.tenantBoardBytesPerSecond });
  }

  /** The number of watched boards, and of their watchers. */
  get size(): { readonly boards: number; readonly watchers: number } {
    let [boards, watchers] = [0, 0];
    for (const ofRoom of this.#byRoom.values()) boards += ofRoom.size;
    for (const ofConnection of this.#byConnection.values()) watchers += ofConnection.size;
    return { boards, watchers };
  }

  receiveRequest(request: BoardRequest, now: Millis): BoardEffect[] {
    const { connection, user, name, room, shown } = request;
    const known = this.#byRoom.get(room)?.get(keyOf(request));
    const left = known?.watchers.has(connection) ? this.#leave(connection, known) : [];
    if (shown === 0) return [...left, ...(known === undefined ? [] : this.#closeIfUnwatched(known))];
    if ((this.#byConnection.get(connection)?.size ?? 0) >= this.#options.boardsPerConnectionMax) {
      return [...left, { kind: "send", to: connection, frame: frameOf({ ...request, latest: undefined, state: "unavailable" }, 0) }];
    }
    const opened = known === undefined ? this.#open(request, now) : { board: known, effects: [] };
    const { board } = opened;
    const watcher: Watcher = {
      user,
      name,
      length: LENGTHS.find((length) => length >= shown) ?? LENGTH_MAX,
      own: undefined,
      hasPublishedName: false,
    };
    board.watchers.set(connection, watcher);
    this.#byConnection.set(connection, (this.#byConnection.get(connection) ?? new Set()).add(board));
    const effects: BoardEffect[] = [...left, { kind: "listen", connection, topic: topicOf(board, watcher.length) }, ...opened.effects];
    if (board.state === undefined) return effects;
    if (!this.#turns.mayShow(tenantOf(room), board, now)) {
      board.publishedLists.delete(watcher.length); // The list is published again, for this watcher.
      return [...effects, DELAYED];
    }
    const list = board.publishedLists.get(watcher.length) ?? listOf(board, watcher.length);
    board.publishedLists.set(watcher.length, list);
    this.#turns.spendFor(tenantOf(room), list, 1, now);
    return [
      ...effects,
      { kind: "send", to: connection, frame: frameOf(board, watcher.length) },
      ...ownRanks(board, [[connection, watcher]]),
      ...this.#seek(board, now),
    ];
  }

  /** Call when a connection leaves a room. */
  receiveLeft(connection: ConnectionId, room: RoomKey): BoardEffect[] {
    const boards = [...(this.#byConnection.get(connection) ?? [])].filter((board) => board.room === room);
    return boards.flatMap((board) => [...this.#leave(connection, board), ...this.#closeIfUnwatched(board)]);
  }

  receiveGone(connection: ConnectionId): BoardEffect[] {
    const boards = this.#byConnection.get(connection) ?? [];
    return [...boards].flatMap((board) => [...this.#leave(connection, board), ...this.#closeIfUnwatched(board)]);
  }

  receiveUpdate(update: BoardUpdate, now: Millis): BoardEffect[] {
    const board = this.#byRoom.get(update.room)?.get(keyOf(update));
    if (board === undefined) return [];
    board.isAnswered = true;
    switch (update.kind) {
      case "shown":
        board.latest = update;
        board.state = "live";
        return this.#turns.mayShow(tenantOf(board.room), board, now) ? this.#show(board, now) : [DELAYED];
      case "behind":
        return this.#publish(board, "behind", now);
      case "unavailable":
        return [
          ...this.#publish(board, "unavailable", now),
          ...[...board.watchers.keys()].flatMap((connection) => this.#leave(connection, board)),
          ...this.#closeIfUnwatched(board),
        ];
    }
  }

  /** Call about every second. `leaderboards` is the number of leaderboards that send heartbeats. */
  receiveTick(leaderboards: number, now: Millis): BoardEffect[] {
    const effects: BoardEffect[] = [];
    for (const board of this.#turns.takeDue(now)) effects.push(...this.#show(board, now));
    for (const ofRoom of this.#byRoom.values()) {
      for (const board of ofRoom.values()) {
        const isUnanswered = board.state === undefined && now - board.askedAt >= ANSWER_MS_MAX;
        if (isUnanswered || (board.state === "live" && leaderboards === 0)) effects.push(...this.#publish(board, "behind", now));
        if (leaderboards === 0) board.isAnswered = false;
        // A leaderboard that answers "behind" may be full: it is not asked more often than for a renewal.
        const againMs = board.state === "live" || board.isAnswered ? this.#options.boardWatchMs * RENEW_SHARE : ANSWER_MS_MAX;
        if (now - board.askedAt >= againMs) effects.push(this.#ask(board, now));
      }
    }
    return effects;
  }

  /** Requests the boards again: updates that were published while the connection was down are lost. */
  receiveBackboneFound(now: Millis): BoardEffect[] {
    return [...this.#byRoom.values()].flatMap((ofRoom) => [...ofRoom.values()].map((board) => this.#ask(board, now, true)));
  }

  #open({ room, role, window, channel }: BoardRequest, now: Millis): { board: Board; effects: BoardEffect[] } {
    const board: Board = {
      room,
      role,
      window,
      channel,
      watchers: new Map(),
      publishedLists: new Map(),
      state: undefined,
      latest: undefined,
      askedAt: now,
      isAnswered: false,
      sought: new Set(),
    };
    const ofRoom = this.#byRoom.get(room);
    if (ofRoom !== undefined) ofRoom.set(keyOf(board), board);
    else this.#byRoom.set(room, new Map([[keyOf(board), board]]));
    return { board, effects: [...(ofRoom === undefined ? [{ kind: "follow" as const, room }] : []), this.#ask(board, now)] };
  }

  #ask(board: Board, now: Millis, isNew = board.state !== "live"): BoardEffect {
    board.askedAt = now;
    board.isAnswered = false;
    const { room, role, window, latest } = board;
    const sought = usersOutside(board);
    board.sought = new Set(sought);
    const known = isNew || latest === undefined ? {} : { checksum: latest.checksum };
    return { kind: "watch", watch: { room, role, window, isNew, ...known, ...(sought.length === 0 ? {} : { sought }) } };
  }

  /** Asks for the places of watchers that left the ranking, or began to watch outside it. */
  #seek(board: Board, now: Millis): BoardEffect[] {
    return usersOutside(board).every((user) => board.sought.has(user)) ? [] : [this.#ask(board, now, false)];
  }

  #leave(connection: ConnectionId, board: Board): BoardEffect[] {
    const watcher = board.watchers.get(connection);
    if (watcher === undefined) return [];
    board.watchers.delete(connection);
    const ofConnection = this.#byConnection.get(connection);
    ofConnection?.delete(board);
    if (ofConnection?.size === 0) this.#byConnection.delete(connection);
    return [{ kind: "unlisten", connection, topic: topicOf(board, watcher.length) }];
  }

  #closeIfUnwatched(board: Board): BoardEffect[] {
    const ofRoom = this.#byRoom.get(board.room);
    if (board.watchers.size > 0 || ofRoom?.get(keyOf(board)) !== board) return [];
    ofRoom.delete(keyOf(board));
    this.#turns.forget(tenantOf(board.room), board);
    if (ofRoom.size > 0) return [];
    this.#byRoom.delete(board.room);
    return [{ kind: "unfollow", room: board.room }];
  }

  #show(board: Board, now: Millis): BoardEffect[] {
    return [
      ...this.#publish(board, board.state ?? "behind", now),
      ...ownRanks(board, board.watchers),
      ...missingNames(board),
      ...this.#seek(board, now),
    ];
  }

  /** Publishes each list that has changed since it was last published. */
  #publish(board: Board, state: BoardState, now: Millis): BoardEffect[] {
    board.state = state;
    const watchers = new Map<number, number>();
    for (const { length } of board.watchers.values()) watchers.set(length, (watchers.get(length) ?? 0) + 1);
    for (const length of board.publishedLists.keys()) if (!watchers.has(length)) board.publishedLists.delete(length);
    return [...watchers].flatMap(([length, count]) => {
      const list = listOf(board, length);
      if (board.publishedLists.get(length) === list) return [];
      board.publishedLists.set(length, list);
      this.#turns.spendFor(tenantOf(board.room), list, count, now);
      return [{ kind: "publish", topic: topicOf(board, length), frame: frameOf(board, length) }];
    });
  }
}

/** Two lists are the same exactly when these texts are equal. They have about as many bytes as their frames. */
function listOf({ state, latest }: Board, length: number): string {
  return JSON.stringify([state, latest?.windowId, latest?.members, latest?.ranking.slice(0, Math.min(length, latest.shown))]);
}

function keyOf({ role, window }: { role: string; window: string }): string {
  return `${role} ${window}`;
}

function topicOf({ channel, role, window }: Pick<Board, "channel" | "role" | "window">, length: number): string {
  return `board ${channel} ${role} ${window} ${length}`;
}

function frameOf(
  { channel, role, window, state, latest }: Pick<Board, "channel" | "role" | "window" | "state" | "latest">,
  length: number,
): BoardFrame {
  const about = { type: "board" as const, channel, role, window, state: state ?? "behind" };
  if (latest === undefined) return { ...about, windowId: "", epoch: 0, seq: 0 as Seq, members: 0, ranking: [] };
  const { windowId, epoch, seq, members, shown, ranking } = latest;
  return {
    ...about,
    windowId,
    epoch,
    seq,
    members,
    ranking: ranking
      .slice(0, Math.min(length, shown))
      .map(([user, score, name]) => ({ user: user as UserId, name, score: scoreOf(score) })),
  };
}

/** Watchers that the ranking does not contain, while the board has more members than the ranking. */
function usersOutside({ latest, watchers }: Board): string[] {
  if (latest === undefined || latest.members <= latest.ranking.length) return [];
  const ranked = new Set(latest.ranking.map(([user]) => user));
  const outside = new Set([...watchers.values()].map(({ user }) => user as string).filter((user) => !ranked.has(user)));
  return [...outside].slice(0, SOUGHT_USERS_MAX);
}

/** Sends each watcher its own rank and score if either changed. A watcher outside the ranking waits for its entry. */
function ownRanks(board: Board, watchers: Iterable<[ConnectionId, Watcher]>): BoardEffect[] {
  const { channel, role, window, latest } = board;
  if (latest === undefined) return [];
  const { ranking, own: others = [], members } = latest;
  const ranks = new Map([
    ...others.map(([user, rank, score]): [string, OwnRank] => [user, { rank, score: scoreOf(score) }]),
    ...ranking.map(([user, score], index): [string, OwnRank] => [user, { rank: index + 1, score: scoreOf(score) }]),
  ]);
  const effects: BoardEffect[] = [];
  for (const [to, watcher] of watchers) {
    const own = ranks.get(watcher.user) ?? (members <= ranking.length ? NO_RANK : undefined);
    if (own === undefined || (watcher.own?.rank === own.rank && watcher.own.score === own.score)) continue;
    watcher.own = own;
    effects.push({ kind: "send", to, frame: { type: "own-rank", channel, role, window, ...own } });
  }
  return effects;
}

/** Publishes the names of watchers whom the board shows under an old name or their id: the first publication was lost. */
function missingNames(board: Board): BoardEffect[] {
  const names = new Map(board.latest?.ranking.map(([user, , name]) => [user, name]));
  const effects: BoardEffect[] = [];
  for (const watcher of board.watchers.values()) {
    const { user, name } = watcher;
    if (watcher.hasPublishedName || name === "" || !names.has(user) || (names.get(user) || user) === name) continue;
    watcher.hasPublishedName = true;
    effects.push({ kind: "publish-name", name: { room: board.room, user, name } });
  }
  return effects;
}

/** A frame holds numbers below 2^53, so a larger score is sent as 2^53 - 1. */
function scoreOf(score: number): number {
  return Math.min(score, Number.MAX_SAFE_INTEGER);
}
