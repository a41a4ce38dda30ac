import { expect, test } from "vitest";

import type { Millis, RoomKey, UnixMillis, UserId } from "../../shared/ids.ts";
import { recordOf, SCORING } from "../testing/records.ts";
import { BoardRoom } from "./board-room.ts";
import { PassRooms } from "./pass-rooms.ts";
import { decodeReceived } from "./received.ts";

const NOON = Date.UTC(2026, 6, 1, 12) as UnixMillis;
const OPTIONS = { boardPendingEditsMax: 40, boardRoomsMax: 8, boardOpeningsMax: 64 };
const NOW = 0 as Millis;

/** The rooms' boards are being looked up, so the entries that they receive stay pending. */
function begin() {
  const world = { countedPartitions: 1 };
  const rooms = new PassRooms(OPTIONS, () => world.countedPartitions);
  const receiveEntries = (name: string, edits: number): BoardRoom => {
    const key = `acme.${name}` as RoomKey;
    const one = { user: "ann" as UserId, bytes: 1, time: NOON };
    const bytes = recordOf(
      1,
      Array.from({ length: edits }, () => one),
    );
    const decoded = decodeReceived("edits", { room: key, streamSeq: 1, time: NOON, bytes });
    const room = new BoardRoom(key, { ...SCORING, boardCheckpointMsMax: 1_000 });
    rooms.add(room);
    room.receiveInput({ kind: "open" }, NOW);
    if (decoded.kind === "received") {
      rooms.receiveEntries(decoded.received.entries);
      room.receiveInput({ kind: "received", received: decoded.received }, NOW);
    }
    return room;
  };
  return { world, rooms, receiveEntries };
}

test.each([
  { counted: 1, pressed: 5, full: 8 },
  { counted: 2, pressed: 3, full: 4 },
])(
  "[PROOM1] a process that counts $counted partitions holds at most $full rooms of each, and forgets quiet rooms from $pressed on",
  ({ counted, pressed, full }) => {
    const { world, rooms, receiveEntries } = begin();
    world.countedPartitions = counted;
    const seen = Array.from({ length: full }, (_, index) => {
      receiveEntries(`room-${index}`, 1);
      return [rooms.isPressed, rooms.isFull];
    });
    expect(seen).toEqual(seen.map((_, index) => [index + 1 >= pressed, index + 1 >= full]));
  },
);

test("[PROOM2] a second partition in the process halves the edits that each partition may have pending", () => {
  const { world, rooms, receiveEntries } = begin();
  receiveEntries("notes", 20);
  expect(rooms.isFull).toBe(false);
  world.countedPartitions = 2;
  expect(rooms.isFull).toBe(true);
});

test("[PROOM3] rooms that are set aside do not count against the maximum of rooms", () => {
  const { rooms, receiveEntries } = begin();
  for (let index = 0; index < 20; index++) {
    const room = receiveEntries(`aside-${index}`, 1);
    room.receiveInput({ kind: "undecodable", cause: new Error("it does not decode") }, NOW);
    rooms.settle(room);
  }
  expect([rooms.size, rooms.isPressed, rooms.isFull]).toEqual([20, false, false]);
  for (let index = 0; index < 8; index++) receiveEntries(`room-${index}`, 1);
  expect([rooms.isPressed, rooms.isFull]).toEqual([true, true]);
});
