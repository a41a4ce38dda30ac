/**
 * The rooms of one connection: which it has asked for, which it is in and under what channel, and which were
 * taken from it while frames that name them were still on their way.
 *
 * Most connections are in one room, and there are very many of them: a short list is looked through, where maps
 * would weigh more than all else that an idle connection holds.
 */

import type { ClientId, Millis, RoomKey } from "../../shared/ids.ts";
import type { Channel, Rights } from "../../shared/wire/frames.ts";
import type { EditsSeen } from "../limits/rate-limit.ts";

export type JoinedRoom = { readonly room: RoomKey; readonly channel: Channel; readonly client: ClientId; readonly rights: Rights } & EditsSeen;

/** `request`: the newest join's. `joined`: what an earlier one gave, which holds until the new one is answered. */
type Entry = { room: RoomKey; request: number; joined: JoinedRoom | undefined };

export class SessionRooms {
  readonly #roomsMax: number;
  #entries: readonly Entry[] = [];
  /** The newest ones: older frames are no longer on their way. */
  #takenAway: readonly Channel[] = NONE;

  constructor(roomsMax: number) {
    this.#roomsMax = roomsMax;
  }

  /** False: one room too many. */
  ask(room: RoomKey, request: number): boolean {
    const entry = this.#entryOf(room);
    if (entry !== undefined) entry.request = request;
    else if (this.#entries.length < this.#roomsMax) this.#entries = this.#entries.concat({ room, request, joined: undefined }); // push(), and spreading, would make room for sixteen more.
    else return false;
    return true;
  }

  joined({ room, channel, client, rights }: Omit<JoinedRoom, keyof EditsSeen>, now: Millis): void {
    const entry = this.#entryOf(room);
    if (entry === undefined) return; // Left or taken away meanwhile.
    const { first, through } = entry.joined?.client === client ? entry.joined : NOTHING_SEEN;
    entry.room = room; // The same text, which its members share.
    entry.joined = { room, channel, client, rights, joinedAt: now, first, through };
    if (this.#takenAway.includes(channel)) this.#takenAway = this.#takenAway.filter((taken) => taken !== channel);
  }

  /** A room joined before keeps its channel: edits sent meanwhile name it in good faith. */
  joinRefused(room: RoomKey): void {
    if (this.#entryOf(room)?.joined === undefined) this.#remove(room);
  }

  on(channel: Channel): JoinedRoom | "taken-away" | undefined {
    for (const { joined } of this.#entries) if (joined?.channel === channel) return joined;
    return this.#takenAway.includes(channel) ? "taken-away" : undefined;
  }

  leave({ room }: JoinedRoom): void {
    this.#remove(room);
  }

  /** The client has not asked for it: frames that it sent before it knew are to be passed over. */
  takeAway(room: RoomKey): void {
    const joined = this.#entryOf(room)?.joined;
    this.#remove(room);
    if (joined !== undefined) this.#takenAway = [...this.#takenAway, joined.channel].slice(-this.#roomsMax);
  }

  all(): readonly Readonly<Entry>[] {
    return this.#entries;
  }

  #entryOf(room: RoomKey): Entry | undefined {
    return this.#entries.find((entry) => entry.room === room);
  }

  #remove(room: RoomKey): void {
    this.#entries = this.#entries.filter((entry) => entry.room !== room);
  }
}

const NONE: readonly Channel[] = [];
const NOTHING_SEEN = { first: 1, through: 0 };
