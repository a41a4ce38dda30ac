/**
 * The boards of one room that this client watches, beside the edits: hears what the room session hears, keeps what
 * each board shows, and asks for all of them again after each join. Deterministic. Rules LBO1 to LBO6.
 */

import type { Seq } from "../../shared/ids.ts";
import type { BoardName, BoardPlace, BoardState } from "../../shared/wire/boards.ts";
import type { BoardFrame, Channel, ClientFrame } from "../../shared/wire/frames.ts";
import type { RoomFrame, RoomInput } from "../room/room-messages.ts";

/** The application looks at so many places of the board; 0: at none any more. */
export type WatchInput = { kind: "watch-board"; board: BoardName; shown: number };

/** `waiting`: asked for, and nothing heard on this line yet; what is shown is from before. */
export type BoardFacts = {
  readonly state: BoardState | "waiting";
  readonly windowId: string;
  /** The room's edits up to here are counted. */
  readonly seq: Seq;
  readonly members: number;
  readonly places: readonly BoardPlace[];
  /** Rank 0: beyond the places whose order is told, or without points. Undefined: not told yet. */
  readonly own: { readonly rank: number; readonly score: number } | undefined;
};

export type BoardsEffect = { kind: "send"; frame: ClientFrame } | { kind: "tell-board"; board: BoardName; facts: BoardFacts };

type Watched = { readonly board: BoardName; shown: number; facts: BoardFacts };

export const NOTHING_SHOWN: BoardFacts = { state: "waiting", windowId: "", seq: 0 as Seq, members: 0, places: [], own: undefined };

export class RoomBoards {
  readonly #watched = new Map<string, Watched>();
  #channel: Channel | undefined;

  receive(input: RoomInput | WatchInput): BoardsEffect[] {
    switch (input.kind) {
      case "watch-board":
        return this.#receiveWatch(input);
      case "frame":
        return this.#receiveFrame(input.frame);
      case "leave":
      case "line-lost":
        return this.#lose();
      default: // Of the edits.
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
        if (frame.channel === this.#channel) return []; // Joined anew on the same line: boards go on.
        this.#channel = frame.channel;
        return [...this.#watched.values()].flatMap(({ board, shown }) => this.#ask(board, shown));
      case "left":
      case "join-refused":
        return this.#lose();
      case "board":
        return this.#learn(frame, factsOf(frame));
      case "own-rank":
        return this.#learn(frame, { own: { rank: frame.rank, score: frame.score } });
      default:
        return [];
    }
  }

  #learn(board: BoardName, news: Partial<BoardFacts>): BoardsEffect[] {
    const watched = this.#watched.get(keyOf(board));
    if (watched === undefined) return []; // Given up while it was on its way.
    watched.facts = { ...watched.facts, ...news };
    return [{ kind: "tell-board", board: watched.board, facts: watched.facts }];
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

/** A board that is behind and was never seen whole keeps what was shown before. */
function factsOf({ state, windowId, seq, members, ranking }: BoardFrame): Partial<BoardFacts> {
  return windowId === "" ? { state } : { state, windowId, seq, members, places: ranking };
}

function keyOf({ role, window }: BoardName): string {
  return `${role} ${window}`;
}
