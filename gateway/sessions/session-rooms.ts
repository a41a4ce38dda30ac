/**
 * The rooms of one connection: which it has asked for, which it is in and under what channel, and which were
 * taken from it while frames that name them were still on their way.
 *
 * Most connections are in one room, and there are very many of them: what is known of a room is one object, held without
 * a list around it. Maps would weigh more than all else that an idle connection holds.
 */

import type { ClientId, Millis, RoomKey } from "../../shared/ids.ts";
import type { Channel, Rights } from "../../shared/wire/frames.ts";
import type { EditsSeen } from "../limits/rate-limit.ts";

/** It is asked for. `request`: the newest join's. */
type AskedRoom = { readonly room: RoomKey; request: number; readonly channel: undefined };
/** What the join gave holds until the next one is answered. */
export type JoinedRoom = {
  readonly room: RoomKey;
  request: number;
  readonly channel: Channel;
  readonly client: ClientId;
  readonly rights: Rights;
} & EditsSeen;
export type SessionRoom = AskedRoom | JoinedRoom;

export class SessionRooms {
  /** A list only where there is not just one. */
  #rooms: SessionRoom | readonly SessionRoom[] = NONE;
  /** The newest ones: older frames are no longer on their way. */
  #takenAway: readonly Channel[] = NONE;

  /** False: there would be more than `roomsMax`. */
  ask(room: RoomKey, request: number, roomsMax: number): boolean {
    const before = this.get(room);
    if (before !== undefined) before.request = request;
    else if (this.all().length < roomsMax) this.#keep([...this.all(), { room, request, channel: undefined }]);
    else return false;
    return true;
  }

  joined({ room, channel, client, rights }: Pick<JoinedRoom, "room" | "channel" | "client" | "rights">, now: Millis): void {
    const before = this.get(room);
    if (before === undefined) return; // Left or taken away meanwhile.
    const { first, through } = before.channel !== undefined && before.client === client ? before : NOTHING_SEEN;
    const joined = { room, request: before.request, channel, client, rights, joinedAt: now, first, through }; // The room's text is one that its members share.
    this.#keep(this.all().map((kept) => (kept === before ? joined : kept)));
    if (this.#takenAway.includes(channel)) this.#takenAway = this.#takenAway.filter((taken) => taken !== channel);
  }

  /** A room joined before keeps its channel: edits sent meanwhile name it in good faith. */
  joinRefused(room: RoomKey): void {
    if (this.get(room)?.channel === undefined) this.leave(room);
  }

  on(channel: Channel): JoinedRoom | "taken-away" | undefined {
    for (const room of this.all()) if (room.channel === channel) return room;
    return this.#takenAway.includes(channel) ? "taken-away" : undefined;
  }

  leave(room: RoomKey): void {
    this.#keep(this.all().filter((kept) => kept.room !== room));
  }

  /** The client has not asked for it: frames that it sent before it knew are to be passed over. So many channels are remembered. */
  takeAway(room: RoomKey, channelsMax: number): void {
    const channel = this.get(room)?.channel;
    this.leave(room);
    if (channel !== undefined) this.#takenAway = [...this.#takenAway, channel].slice(-channelsMax);
  }

  get(room: RoomKey): SessionRoom | undefined {
    return this.all().find((kept) => kept.room === room);
  }

  all(): readonly SessionRoom[] {
    return "room" in this.#rooms ? [this.#rooms] : this.#rooms;
  }

  #keep(rooms: readonly SessionRoom[]): void {
    this.#rooms = rooms.length === 1 ? rooms[0]! : rooms;
  }
}

const NONE: readonly never[] = [];
const NOTHING_SEEN = { first: 1, through: 0 };
