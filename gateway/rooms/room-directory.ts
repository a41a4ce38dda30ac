/** The rooms that this gateway follows, each under a number that its members' frames name it by. */

import type { Millis, RoomKey } from "../../shared/ids.ts";
import type { Channel } from "../../shared/wire/frames.ts";
import { Room, type RoomOptions } from "./room.ts";
import type { UnackedBudget } from "./unacked.ts";

export type FollowedRoom = { readonly key: RoomKey; readonly channel: Channel; readonly room: Room };

export class RoomDirectory {
  readonly #options: RoomOptions & { readonly roomLingerMs: number };
  readonly #budget: UnackedBudget;
  readonly #rooms = new Map<RoomKey, FollowedRoom>();
  /** Never given twice: a frame on its way may still name a room that is no longer followed. */
  #lastChannel: Channel = 0;

  constructor(options: RoomOptions & { roomLingerMs: number }, budget: UnackedBudget) {
    this.#options = options;
    this.#budget = budget;
  }

  get size(): number {
    return this.#rooms.size;
  }

  get(key: RoomKey): FollowedRoom | undefined {
    return this.#rooms.get(key);
  }

  all(): IterableIterator<FollowedRoom> {
    return this.#rooms.values();
  }

  open(key: RoomKey, now: Millis): FollowedRoom {
    this.#lastChannel += 1;
    const followed = { key, channel: this.#lastChannel, room: new Room(this.#options, this.#lastChannel, this.#budget, now) };
    this.#rooms.set(key, followed);
    return followed;
  }

  /** Forgets the rooms that nobody was in for a while; whoever left may be back in a moment. */
  closeIdle(now: Millis): RoomKey[] {
    const closed: RoomKey[] = [];
    for (const { key, room } of this.#rooms.values()) {
      const since = room.idleSince;
      if (since === undefined || now - since < this.#options.roomLingerMs) continue;
      room.close();
      this.#rooms.delete(key);
      closed.push(key);
    }
    return closed;
  }
}
