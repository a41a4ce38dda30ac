/**
 * What each room has cost this server since it is here, in any one unit: its presence as the presence counts it, each
 * record and each edit as much as a state. Presence begins and ends with a room's ownership, so it says which are here.
 */

import type { RoomKey } from "../../shared/ids.ts";

export type PresenceCosts = { isHere(room: RoomKey): boolean; eachCost(tell: (room: RoomKey, cost: number) => void): void };

export class RoomCosts {
  readonly #presence: PresenceCosts;
  readonly #edits = new Map<RoomKey, number>();

  constructor(presence: PresenceCosts) {
    this.#presence = presence;
  }

  receiveRecord(room: RoomKey, edits: number): void {
    this.#edits.set(room, (this.#edits.get(room) ?? 0) + 1 + edits);
  }

  each(tell: (room: RoomKey, cost: number) => void): void {
    for (const room of this.#edits.keys()) if (!this.#presence.isHere(room)) this.#edits.delete(room);
    this.#presence.eachCost((room, cost) => tell(room, cost + (this.#edits.get(room) ?? 0)));
  }
}
