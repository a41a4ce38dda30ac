/**
 * A room's leaderboards, live or read once. Each view of a live board shows as many places as it asked for. Several views
 * of the same board share one request to the server. `main.ts` is the entry point.
 */

import { assert } from "../../shared/assert.ts";
import type { Seq } from "../../shared/ids.ts";
import { BOARD_WINDOWS, type BoardName, type BoardRole, type BoardWindow } from "../../shared/wire/boards.ts";
import { newToken } from "../connection/token-host.ts";
import { Events } from "../events.ts";
import { assertBoard, assertNotDestroyed, assertOptions } from "../options.ts";
import type { ClientWorld } from "../ports.ts";
import type { RoomConnection, RoomLink } from "../room/room-connection-host.ts";
import type { RoomSessionInput } from "../room/room-messages.ts";
import { type BoardReading, type BoardReadOptions, type BoardReadPorts, readBoard } from "./board-reads-host.ts";
import { type BoardFacts, type BoardsEffect, NOTHING_SHOWN, type RankedUser, rankedUsers, RoomBoards } from "./room-boards.ts";

/** Which board to show, and how much of it. */
export type BoardOptions = {
  /** The current hour, day, ISO week, month or year in UTC, or `all` time. Default: `all`. */
  readonly window?: BoardWindow | undefined;
  /** Default: `everyone`. */
  readonly role?: BoardRole | undefined;
  /** Number of places, an integer from 1. The server shows at most 100. Default: 10. */
  readonly shown?: number | undefined;
};

/** Events of a `Board`, with the arguments of each listener. */
export type BoardEvents = {
  /** Anything but `seq` changed. */
  change: [Board];
};

const SHOWN_DEFAULT = 10;

/** A live board, as last received. `Leaderboard.subscribe` returns it. */
export class Board {
  /** The users that the board ranks. */
  readonly role: BoardRole;
  /** The period that the board counts. */
  readonly window: BoardWindow;
  /** Number of places that were asked for. */
  readonly shown: number;
  readonly #events: Events<BoardEvents>;
  readonly #onUnsubscribe: () => void;
  #facts: BoardFacts = NOTHING_SHOWN;
  #ranking: readonly RankedUser[] = [];
  #emitted = "";

  /** @internal Use `Leaderboard.subscribe`. */
  constructor(
    { role, window, shown }: BoardName & { readonly shown: number },
    deps: { onUnsubscribe: (board: Board) => void; reportError: (error: unknown) => void },
  ) {
    this.role = role;
    this.window = window;
    this.shown = shown;
    this.#events = new Events(deps.reportError);
    this.#onUnsubscribe = () => deps.onUnsubscribe(this);
  }

  /**
   * `live`: up to date. `behind`: the server does not count or push the board at the moment. `unavailable`: this server keeps no boards.
   * `waiting`: no answer yet, or not connected.
   */
  get state(): BoardFacts["state"] {
    return this.#facts.state;
  }

  /** Id of the window, for example `2026-07-01T12`. Empty until known. */
  get windowId(): string {
    return this.#facts.windowId;
  }

  /** The room's edits up to this seq are counted. */
  get seq(): Seq {
    return this.#facts.seq;
  }

  /** Number of users with points. */
  get members(): number {
    return this.#facts.members;
  }

  /** The first places, at most `shown` and at most 100. */
  get ranking(): readonly RankedUser[] {
    return this.#ranking;
  }

  /**
   * This user's own rank and score. Rank 0: no points, or with a score: not known exactly on a very long board.
   * Undefined: no answer yet.
   */
  get own(): { readonly rank: number; readonly score: number } | undefined {
    return this.#facts.own;
  }

  /** Calls the listener at each event of this name. {@link BoardEvents} lists names and arguments. */
  on<Name extends keyof BoardEvents>(name: Name, listener: (...args: BoardEvents[Name]) => void): void {
    this.#events.on(name, listener);
  }

  /** Calls the listener at the next event of this name, once. */
  once<Name extends keyof BoardEvents>(name: Name, listener: (...args: BoardEvents[Name]) => void): void {
    this.#events.once(name, listener);
  }

  /** Removes the listener. Without effect if it was not added. */
  off<Name extends keyof BoardEvents>(name: Name, listener: (...args: BoardEvents[Name]) => void): void {
    this.#events.off(name, listener);
  }

  /** Ends the subscription: no event is emitted any more. */
  unsubscribe(): void {
    this.end();
    this.#onUnsubscribe();
  }

