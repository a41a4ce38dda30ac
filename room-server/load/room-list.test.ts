import { expect, test } from "vitest";

import type { RoomListRequest } from "../../shared/bus/fleet-messages.ts";
import { type RoomId, type RoomKey, roomKey, type ServerId, type TenantId } from "../../shared/ids.ts";
import { largestRooms, type ListedRooms, listRooms } from "./room-list.ts";

const key = (tenant: string, room: string): RoomKey => roomKey(tenant as TenantId, room as RoomId);
const SIZES = new Map([
  [key("acme", "Notes"), 3],
  [key("acme", "big"), 400],
  [key("beta", "notes 2"), 3],
  [key("acme", "quiet"), 0],
]);
let described = 0;
const rooms: ListedRooms = {
  eachSize: (receive) => SIZES.forEach((participants, room) => receive(room, participants)),
  accountOf: (room) => {
    described += 1;
    return {
      epoch: 7,
      mode: "flat",
      shed: 2,
      participants: SIZES.get(room)!,
      presencePerSecond: 30,
      presenceBytes: 0,
      gateways: { "gw-1": 2, "gw-2": 1 },
      statesReceived: 0,
      deltasPublished: 0,
      deltaBytesPublished: 0,
    };
  },
};
const list = (question: Partial<RoomListRequest>) =>
  listRooms("rs-1" as ServerId, rooms, (room) => (room === key("acme", "big") ? 12.5 : 0), { search: "", limit: 10, ...question });
const names = (question: Partial<RoomListRequest>) => list(question).rooms.map(({ room }) => room);

test("[RLI1] rooms are sorted by participants, then by name; each is described as its owner knows it", () => {
  expect(names({})).toEqual([key("acme", "big"), key("acme", "Notes"), key("beta", "notes 2"), key("acme", "quiet")]);
  expect(list({}).rooms[0]).toEqual({
    room: "acme.big",
    server: "rs-1",
    epoch: 7,
    mode: "flat",
    participants: 400,
    gateways: 2,
    editsPerSecond: 12.5,
    heldBack: 2,
  });
});

test("[RLI2] pages follow each other without a missing or repeated room, and only the rooms of the page are described", () => {
  described = 0;
  const first = list({ limit: 2 });
  expect([first.matching, described]).toEqual([4, 2]);
  const { room, participants } = first.rooms.at(-1)!;
  const second = list({ limit: 2, after: { room, participants } });
  expect([...first.rooms, ...second.rooms].map((listed) => listed.room)).toEqual(names({}));
  expect(second.matching).toBe(4);
});

test("[RLI3] a tenant and a part of the name filter the list, ignoring case", () => {
  expect(names({ search: "notes" })).toEqual([key("acme", "Notes"), key("beta", "notes 2")]);
  expect(names({ search: "NOTES", tenant: "beta" })).toEqual([key("beta", "notes 2")]);
  expect(list({ search: "no such name" })).toEqual({ rooms: [], matching: 0 });
});

test("[RLI4] the rooms with most participants are described with their rate, and empty rooms are not", () => {
  const largest = (roomsMax: number) => largestRooms(rooms, () => 1.5, roomsMax).map(({ room, participants }) => [room, participants]);
  expect(largest(2)).toEqual([
    [key("acme", "big"), 400],
    [key("acme", "Notes"), 3],
  ]);
  expect(largest(10)).toHaveLength(3);
  expect(largestRooms(rooms, () => 1.5, 1)).toEqual([{ room: key("acme", "big"), participants: 400, editsPerSecond: 1.5, mode: "flat" }]);
});
