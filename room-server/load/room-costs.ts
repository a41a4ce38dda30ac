/**
 * What each room has cost this server since it is here, in any one unit: its presence as the presence counts it, each
 * record and each edit as much as a state. Presence begins and ends with a room's ownership, so it says which are here.
 */

import type { RoomKey } from "../../shared/ids.ts";

export class RoomCosts {
  readonly #presence: () => Iterable<readonly [RoomKey, number]>;
  readonly #edits = new Map<RoomKey, number>();

  constructor(presence: () => Iterable<readonly [RoomKey, number]>) {
    this.#presence = presence;
  }

  receiveRecord(room: RoomKey, edits: number): void {
    this.#edits.set(room, (this.#edits.get(room) ?? 0) + 1 + edits);
  }

  all(): ReadonlyMap<RoomKey, number> {
    const presence = new Map(this.#presence());
    for (const room of this.#edits.keys()) if (!presence.has(room)) this.#edits.delete(room);
    for (const [room, cost] of presence) presence.set(room, cost + (this.#edits.get(room) ?? 0));
    return presence;
  }
}
