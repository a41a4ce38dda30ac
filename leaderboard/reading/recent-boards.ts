/** Boards that were read within the push interval, shared by all who ask meanwhile. Bounded: the oldest reads go first. */

import type { Millis } from "../../shared/ids.ts";
import type { BoardContents } from "../boards/board.ts";

const BOARDS_MAX = 10_000;

export class RecentBoards {
  readonly #keptMs: number;
  readonly #boards = new Map<string, { readonly until: Millis; readonly state: Promise<BoardContents> }>();

  constructor(keptMs: number) {
    this.#keptMs = keptMs;
  }

  find(key: string, now: Millis): Promise<BoardContents> | undefined {
    const known = this.#boards.get(key);
    return known !== undefined && now < known.until ? known.state : undefined;
  }

  add(key: string, state: Promise<BoardContents>, now: Millis): void {
    this.#boards.delete(key); // So that the map stays in order of age.
    this.#boards.set(key, { until: (now + this.#keptMs) as Millis, state });
    for (const oldest of this.#boards.keys()) {
      if (this.#boards.size <= BOARDS_MAX) break;
      this.#boards.delete(oldest);
    }
  }

  /** The read failed: the next one asks Redis again. */
  remove(key: string): void {
    this.#boards.delete(key);
  }
}
