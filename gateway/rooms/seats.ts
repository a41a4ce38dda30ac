/**
 * Decides who may join a room that is full or over its budget: only a client that has a seat in it. A seat may still be
 * counted for a lost connection of the client, or at the gateway that the client has left. Rules SEAT1 to SEAT5.
 */

import { type ClientId, type Position, type RoomKey, START } from "../../shared/ids.ts";
import type { Quotas } from "../limits/quotas.ts";
import type { PresenceRelayHost } from "../presence/presence-relay-host.ts";

type SeatsPorts = {
  readonly quotas: Pick<Quotas, "isRoomFull" | "isRoomFullHere" | "isOverBudget">;
  readonly presence: Pick<PresenceRelayHost, "knows" | "isFullFor">;
  /** Number of the client's connections to the room on this gateway. */
  readonly connectionCountOf: (room: RoomKey, client: ClientId) => number;
};

/** `position`: the client has the room's edits up to this position. START: the client is new, or has lost them. */
type JoiningClient = { readonly client: ClientId; readonly position: Position };

/** Maximum number of connections of a client in a full room: the current one, and lost ones that have not timed out. */
const CONNECTIONS_MAX = 3;

export class Seats {
  readonly #ports: SeatsPorts;

  constructor(ports: SeatsPorts) {
    this.#ports = ports;
  }

  /** The limit that excludes the client. Undefined: it may join. */
  limitOf(room: RoomKey, joining: JoiningClient): "room" | "room-budget" | undefined {
    const { quotas, presence } = this.#ports;
    if (quotas.isRoomFull(room) && !this.#hasSeat(room, joining)) return "room";
    const isHeldBack = presence.isFullFor(room, joining.client) ?? (isNew(joining) && quotas.isOverBudget(room));
    return isHeldBack ? "room-budget" : undefined;
  }

  /**
   * A client has a seat if the room's presence knows it. If this gateway has no presence of the room, a client that
   * names a position has a seat. Any client can name a position, so positions admit no more clients than the room's
   * limit.
   */
  #hasSeat(room: RoomKey, joining: JoiningClient): boolean {
    const { quotas, presence, connectionCountOf } = this.#ports;
    if (presence.knows(room, joining.client)) return connectionCountOf(room, joining.client) < CONNECTIONS_MAX;
    return !isNew(joining) && !quotas.isRoomFullHere(room);
  }
}

function isNew({ position }: JoiningClient): boolean {
  return position.epoch === START.epoch;
}
