/**
 * Which rooms need no server of the pool `dedicated` any more: those that have taken far less than what counts as hot
 * for so long that they will hardly be hot again at once. A room is moved there at one share and counts as cool at half of
 * it, so that one that stands near either is not moved to and fro.
 */

import type { Millis, RoomKey } from "../shared/ids.ts";
import { DEDICATED, type Observed } from "./world.ts";

export type CooledOptions = { readonly hotShare: number; readonly hotRoomCalmMs: number };

/** Of what counts as hot. */
const COOL_SHARE = 1 / 2;

export class Cooled {
  readonly #options: CooledOptions;
  #calmSince: ReadonlyMap<RoomKey, Millis> = new Map();

  constructor(options: CooledOptions) {
    this.#options = options;
  }

  /** Those of now. To be told of the world again and again: what happens in between is not known. */
  receiveLook({ servers, rooms, shares }: Observed, now: Millis): ReadonlySet<RoomKey> {
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

  /** It has not looked for a while: others decided meanwhile. */
  forget(): void {
    this.#calmSince = new Map();
  }
}
