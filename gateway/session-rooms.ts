/**
 * The rooms of one connection: which it has asked for, which it is in and under what channel, and which were
 * taken from it while frames that name them were still on their way.
 */

import type { ClientId, Millis, RoomKey } from "../shared/ids.ts";
import type { Channel, Rights } from "../shared/wire/frames.ts";
import type { EditsSeen } from "./rate-limit.ts";

export type JoinedRoom = { readonly room: RoomKey; readonly channel: Channel; readonly client: ClientId; readonly rights: Rights; readonly seen: EditsSeen };

/** `request`: the newest join's. `joined`: what an earlier one gave, which holds until the new one is answered. */
type Entry = { readonly request: number; readonly joined: JoinedRoom | undefined };

export class SessionRooms {
  readonly #roomsMax: number;
  readonly #rooms = new Map<RoomKey, Entry>();
  readonly #channels = new Map<Channel, JoinedRoom>();
  /** The newest ones: older frames are no longer on their way. */
  readonly #takenAway = new Set<Channel>();

  constructor(roomsMax: number) {
    this.#roomsMax = roomsMax;
  }

  /** False: one room too many. */
  ask(room: RoomKey, request: number): boolean {
    const entry = this.#rooms.get(room);
    if (entry === undefined && this.#rooms.size >= this.#roomsMax) return false;
    this.#rooms.set(room, { request, joined: entry?.joined });
    return true;
  }

  joined(joined: Omit<JoinedRoom, "seen">, now: Millis): void {
    const before = this.#rooms.get(joined.room);
    if (before === undefined) return; // Left or taken away meanwhile.
    const through = before.joined?.client === joined.client ? before.joined.seen.through : 0;
    const room: JoinedRoom = { ...joined, seen: { joinedAt: now, through } };
    this.#rooms.set(joined.room, { request: before.request, joined: room });
    this.#channels.set(joined.channel, room);
    this.#takenAway.delete(joined.channel);
  }

  /** A room joined before keeps its channel: edits sent meanwhile name it in good faith. */
  joinRefused(room: RoomKey): void {
    if (this.#rooms.get(room)?.joined === undefined) this.#rooms.delete(room);
  }

  on(channel: Channel): JoinedRoom | "taken-away" | undefined {
    return this.#channels.get(channel) ?? (this.#takenAway.has(channel) ? "taken-away" : undefined);
  }

  leave({ room, channel }: JoinedRoom): void {
    this.#channels.delete(channel);
    this.#rooms.delete(room);
  }

  /** The client has not asked for it: frames that it sent before it knew are to be passed over. */
  takeAway(room: RoomKey): void {
    const joined = this.#rooms.get(room)?.joined;
    this.#rooms.delete(room);
    if (joined === undefined) return;
    this.#channels.delete(joined.channel);
    this.#takenAway.add(joined.channel);
    const [oldest] = this.#takenAway;
    if (oldest !== undefined && this.#takenAway.size > this.#roomsMax) this.#takenAway.delete(oldest);
  }

  all(): [RoomKey, Entry][] {
    return [...this.#rooms];
  }
}
