/** Caches of limited size for readers of boards: display names, and what was read within the push interval. */

import { BoundedMap } from "../../shared/collections/bounded-map.ts";
import type { Millis } from "../../shared/ids.ts";
import type { Names } from "../boards/board.ts";
import type { BoardOwner } from "../boards/keys.ts";

const NO_NAME = "";

/** Display names by room or tenant, and user, including users without a name, so that an answer with a cached board reads nothing. */
export class KnownNames {
  readonly #names: BoundedMap<string, string>;

  constructor(countMax: number) {
    this.#names = new BoundedMap(countMax);
  }

  /** Returns whether the name differs from the known one. */
  receiveName(owner: BoardOwner, user: string, name: string): boolean {
    const key = keyOf(owner, user);
    if (this.#names.get(key) === name) return false;
    this.#names.set(key, name);
    return true;
  }

  /** Call after a failed write: the next announcement writes the name again. */
  forget(owner: BoardOwner, user: string): void {
    this.#names.delete(keyOf(owner, user));
  }

  /** The known names of these users; undefined: to be read. The empty name: the user has none. */
  find(owner: BoardOwner, users: readonly string[]): Map<string, string | undefined> {
    return new Map(users.map((user) => [user, this.#names.get(keyOf(owner, user))]));
  }

  /** `read`: the stored names of users whose names were to be read. A name that was announced in the meantime is newer. */
  complete(owner: BoardOwner, found: ReadonlyMap<string, string | undefined>, read: Names): Names {
    const names = new Map<string, string>();
    for (const [user, known] of found) {
      const name = known ?? this.#learn(keyOf(owner, user), read.get(user) ?? NO_NAME);
      if (name !== NO_NAME) names.set(user, name);
    }
    return names;
  }

  #learn(key: string, read: string): string {
    const announced = this.#names.get(key);
    if (announced === undefined) this.#names.set(key, read);
    return announced ?? read;
  }
}

function keyOf(owner: BoardOwner, user: string): string {
  return `${owner} ${user}`;
}

const READS_MAX = 10_000;

/** Boards, or reports of progress, read within the push interval. All readers of the interval share one read. */
export class RecentReads<Content> {
  readonly #keptMs: number;
  readonly #reads = new BoundedMap<string, { readonly until: Millis; readonly content: Promise<Content> }>(READS_MAX);

  constructor(keptMs: number) {
    this.#keptMs = keptMs;
  }

  find(key: string, now: Millis): Promise<Content> | undefined {
    const known = this.#reads.get(key);
    return known !== undefined && now < known.until ? known.content : undefined;
  }

  /** Readers of a failed read receive the failure. The next one reads again. */
  add(key: string, content: Promise<Content>, now: Millis): void {
    this.#reads.set(key, { until: (now + this.#keptMs) as Millis, content });
    content.catch(() => this.#reads.delete(key));
  }
}
