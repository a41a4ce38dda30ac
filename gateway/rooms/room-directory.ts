/** The rooms that this gateway follows, each with the channel number that frames of its members contain. */

import type { Millis, RoomKey } from "../../shared/ids.ts";
import type { Channel } from "../../shared/wire/frames.ts";
import { CatchUpQuestions, requestNumbers } from "./catch-up-questions.ts";
import { FollowedRoom, type FollowedRoomOptions } from "./followed-room.ts";
import type { UnackedBudget } from "./unacked-budget.ts";

export type DirectoryEntry = { readonly key: RoomKey; readonly channel: Channel; readonly room: FollowedRoom };

/** `isGated`: whether the application is asked for the first content of a room. */
type RoomDirectoryOptions = FollowedRoomOptions & {
  readonly roomLingerMs: number;
  readonly isGated?: ((room: RoomKey) => boolean) | undefined;
};

export class RoomDirectory {
  readonly #options: RoomDirectoryOptions;
  readonly #budget: UnackedBudget;
  readonly #rooms = new Map<RoomKey, DirectoryEntry>();
  /** Numbers are never reused: frames and answers on their way may still name a room that is no longer followed. */
  #lastChannel: Channel = 0;
  readonly #newRequest = requestNumbers();

  constructor(options: RoomDirectoryOptions, budget: UnackedBudget) {
    this.#options = options;
    this.#budget = budget;
  }

  get size(): number {
    return this.#rooms.size;
  }

  get(key: RoomKey): DirectoryEntry | undefined {
    return this.#rooms.get(key);
  }

  all(): IterableIterator<DirectoryEntry> {
    return this.#rooms.values();
  }

  open(key: RoomKey, now: Millis): DirectoryEntry {
    this.#lastChannel += 1;
    const parts = {
      channel: this.#lastChannel,
      budget: this.#budget,
      questions: new CatchUpQuestions(this.#options.gateway, this.#newRequest),
      isGated: this.#options.isGated?.(key),
    };
    const room = new FollowedRoom(this.#options, parts, now);
    const followed = { key, channel: this.#lastChannel, room };
    this.#rooms.set(key, followed);
    return followed;
  }

  /** Forgets rooms without members. They are kept for some time, because members may return. */
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
