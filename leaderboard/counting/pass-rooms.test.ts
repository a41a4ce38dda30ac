import { expect, test } from "vitest";

import type { RoomKey, UnixMillis, UserId } from "../../shared/ids.ts";
import { decodeReceived } from "./received.ts";
import { recordOf } from "../testing/records.ts";
import { PassRooms } from "./pass-rooms.ts";
import type { BoardRoom } from "./room-host.ts";

const NOON = Date.UTC(2026, 6, 1, 12) as UnixMillis;
const OPTIONS = { boardPendingEditsMax: 40, boardRoomsMax: 8, boardOpeningsMax: 64 };

/** Rooms in which what comes stays pending. What is named so stands aside. */
function roomOf(room: RoomKey): BoardRoom {
  let pending = 0;
  const made: Pick<BoardRoom, "room" | "pending" | "open" | "receive" | "isAside" | "canRetire"> = {
    room,
    isAside: room.startsWith("acme.aside"),
    canRetire: false,
    get pending() {
      return pending;
    },
    open: () => Promise.resolve(),
    receive: ({ entries }) => void (pending += entries),
  };
  return made as BoardRoom;
}

function begin() {
  const world = { countedPartitions: 1 };
  const rooms = new PassRooms(OPTIONS, { newRoom: roomOf, onFailure: () => {}, countedPartitions: () => world.countedPartitions });
  const receive = (room: string, edits: number): void => {
    const decoded = decodeReceived("edits", {
      room: `acme.${room}` as RoomKey,
      streamSeq: 1,
      time: NOON,
      bytes: recordOf(
        1,
        Array.from({ length: edits }, () => ({ user: "ann" as UserId, bytes: 1, time: NOON })),
      ),
    });
    if (decoded.kind === "received") rooms.receive(`acme.${room}` as RoomKey, decoded.received);
  };
  return { world, rooms, receive };
}

test.each([
  { counted: 1, pressed: 5, full: 8 },
  { counted: 2, pressed: 3, full: 4 },
])(
  "[PROOM1] where a process counts $counted of the partitions one may know $full rooms, and forgets quiet ones from $pressed on",
  ({ counted, pressed, full }) => {
    const { world, rooms, receive } = begin();
    world.countedPartitions = counted;
    const seen = Array.from({ length: full }, (_, index) => {
      receive(`room-${index}`, 1);
      return [rooms.isPressed, rooms.isFull];
    });
    expect(seen).toEqual(seen.map((_, index) => [index + 1 >= pressed, index + 1 >= full]));
  },
);

test("[PROOM2] a partition that the process takes beside another halves the edits that each may have pending", () => {
  const { world, rooms, receive } = begin();
  receive("notes", 20);
  expect(rooms.isFull).toBe(false);
  world.countedPartitions = 2;
  expect(rooms.isFull).toBe(true);
});

test("[PROOM3] rooms that stand aside take no place from those that are counted, however many they are", async () => {
  const { rooms, receive } = begin();
  for (let index = 0; index < 20; index++) receive(`aside-${index}`, 1);
  await Promise.resolve(); // Each is looked up.
  expect([rooms.size, rooms.isPressed, rooms.isFull]).toEqual([20, false, false]);
  for (let index = 0; index < 8; index++) receive(`room-${index}`, 1);
  expect([rooms.isPressed, rooms.isFull]).toEqual([true, true]);
});
