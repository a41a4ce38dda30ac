/**
 * The rooms of one connection: which it has asked for, which it is in and under what channel, and which were
 * taken from it while frames that name them were still on their way.
 *
 * Most connections are in one room, and there are very many of them: what is known of that room stands for all rooms,
 * without a list or anything else around it. Maps would weigh more than all else that an idle connection holds.
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

/** Lists never change; what is known of a room does, in its place. `takenAway`: the newest ones, for older frames are no longer on their way. */
export type SessionRooms = JoinedRoom | Several;
type Several = { readonly rooms: readonly SessionRoom[]; readonly takenAway: readonly Channel[] };

export const NO_ROOMS: SessionRooms = { rooms: [], takenAway: [] };
const NOTHING_SEEN = { first: 1, through: 0 };
const NONE: readonly never[] = [];

export function allOf(rooms: SessionRooms): readonly SessionRoom[] {
  return "rooms" in rooms ? rooms.rooms : [rooms];
}

export function findRoom(rooms: SessionRooms, room: RoomKey): SessionRoom | undefined {
  return allOf(rooms).find((kept) => kept.room === room);
}

export function roomOn(rooms: SessionRooms, channel: Channel): JoinedRoom | "taken-away" | undefined {
  for (const room of allOf(rooms)) if (room.channel === channel) return room;
  return takenFrom(rooms).includes(channel) ? "taken-away" : undefined;
}

/** Undefined: there would be more than `roomsMax`. */
export function askFor(rooms: SessionRooms, room: RoomKey, request: number, roomsMax: number): SessionRooms | undefined {
  const before = findRoom(rooms, room);
  if (before !== undefined) {
    before.request = request;
    return rooms;
  }
  const all = allOf(rooms);
  return all.length < roomsMax ? joinedTogether([...all, { room, request, channel: undefined }], takenFrom(rooms)) : undefined;
}

type Joined = Pick<JoinedRoom, "room" | "channel" | "client" | "rights">;

export function withJoined(rooms: SessionRooms, { room, channel, client, rights }: Joined, now: Millis): SessionRooms {
  const before = findRoom(rooms, room);
  if (before === undefined) return rooms; // Left or taken away meanwhile.
  const { first, through } = before.channel !== undefined && before.client === client ? before : NOTHING_SEEN;
  const joined = { room, request: before.request, channel, client, rights, joinedAt: now, first, through }; // The room's text is one that its members share.
  return joinedTogether(
    allOf(rooms).map((kept) => (kept === before ? joined : kept)),
    takenFrom(rooms).filter((taken) => taken !== channel),
  );
}

/** A room joined before keeps its channel: edits sent meanwhile name it in good faith. */
export function withRefused(rooms: SessionRooms, room: RoomKey): SessionRooms {
  return findRoom(rooms, room)?.channel === undefined ? without(rooms, room) : rooms;
}

export function without(rooms: SessionRooms, room: RoomKey): SessionRooms {
  return joinedTogether(
    allOf(rooms).filter((kept) => kept.room !== room),
    takenFrom(rooms),
  );
}

/** The client has not asked for it: frames that it sent before it knew are to be passed over. So many channels are remembered. */
export function withTakenAway(rooms: SessionRooms, room: RoomKey, channelsMax: number): SessionRooms {
  const channel = findRoom(rooms, room)?.channel;
  const taken = channel === undefined ? takenFrom(rooms) : [...takenFrom(rooms), channel].slice(-channelsMax);
  return joinedTogether(allOf(without(rooms, room)), taken);
}

function takenFrom(rooms: SessionRooms): readonly Channel[] {
  return "rooms" in rooms ? rooms.takenAway : NONE;
}

function joinedTogether(rooms: readonly SessionRoom[], takenAway: readonly Channel[]): SessionRooms {
  const [only] = rooms;
  return only?.channel !== undefined && rooms.length === 1 && takenAway.length === 0 ? only : { rooms, takenAway };
}
