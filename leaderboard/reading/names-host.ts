/** Stores the display names that gateways announce, and reads the names that are unknown here. It decides nothing. */

import type { DisplayName } from "../../shared/bus/board-messages.ts";
import type { RoomKey } from "../../shared/ids.ts";
import type { Log } from "../../shared/process/log.ts";
import { unlessMistake } from "../../shared/time/pause.ts";
import type { Names } from "../boards/board.ts";
import type { StoredNames } from "../ports.ts";
import { KnownNames } from "./known-names.ts";

export type NamesOptions = { readonly boardNamesMax: number };

export class NamesHost {
  readonly #stored: StoredNames;
  readonly #known: KnownNames;
  readonly #log: Log;
  readonly #onNew: (room: RoomKey) => void;

  /** `onNew`: a name in the room has changed. */
  constructor(stored: StoredNames, options: NamesOptions, { log, onNew }: { log: Log; onNew: (room: RoomKey) => void }) {
    this.#stored = stored;
    this.#known = new KnownNames(options.boardNamesMax);
    this.#log = log;
    this.#onNew = onNew;
  }

  async receiveName({ room, user, name }: DisplayName): Promise<void> {
    if (!this.#known.receiveName(room, user, name)) return;
    this.#onNew(room);
    try {
      await this.#stored.write(room, user, name);
    } catch (cause) {
      unlessMistake(cause);
      this.#known.forget(room, user);
      this.#log.debug({ room, cause }, "a name was not stored");
    }
  }

  /** The names of those users who have one. */
  async namesOf(room: RoomKey, users: readonly string[]): Promise<Names> {
    const unknown = this.#known.unknownOf(room, users);
    if (unknown.length > 0) this.#known.receiveStored(room, unknown, await this.#stored.read(room, unknown));
    return this.#known.namesOf(room, users);
  }
}
