/**
 * Display names by room and user, also of users who have none, so that showing a board looks nothing up. Bounded: the user
 * who was asked for or named longest ago goes first.
 */

import type { RoomKey } from "../../shared/ids.ts";
import type { Names } from "../boards/board.ts";

const NO_NAME = "";

export class KnownNames {
  readonly #countMax: number;
  /** The last one named stands last. */
  readonly #names = new Map<string, string>();

  constructor(countMax: number) {
    this.#countMax = countMax;
  }

  /** Returns whether the name is another one than was known. */
  receiveName(room: RoomKey, user: string, name: string): boolean {
    const key = keyOf(room, user);
    if (this.#names.get(key) === name) return false;
    this.#remember(key, name);
    return true;
  }

  /** The name could not be stored: it is stored when it is announced again. */
  forget(room: RoomKey, user: string): void {
    this.#names.delete(keyOf(room, user));
  }

  unknownOf(room: RoomKey, users: readonly string[]): string[] {
    return users.filter((user) => !this.#names.has(keyOf(room, user)));
  }

  /** `read`: the stored names of users who were unknown. A name that was announced meanwhile is newer. */
  receiveStored(room: RoomKey, users: readonly string[], read: Names): void {
    for (const user of this.unknownOf(room, users)) this.#remember(keyOf(room, user), read.get(user) ?? NO_NAME);
  }

  namesOf(room: RoomKey, users: readonly string[]): Names {
    const names = users.map((user): [string, string] => [user, this.#names.get(keyOf(room, user)) ?? NO_NAME]);
    return new Map(names.filter(([, name]) => name !== NO_NAME));
  }

  #remember(key: string, name: string): void {
    this.#names.delete(key);
    this.#names.set(key, name);
    const [oldest] = this.#names.keys();
    if (oldest !== undefined && this.#names.size > this.#countMax) this.#names.delete(oldest);
  }
}

function keyOf(room: RoomKey, user: string): string {
  return `${room} ${user}`;
}
