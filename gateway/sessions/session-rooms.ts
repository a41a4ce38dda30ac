/**
 * The rooms of one connection: the rooms that it has asked to join, the joined rooms with their channels, and the
 * rooms that it has left or lost. Frames that name a channel of the latter may still be on their way.
 */

import type { ClientId, Millis, RoomKey } from "../../shared/ids.ts";
import type { Channel, Rights } from "../../shared/wire/frames.ts";
import type { EditsSeen } from "../limits/connection-rates.ts";

/** `request`: of the newest JOIN. */
type AskedRoom = { readonly room: RoomKey; request: number; readonly channel: undefined };
/** The values of a join apply until the next one is answered. */
export type JoinedRoom = {
  readonly room: RoomKey;
  request: number;
  readonly channel: Channel;
  readonly client: ClientId;
  readonly rights: Rights;
} & EditsSeen;
export type SessionRoom = AskedRoom | JoinedRoom;

/**
 * The lists never change, but a room's `request` and the edits seen change in place. `ended`: only the newest rooms,
 * because frames for older ones have arrived.
 */
export type SessionRooms = { readonly rooms: readonly SessionRoom[]; readonly ended: readonly JoinedRoom[] };

export const NO_ROOMS: SessionRooms = { rooms: [], ended: [] };
const NOTHING_SEEN = { first: 1, through: 0 };

export function findRoom(rooms: SessionRooms, room: RoomKey): SessionRoom | undefined {
  return rooms.rooms.find((kept) => kept.room === room);
}

export function joinedOn(rooms: SessionRooms, channel: Channel): JoinedRoom | undefined {
  for (const room of rooms.rooms) if (room.channel === channel) return room;
  return undefined;
}

export function endedOn(rooms: SessionRooms, channel: Channel): JoinedRoom | undefined {
  return rooms.ended.find((room) => room.channel === channel);
}

/** Undefined: the connection would exceed `roomsMax`. */
export function askFor(rooms: SessionRooms, room: RoomKey, request: number, roomsMax: number): SessionRooms | undefined {
  const before = findRoom(rooms, room);
  if (before !== undefined) {
    before.request = request;
    return rooms;
  }
  return rooms.rooms.length < roomsMax ? { ...rooms, rooms: [...rooms.rooms, { room, request, channel: undefined }] } : undefined;
}

type Joined = Pick<JoinedRoom, "room" | "channel" | "client" | "rights">;

export function withJoined(rooms: SessionRooms, { room, channel, client, rights }: Joined, now: Millis): SessionRooms {
  const before = findRoom(rooms, room);
  if (before === undefined) return rooms; // The session left the room, or lost it, before the answer.
  const { first, through } = before.channel !== undefined && before.client === client ? before : NOTHING_SEEN;
  const joined = { room, request: before.request, channel, client, rights, joinedAt: now, first, through }; // All members share this room key in memory.
  return {
    rooms: rooms.rooms.map((kept) => (kept === before ? joined : kept)),
    ended: rooms.ended.filter((room) => room.channel !== channel),
  };
}

/** A room that was joined before keeps its channel: the client may have sent edits on it. */
export function withRefused(rooms: SessionRooms, room: RoomKey): SessionRooms {
  return findRoom(rooms, room)?.channel === undefined ? without(rooms, room) : rooms;
}

/**
 * The session leaves or loses the room. Frames that the client sends before it receives LEFT are ignored, on at most
 * `channelsMax` channels.
 */
export function withEnded(rooms: SessionRooms, room: RoomKey, channelsMax: number): SessionRooms {
  const before = findRoom(rooms, room);
  const ended = before?.channel === undefined ? rooms.ended : [...rooms.ended, before].slice(-channelsMax);
  return { rooms: without(rooms, room).rooms, ended };
}

function without(rooms: SessionRooms, room: RoomKey): SessionRooms {
  return { ...rooms, rooms: rooms.rooms.filter((kept) => kept.room !== room) };
}
