/**
 * A room's boards as the application holds them: each view shows as many places as it was asked to, however many
 * others look at the same board; the room asks the server once.
 */

import { assert } from "../../shared/assert.ts";
import type { Seq, UserId } from "../../shared/ids.ts";
import { BOARD_ROLES, BOARD_WINDOWS, type BoardName, type BoardRole, type BoardWindow } from "../../shared/wire/boards.ts";
import { Events } from "../events.ts";
import type { World } from "../ports.ts";
import { type BoardFacts, NOTHING_SHOWN } from "./room-boards.ts";

export type BoardOptions = {
  /** The present hour, day, ISO week, month or year, in UTC, or all of it. Default: `all`. */
  readonly window?: BoardWindow;
  /** Default: `everyone`. */
  readonly role?: BoardRole;
  /** How many places, a whole number from 1; the server shows 100 at most. Default: 10. */
  readonly shown?: number;
};

/** `rank`: 1, 2, 3, … in order; of those with equal scores the one who had it first is ahead. `name` is the id where none is known. */
export type RankedUser = { readonly rank: number; readonly user: UserId; readonly name: string; readonly score: number };

export type BoardEvents = { change: [Board] };

const SHOWN_DEFAULT = 10;

export class Board {
  readonly role: BoardRole;
  readonly window: BoardWindow;
  readonly shown: number;
  readonly #events: Events<BoardEvents>;
  readonly #onUnsubscribe: () => void;
  #facts: BoardFacts = NOTHING_SHOWN;
  #ranking: readonly RankedUser[] = [];
  #told = "";

  constructor(
    { role, window, shown }: Required<BoardOptions>,
    deps: { onUnsubscribe: (board: Board) => void; reportError: (error: unknown) => void },
  ) {
    this.role = role;
    this.window = window;
    this.shown = shown;
    this.#events = new Events(deps.reportError);
    this.#onUnsubscribe = () => deps.onUnsubscribe(this);
  }

  /** `live`; `behind`: nobody counts right now; `unavailable`: not kept here; `waiting`: not told yet, or no line. */
  get state(): BoardFacts["state"] {
    return this.#facts.state;
  }

  /** Which hour, day, … it is: `2026-07-01T12`, say. Empty until it is known. */
  get windowId(): string {
    return this.#facts.windowId;
  }

  /** The room's edits up to here are counted. */
  get seq(): Seq {
    return this.#facts.seq;
  }

  /** How many have points. */
  get members(): number {
    return this.#facts.members;
  }

  get ranking(): readonly RankedUser[] {
    return this.#ranking;
  }

  /** This user's own place. Rank 0: beyond twice what the server shows, or without points. Undefined: not told yet. */
  get own(): { readonly rank: number; readonly score: number } | undefined {
    return this.#facts.own;
  }

  on<Name extends keyof BoardEvents>(name: Name, listener: (...args: BoardEvents[Name]) => void): void {
    this.#events.on(name, listener);
  }

  once<Name extends keyof BoardEvents>(name: Name, listener: (...args: BoardEvents[Name]) => void): void {
    this.#events.once(name, listener);
  }

  off<Name extends keyof BoardEvents>(name: Name, listener: (...args: BoardEvents[Name]) => void): void {
    this.#events.off(name, listener);
  }

  /** Nothing is told any more. */
  unsubscribe(): void {
    this.end();
    this.#onUnsubscribe();
  }

  /** @internal For the room. */
  receive(facts: BoardFacts): void {
    this.know(facts);
    const told = JSON.stringify([facts.state, facts.windowId, facts.own, this.#ranking]);
    if (told === this.#told) return;
    this.#told = told;
    this.#events.emit("change", this);
  }

  /** @internal To be seen already, and told soon. */
  know(facts: BoardFacts): void {
    this.#facts = facts;
    this.#ranking = facts.places
      .slice(0, this.shown)
      .map(({ user, name, score }, index) => ({ rank: index + 1, user, name: name === "" ? user : name, score }));
  }

  /** @internal Nobody listens any more. */
  end(): void {
    this.#events.clear();
  }
}

type Shared = { readonly views: Set<Board>; facts: BoardFacts };

export class Leaderboard {
  readonly #watch: (board: BoardName, shown: number) => void;
  readonly #world: Pick<World, "clock" | "reportError">;
  readonly #boards = new Map<string, Shared>();

  /** `watch`: tells the room how many places of a board are looked at. */
  constructor(watch: (board: BoardName, shown: number) => void, world: Pick<World, "clock" | "reportError">) {
    this.#watch = watch;
    this.#world = world;
  }

  /** A board that goes along until it is unsubscribed, over reconnects too. */
  subscribe({ window = "all", role = "everyone", shown = SHOWN_DEFAULT }: BoardOptions = {}): Board {
    assert(window in BOARD_WINDOWS, `a window is ${Object.keys(BOARD_WINDOWS).join(", ")}`);
    assert(role in BOARD_ROLES, `a role is ${Object.keys(BOARD_ROLES).join(", ")}`);
    assert(Number.isSafeInteger(shown) && shown > 0, "shown is how many places, a whole number from 1");
    const board = new Board(
      { window, role, shown },
      { onUnsubscribe: (ended) => this.#remove(ended), reportError: this.#world.reportError },
    );
    const shared = this.#boards.get(keyOf(board)) ?? { views: new Set(), facts: NOTHING_SHOWN };
    this.#boards.set(keyOf(board), shared);
    shared.views.add(board);
    board.know(shared.facts);
    if (shared.facts !== NOTHING_SHOWN) this.#world.clock.soon(() => board.receive(shared.facts)); // Listeners are not there yet.
    this.#tellRoom(board, shared);
    return board;
  }

  /** @internal For the room. */
  receive(name: BoardName, facts: BoardFacts): void {
    const shared = this.#boards.get(keyOf(name));
    if (shared === undefined) return;
    shared.facts = facts;
    for (const view of shared.views) view.receive(facts);
  }

  /** @internal The room is left for good: nothing is told any more. */
  end(): void {
    for (const { views } of this.#boards.values()) for (const view of views) view.end();
  }

  #remove(board: Board): void {
    const shared = this.#boards.get(keyOf(board));
    if (shared === undefined || !shared.views.delete(board)) return;
    if (shared.views.size === 0) this.#boards.delete(keyOf(board));
    this.#tellRoom(board, shared);
  }

  #tellRoom({ role, window }: BoardName, { views }: Shared): void {
    this.#watch({ role, window }, Math.max(0, ...[...views].map(({ shown }) => shown)));
  }
}

function keyOf({ role, window }: BoardName): string {
  return `${role} ${window}`;
}
