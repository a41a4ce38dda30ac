/** One page of all open rooms, of what each room server has told of its own. */

import { compareListed, type ListedRoom, type RoomCursor, type RoomListAnswer } from "../../shared/bus/fleet-messages.ts";
import { parseRoomKey, type RoomKey } from "../../shared/ids.ts";

/** `next`: where the next page begins; absent on the last. `servers`: how many have answered. */
export type RoomPage = {
  readonly rooms: readonly ListedRoom[];
  readonly matching: number;
  readonly servers: number;
  readonly next?: RoomCursor;
};

/** `answers`: of one room more than `limit` each, where they have as many. */
export function pageOf(answers: readonly RoomListAnswer[], limit: number): RoomPage {
  const byRoom = new Map<RoomKey, ListedRoom>();
  for (const listed of answers.flatMap(({ rooms }) => rooms)) {
    const other = byRoom.get(listed.room); // While a room is handed over both may have it: the later term is its owner's.
    if (other === undefined || other.epoch < listed.epoch) byRoom.set(listed.room, listed);
  }
  const all = [...byRoom.values()].sort(compareListed);
  const rooms = all.slice(0, limit);
  const last = rooms.at(-1);
  const next = all.length > limit && last !== undefined ? { participants: last.participants, room: last.room } : undefined;
  return {
    rooms,
    matching: answers.reduce((sum, { matching }) => sum + matching, 0),
    servers: answers.length,
    ...(next === undefined ? {} : { next }),
  };
}

/** As a query has it: participants, a colon, the room's key. */
export function cursorText({ participants, room }: RoomCursor): string {
  return `${participants}:${room}`;
}

export function parseCursor(text: string): RoomCursor | undefined {
  const [, participants, key = ""] = /^(\d{1,9}):(.+)$/.exec(text) ?? [];
  const room = parseRoomKey(key);
  return participants === undefined || room === undefined ? undefined : { participants: Number(participants), room };
}