  /** @internal For the room. */
  receive(facts: BoardFacts): void {
    this.know(facts);
    const shownNow = JSON.stringify([facts.state, facts.windowId, facts.members, facts.own, this.#ranking]);
    if (shownNow === this.#emitted) return;
    this.#emitted = shownNow;
    this.#events.emit("change", this);
  }

  /** @internal Sets the facts at once; the event follows. */
  know(facts: BoardFacts): void {
    this.#facts = facts;
    this.#ranking = rankedUsers(facts.places, this.shown);
  }

  /** @internal Removes all listeners. */
  end(): void {
    this.#events.clear();
  }
}

type LeaderboardRoom = Pick<RoomConnection, "room" | "inTurn" | "sendFrame" | "client" | "participants">;
type LeaderboardLink = Pick<RoomLink, "channel"> & { readonly connection: Pick<RoomLink["connection"], "server" | "options"> };
type LeaderboardWorld = Pick<ClientWorld, "clock" | "reportError"> & Pick<BoardReadPorts, "fetchJson">;
type Shared = { readonly views: Set<Board>; facts: BoardFacts };

/** The boards of one room. `leaderboardOf` returns it. */
export class Leaderboard {
  readonly #room: LeaderboardRoom;
  readonly #world: LeaderboardWorld;
  readonly #connection: LeaderboardLink["connection"];
  readonly #requests: RoomBoards;
  readonly #boards = new Map<string, Shared>();
  #isEnded = false;

  /** @internal Use `leaderboardOf`. */
  constructor(room: LeaderboardRoom, world: LeaderboardWorld, { connection, channel }: LeaderboardLink) {
    this.#connection = connection;
    this.#room = room;
    this.#world = world;
    this.#requests = new RoomBoards(channel, () => room.client && room.participants.get(room.client)?.user);
  }

  /** Returns a live board. It survives reconnects and lasts until `unsubscribe()`. Throws for a wrong option, and after the room's `destroy()`. */
  subscribe({ window = "all", role = "everyone", shown = SHOWN_DEFAULT }: BoardOptions = {}): Board {
    assertNotDestroyed(this.#isEnded, "subscribe to a board");
    assert(window in BOARD_WINDOWS, `window must be one of ${Object.keys(BOARD_WINDOWS).join(", ")}; read() gives windows that ended`);
    assertBoard(window, role, shown);
    const board = new Board(
      { window, role, shown },
      { onUnsubscribe: (ended) => this.#remove(ended), reportError: this.#world.reportError },
    );
    const shared = this.#boards.get(keyOf(board)) ?? { views: new Set(), facts: NOTHING_SHOWN };
    this.#boards.set(keyOf(board), shared);
    shared.views.add(board);
    board.know(shared.facts);
    if (shared.facts !== NOTHING_SHOWN) this.#world.clock.soon(() => board.receive(shared.facts)); // The caller has not added its listeners yet.
    this.#informRoom(board, shared);
    return board;
  }

  /**
   * Reads a board once, over HTTP: of a window that has ended, or of any other. `read({ window: "last-week" })` gives the
   * week before the current one. Rejects with the server's message if the board cannot be read, and throws for a wrong option.
   */
  read(options: BoardReadOptions): Promise<BoardReading> {
    assertOptions(options, "window");
    const { window, role = "everyone", shown = SHOWN_DEFAULT } = options;
    assertBoard(window, role, shown);
    const {
      server,
      options: { token },
    } = this.#connection;
    const ports = { server, token: () => newToken(token), fetchJson: this.#world.fetchJson };
    return readBoard(ports, this.#room.room, { window, role, shown });
  }

  /** @internal For the room. */
  receiveInput(input: RoomSessionInput): void {
    this.#carryOut(this.#requests.receiveInput(input));
  }

  /** @internal The room is left permanently: no event is emitted any more. */
  end(): void {
    this.#isEnded = true;
    for (const { views } of this.#boards.values()) for (const view of views) view.end();
  }

  #remove(board: Board): void {
    const shared = this.#boards.get(keyOf(board));
    if (shared === undefined || !shared.views.delete(board)) return;
    if (shared.views.size === 0) this.#boards.delete(keyOf(board));
    this.#informRoom(board, shared);
  }

  #carryOut(effects: readonly BoardsEffect[]): void {
    for (const effect of effects) {
      if (effect.kind === "send") this.#room.sendFrame(effect.frame);
      else this.#receiveBoard(effect.board, effect.facts);
    }
  }

  #receiveBoard(name: BoardName, facts: BoardFacts): void {
    const shared = this.#boards.get(keyOf(name));
    if (shared === undefined) return;
    shared.facts = facts;
    for (const view of shared.views) view.receive(facts);
  }

  #informRoom({ role, window }: BoardName, { views }: Shared): void {
    const shown = Math.max(0, ...[...views].map((view) => view.shown));
    this.#room.inTurn(() => this.#carryOut(this.#requests.receiveInput({ kind: "watch-board", board: { role, window }, shown })));
  }
}

function keyOf({ role, window }: BoardName): string {
  return `${role} ${window}`;
}
