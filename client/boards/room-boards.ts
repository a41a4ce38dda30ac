/**
 * The boards of one room that this client watches: takes the inputs of the room session, keeps the content of each
 * board, and requests all of them again after each join. Deterministic. Rules LBO1 to LBO8, LBO13.
 */

import type { Seq, UserId } from "../../shared/ids.ts";
import type { BoardName, BoardPlace, BoardState } from "../../shared/wire/boards.ts";
import type { BoardFrame, Channel, ClientFrame } from "../../shared/wire/frames.ts";
import type { RoomFrame, RoomSessionInput } from "../room/room-messages.ts";

/** The number of places of the board that the application shows; 0: the board is no longer shown. */
type WatchInput = { kind: "watch-board"; board: BoardName; shown: number };

/** `waiting`: requested and not answered on this connection yet; the content is the previous one. */
export type BoardFacts = {
  readonly state: BoardState | "waiting";
  readonly windowId: string;
  /** The room's edits up to this seq are counted. */
  readonly seq: Seq;
  readonly members: number;
  readonly places: readonly BoardPlace[];
  /** Rank 0: no points, or with a score: not known exactly on a very long board. Undefined: no answer yet. */
  readonly own: { readonly rank: number; readonly score: number } | undefined;
};

/** One place of a board. Among equal scores, the user who reached the score first is ahead. */
export type RankedUser = {
  /** 1, 2, 3, … in order. */
  readonly rank: number;
  /** The user, as the token names them. */
  readonly user: UserId;
  /** Name to show: the user id if no name is known. */
  readonly name: string;
  /** Points, a whole number. */
  readonly score: number;
};

export type BoardsEffect = { kind: "send"; frame: ClientFrame } | { kind: "emit-board"; board: BoardName; facts: BoardFacts };

type Watched = { readonly board: BoardName; shown: number; facts: BoardFacts };

export const NOTHING_SHOWN: BoardFacts = { state: "waiting", windowId: "", seq: 0 as Seq, members: 0, places: [], own: undefined };

export class RoomBoards {
  readonly #watched = new Map<string, Watched>();
  readonly #self: () => UserId | undefined;
  #channel: Channel | undefined;

  /** `channel`: undefined unless the room is joined already. `self`: this client's user, if known. */
  constructor(channel: Channel | undefined, self: () => UserId | undefined) {
    this.#channel = channel;
    this.#self = self;
  }

  receiveInput(input: RoomSessionInput | WatchInput): BoardsEffect[] {
    switch (input.kind) {
      case "watch-board":
        return this.#receiveWatch(input);
      case "frame":
        return this.#receiveFrame(input.frame);
      case "leave":
      case "connection-lost":
        return this.#lose();
      default: // Frames about edits.
        return [];
    }
  }

  #receiveWatch({ board, shown }: WatchInput): BoardsEffect[] {
    const key = keyOf(board);
    const known = this.#watched.get(key);
    if (shown === 0) this.#watched.delete(key);
    else if (known === undefined) this.#watched.set(key, { board, shown, facts: NOTHING_SHOWN });
    else if (known.shown === shown) return [];
    else known.shown = shown;
    return this.#ask(board, shown);
  }

  #receiveFrame(frame: RoomFrame): BoardsEffect[] {
    switch (frame.type) {
      case "joined":
        if (frame.channel === this.#channel) return []; // Joined again on the same connection: the server continues to send its boards.
        this.#channel = frame.channel;
        return [...this.#watched.values()].flatMap(({ board, shown }) => this.#ask(board, shown));
      case "left":
      case "join-refused":
        return this.#lose();
      case "board":
        return this.#learn(frame, { ...factsOf(frame), ...this.#ownIn(frame) });
      case "own-rank":
        return this.#learn(frame, { own: { rank: frame.rank, score: frame.score } });
      default:
        return [];
    }
  }

  /** OWN_RANK follows only afterwards, so that for a moment the ranking and the own place would not match. */
  #ownIn({ ranking }: BoardFrame): Partial<BoardFacts> {
    const self = this.#self();
    const index = ranking.findIndex(({ user }) => user === self);
    return index === -1 ? {} : { own: { rank: index + 1, score: ranking[index]!.score } };
  }

  #learn(board: BoardName, change: Partial<BoardFacts>): BoardsEffect[] {
    const watched = this.#watched.get(keyOf(board));
    if (watched === undefined) return []; // The board was unsubscribed while the frame was on its way.
    watched.facts = { ...watched.facts, ...change };
    return [{ kind: "emit-board", board: watched.board, facts: watched.facts }];
  }

  #ask({ role, window }: BoardName, shown: number): BoardsEffect[] {
    return this.#channel === undefined
      ? []
      : [{ kind: "send", frame: { type: "watch-board", channel: this.#channel, role, window, shown } }];
  }

  #lose(): BoardsEffect[] {
    if (this.#channel === undefined) return [];
    this.#channel = undefined;
    return [...this.#watched.values()].flatMap(({ board }) => this.#learn(board, { state: "waiting" }));
  }
}

/** A board that is behind and was never received completely keeps its previous content. */
function factsOf({ state, windowId, seq, members, ranking }: BoardFrame): Partial<BoardFacts> {
  return windowId === "" ? { state } : { state, windowId, seq, members, places: ranking };
}

/** The first places, as applications see them. */
export function rankedUsers(places: readonly BoardPlace[], shown: number): RankedUser[] {
  return places.slice(0, shown).map(({ user, name, score }, index) => ({ rank: index + 1, user, name: name === "" ? user : name, score }));
}

function keyOf({ role, window }: BoardName): string {
  return `${role} ${window}`;
}
