/**
 * Finds rooms that no longer need a server of the pool `dedicated`, because they have been far below the hot threshold
 * for a long time. A room moves to the pool at the threshold and counts as cool at half of it, so that it does not move
 * back and forth.
 */

import type { Millis, RoomKey } from "../shared/ids.ts";
import { DEDICATED, type ObservedWorld } from "./plan.ts";

export type CooledRoomsOptions = { readonly hotShare: number; readonly hotRoomCalmMs: number };

/** As a share of the hot threshold. */
const COOL_SHARE = 1 / 2;

export class CooledRooms {
  readonly #options: CooledRoomsOptions;
  #calmSince: ReadonlyMap<RoomKey, Millis> = new Map();

  constructor(options: CooledRoomsOptions) {
    this.#options = options;
  }

  /** Call at short intervals with the current world: changes between two calls are not noticed. */
  receiveLook({ servers, rooms, shares }: ObservedWorld, now: Millis): ReadonlySet<RoomKey> {
    const { hotShare, hotRoomCalmMs } = this.#options;
    const dedicated = new Set(servers.filter(({ pool }) => pool === DEDICATED).map(({ server }) => server));
    const calmSince = new Map<RoomKey, Millis>();
    if (dedicated.size > 0) {
      for (const [room, { owner }] of rooms) {
        if (dedicated.has(owner) && (shares.get(room) ?? 0) < hotShare * COOL_SHARE) calmSince.set(room, this.#calmSince.get(room) ?? now);
      }
    }
    this.#calmSince = calmSince;
    return new Set([...calmSince].filter(([, since]) => now - since >= hotRoomCalmMs).map(([room]) => room));
  }

  /** Other leaders decided since the last call, so the times start again. */
  forget(): void {
    this.#calmSince = new Map();
  }
}
