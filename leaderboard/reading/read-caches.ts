/** Caches of limited size for readers of boards: display names, and boards that were read within the push interval. */

import type { Millis } from "../../shared/ids.ts";
import type { BoardContents, Names } from "../boards/board.ts";
import type { BoardOwner } from "../boards/keys.ts";

const NO_NAME = "";

/**
 * Display names by room or tenant, and user, including users without a name, so that an answer with a cached board reads nothing.
 * The entry that was requested or named longest ago is removed first.
 */
export class KnownNames {
  readonly #countMax: number;
  /** Ordered by last use, the latest is last. */
  readonly #names = new Map<string, string>();

  constructor(countMax: number) {
    this.#countMax = countMax;
  }

  /** Returns whether the name differs from the known one. */
  receiveName(owner: BoardOwner, user: string, name: string): boolean {
    const key = keyOf(owner, user);
    if (this.#names.get(key) === name) return false;
    this.#remember(key, name);
    return true;
  }

  /** Call after a failed write: the next announcement writes the name again. */
  forget(owner: BoardOwner, user: string): void {
    this.#names.delete(keyOf(owner, user));
  }

  unknownOf(owner: BoardOwner, users: readonly string[]): string[] {
    return users.filter((user) => !this.#names.has(keyOf(owner, user)));
  }

  /** `read`: the stored names of users who were unknown. A name that was announced in the meantime is newer. */
  receiveStored(owner: BoardOwner, users: readonly string[], read: Names): void {
    for (const user of this.unknownOf(owner, users)) this.#remember(keyOf(owner, user), read.get(user) ?? NO_NAME);
  }

  namesOf(owner: BoardOwner, users: readonly string[]): Names {
    const names = users.map((user): [string, string] => [user, this.#names.get(keyOf(owner, user)) ?? NO_NAME]);
    return new Map(names.filter(([, name]) => name !== NO_NAME));
  }

  #remember(key: string, name: string): void {
    this.#names.delete(key);
    this.#names.set(key, name);
    const [oldest] = this.#names.keys();
    if (oldest !== undefined && this.#names.size > this.#countMax) this.#names.delete(oldest);
  }
}

function keyOf(owner: BoardOwner, user: string): string {
  return `${owner} ${user}`;
}

const BOARDS_MAX = 10_000;

/** Boards read within the push interval. All readers of the interval share one read. The oldest reads are removed first. */
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
    this.#boards.delete(key); // Keeps the map in order of age.
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
