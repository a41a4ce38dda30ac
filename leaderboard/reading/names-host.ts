/**
 * How users are called. Gateways say it when they join; what was said is stored once, and read once for each
 * user whom nobody has told this process of, so that showing a board looks nothing up.
 */

import type { BoardName } from "../../shared/bus/board-messages.ts";
import type { RoomKey } from "../../shared/ids.ts";
import type { Log } from "../../shared/log.ts";
import { unlessMistake } from "../../shared/pause.ts";
import type { Names } from "../boards/board.ts";
import type { StoredNames } from "../ports.ts";

export type NamesOptions = { readonly boardNamesMax: number };

const UNKNOWN = "";

export class NamesHost {
  readonly #stored: StoredNames;
  readonly #options: NamesOptions;
  readonly #log: Log;
  readonly #onNew: (room: RoomKey) => void;
  /** By room and user; whoever was asked for last stands last. */
  readonly #known = new Map<string, string>();

  /** `onNew`: somebody of the room is called otherwise than was known. */
  constructor(stored: StoredNames, options: NamesOptions, { log, onNew }: { log: Log; onNew: (room: RoomKey) => void }) {
    this.#stored = stored;
    this.#options = options;
    this.#log = log;
    this.#onNew = onNew;
  }

  async receiveName({ room, user, name }: BoardName): Promise<void> {
    const key = keyOf(room, user);
    if (this.#known.get(key) === name) return;
    this.#remember(key, name);
    this.#onNew(room);
    try {
      await this.#stored.write(room, user, name);
    } catch (cause) {
      unlessMistake(cause);
      this.#known.delete(key); // Said again at the next join.
      this.#log.debug({ room, cause }, "a name was not stored");
    }
  }

  /** Of those users whose names are known. */
  async of(room: RoomKey, users: readonly string[]): Promise<Names> {
    const unknown = users.filter((user) => !this.#known.has(keyOf(room, user)));
    const read = unknown.length === 0 ? undefined : await this.#stored.read(room, unknown);
    for (const user of unknown) {
      const key = keyOf(room, user);
      if (!this.#known.has(key)) this.#remember(key, read?.get(user) ?? UNKNOWN); // Unless it was told meanwhile.
    }
    const names = users.map((user): [string, string] => [user, this.#known.get(keyOf(room, user)) ?? UNKNOWN]);
    return new Map(names.filter(([, name]) => name !== UNKNOWN));
  }

  #remember(key: string, name: string): void {
    this.#known.delete(key);
    this.#known.set(key, name);
    const [oldest] = this.#known.keys();
    if (oldest !== undefined && this.#known.size > this.#options.boardNamesMax) this.#known.delete(oldest);
  }
}

function keyOf(room: RoomKey, user: string): string {
  return `${room} ${user}`;
}
