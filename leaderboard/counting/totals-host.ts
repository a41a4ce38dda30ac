/**
 * The windows of a room of which its tenant's board may not have the newest total. Told one time after the other, so
 * that whoever tells has told what was under way too: a tenant's window is archived, and a room forgotten, on the word
 * that all is.
 */

import type { RoomKey } from "../../shared/ids.ts";
import type { Window } from "../boards/windows.ts";
import type { TenantBoards } from "../ports.ts";

export class Totals {
  readonly #room: RoomKey;
  readonly #tenants: Pick<TenantBoards, "tell">;
  readonly #untold = new Map<string, Window>();
  #telling: Promise<void> = Promise.resolve();
  #underWay = 0;

  constructor(room: RoomKey, tenants: Pick<TenantBoards, "tell">) {
    this.#room = room;
    this.#tenants = tenants;
  }

  get areTold(): boolean {
    return this.#untold.size === 0 && this.#underWay === 0;
  }

  /** Points were counted in it, or may have been by somebody who died. */
  receive(window: Window): void {
    this.#untold.set(window.id, window);
  }

  /** Resolves once all that was received before is told. */
  tell(): Promise<void> {
    this.#underWay += 1;
    const before = this.#telling.catch(() => {}); // It failed whoever told then; what they did not tell is told again.
    this.#telling = before.then(() => this.#tellUntold()).finally(() => (this.#underWay -= 1));
    return this.#telling;
  }

  async #tellUntold(): Promise<void> {
    const windows = [...this.#untold.values()];
    this.#untold.clear();
    try {
      await this.#tenants.tell(this.#room, windows);
    } catch (error) {
      for (const window of windows) this.#untold.set(window.id, window); // Whatever it was: it is still to be told.
      throw error;
    }
  }
}
