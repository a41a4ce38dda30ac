/**
 * Who may come into a room that is full, or that its owner holds back: nobody but those who have a place there already.
 * A seat may still be counted for the line that its client lost, or on the gateway that it left. Rules SEAT1 to SEAT5.
 */

import { type ClientId, type Position, type RoomKey, START } from "../../shared/ids.ts";
import type { Quotas } from "../limits/quotas.ts";
import type { PresenceHost } from "../presence/presence-host.ts";

export type SeatsPorts = {
  readonly quotas: Pick<Quotas, "isRoomFull" | "isRoomFullHere" | "isOverBudget">;
  readonly presence: Pick<PresenceHost, "knows" | "isFullFor">;
  /** Over how many connections of this gateway the client is in the room. */
  readonly linesOf: (room: RoomKey, client: ClientId) => number;
};

/** `position`: up to where its client has the room's edits; START: it was never there, or has lost them. */
export type Comer = { readonly client: ClientId; readonly position: Position };

/** Of a client in a full room: the one that it comes by, and lines that were lost, which last until nothing was heard for long. */
const LINES_MAX = 3;

export class Seats {
  readonly #ports: SeatsPorts;

  constructor(ports: SeatsPorts) {
    this.#ports = ports;
  }

  /** What keeps it out; undefined: it may come in. */
  limitOf(room: RoomKey, comer: Comer): "room" | "room-budget" | undefined {
    const { quotas, presence } = this.#ports;
    if (quotas.isRoomFull(room) && !this.#hasSeat(room, comer)) return "room";
    const isHeldBack = presence.isFullFor(room, comer.client) ?? (isNew(comer) && quotas.isOverBudget(room));
    return isHeldBack ? "room-budget" : undefined;
  }

  /**
   * It is known by the room's presence, or where that is not followed here by its position. Anybody can name a position,
   * so for a position's sake a gateway takes in no more than the room may have. Nor does anybody come as often as it likes.
   */
  #hasSeat(room: RoomKey, comer: Comer): boolean {
    const { quotas, presence, linesOf } = this.#ports;
    if (presence.knows(room, comer.client)) return linesOf(room, comer.client) < LINES_MAX;
    return !isNew(comer) && !quotas.isRoomFullHere(room);
  }
}

function isNew({ position }: Comer): boolean {
  return position.epoch === START.epoch;
}
