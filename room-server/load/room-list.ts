/**
 * One page of this server's rooms for an operations console, the rooms with most participants first. Only the rooms on
 * the page are described: a server may have thousands of rooms, and a console may request a page every two seconds.
 */

import {
  compareListed,
  type ListedRoom,
  type RoomCursor,
  type RoomListReply,
  type RoomListRequest,
  type RoomReport,
} from "../../shared/bus/fleet-messages.ts";
import type { VitalRoom } from "../../shared/bus/vitals.ts";
import { type RoomKey, roomOf, type ServerId, tenantOf } from "../../shared/ids.ts";

export type ListedRooms = {
  eachSize(receive: (room: RoomKey, participants: number) => void): void;
  accountOf(room: RoomKey): Omit<RoomReport, "server"> | undefined;
};

export function listRooms(
  server: ServerId,
  rooms: ListedRooms,
  editsPerSecondOf: (room: RoomKey) => number,
  { tenant, search, after, limit }: RoomListRequest,
): RoomListReply {
  const wanted = search.toLowerCase();
  const found: RoomCursor[] = [];
  let matching = 0;
  rooms.eachSize((room, participants) => {
    if (tenant !== undefined && tenantOf(room) !== tenant) return;
    if (wanted !== "" && !roomOf(room).toLowerCase().includes(wanted)) return;
    matching += 1;
    if (after === undefined || compareListed({ room, participants }, after) > 0) found.push({ room, participants });
  });
  const page = found.sort(compareListed).slice(0, limit);
  return {
    matching,
    rooms: page.flatMap(({ room, participants }) => describe(server, room, participants, rooms.accountOf(room), editsPerSecondOf(room))),
  };
}

/** The rooms with most participants, for the console's charts. Empty rooms are not among them. */
export function largestRooms(rooms: ListedRooms, editsPerSecondOf: (room: RoomKey) => number, roomsMax: number): VitalRoom[] {
  const largest: RoomCursor[] = [];
  rooms.eachSize((room, participants) => {
    const smallest = largest.at(-1);
    if (
      participants === 0 ||
      (largest.length === roomsMax && smallest !== undefined && compareListed({ room, participants }, smallest) > 0)
    )
      return;
    const at = largest.findIndex((other) => compareListed({ room, participants }, other) < 0);
    largest.splice(at === -1 ? largest.length : at, 0, { room, participants });
    if (largest.length > roomsMax) largest.pop();
  });
  return largest.flatMap(({ room, participants }) => {
    const account = rooms.accountOf(room);
    return account === undefined ? [] : [{ room, participants, editsPerSecond: editsPerSecondOf(room), mode: account.mode }];
  });
}

/** Empty for a room that is no longer here. `participants`: the number that it was sorted by. */
function describe(
  server: ServerId,
  room: RoomKey,
  participants: number,
  account: Omit<RoomReport, "server"> | undefined,
  editsPerSecond: number,
): ListedRoom[] {
  if (account === undefined) return [];
  const { epoch, mode, shed, gateways } = account;
  return [{ room, server, epoch, mode, participants, gateways: Object.keys(gateways).length, editsPerSecond, heldBack: shed }];
}
