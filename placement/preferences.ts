/** Which servers may have a room: those of its pool, which is the general one unless it is pinned, and those on its host. */

import type { RoomKey } from "../shared/ids.ts";
import { byRooms, isFull, least, type Tally } from "./tallies.ts";
import { DEDICATED, type Pin, type ServerState } from "./world.ts";

export class Preferences {
  readonly #pins: ReadonlyMap<RoomKey, Pin>;
  readonly #takers: readonly Tally[];
  readonly #general: readonly Tally[];

  constructor(pins: ReadonlyMap<RoomKey, Pin>, takers: readonly Tally[]) {
    this.#pins = pins;
    this.#takers = takers;
    this.#general = takers.filter(({ state }) => state.pool === "");
  }

  isPinned(room: RoomKey): boolean {
    return this.#pins.has(room);
  }

  describe(room: RoomKey): string {
    const { pool, host } = this.#pins.get(room) ?? {};
    return (
      [pool === undefined ? "" : `the pool ${pool}`, host === undefined ? "" : `the host ${host}`]
        .filter((part) => part !== "")
        .join(" and ") || "the general pool"
    );
  }

  mayTake(room: RoomKey, { pool, host }: ServerState): boolean {
    const pin = this.#pins.get(room);
    return pool === (pin?.pool ?? "") && (pin?.host === undefined || pin.host === host);
  }

  mayStay(room: RoomKey, server: ServerState): boolean {
    if (this.mayTake(room, server)) return true;
    const pin = this.#pins.get(room);
    // It was too hot elsewhere, or there is no elsewhere.
    if (pin === undefined) return server.pool === DEDICATED || this.#general.length === 0;
    return !this.#takers.some(({ state }) => this.mayTake(room, state));
  }

  /**
   * Of those that may have it and are not full, the one with the fewest rooms. A pin that nobody can keep is better
   * broken than the room down.
   */
  leastFor(room: RoomKey): Tally | undefined {
    const allowed = this.isPinned(room) ? this.#takers.filter(({ state }) => this.mayTake(room, state)) : this.#general;
    const candidates = allowed.length > 0 ? allowed : this.#takers;
    return (
      least(
        candidates.filter((tally) => !isFull(tally)),
        byRooms,
      ) ?? least(candidates, byRooms)
    );
  }
}
