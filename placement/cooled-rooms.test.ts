import { expect, test } from "vitest";

import type { Millis, RoomKey, ServerId } from "../shared/ids.ts";
import { CooledRooms } from "./cooled-rooms.ts";

const ROOM = "acme.hot" as RoomKey;
const at = (ms: number) => ms as Millis;
const look = (share: number, owner = "d") => ({
  servers: [
    { server: "a", pool: "" },
    { server: "d", pool: "dedicated" },
  ].map(({ server, pool }) => ({ server: server as ServerId, host: server, zone: "", pool, draining: false, used: 0 })),
  rooms: new Map([[ROOM, { owner: owner as ServerId }]]),
  pins: new Map(),
  shares: new Map([[ROOM, share]]),
});
const cooled = () => new CooledRooms({ hotShare: 0.3, hotRoomCalmMs: 1_000 });

test("[CLD1] a room in the dedicated pool has cooled after it used less than half of the hot share for the whole cool-down time", () => {
  const rooms = cooled();
  const found = (share: number, ms: number) => [...rooms.receiveLook(look(share), at(ms))];
  expect([found(0.5, 0), found(0.14, 100), found(0.14, 1_099)]).toEqual([[], [], []]);
  expect(found(0.14, 1_100)).toEqual([ROOM]);
  expect([found(0.16, 1_200), found(0, 1_300), found(0, 2_299)], "it was no longer calm: the time begins again").toEqual([[], [], []]);
  expect(found(0, 2_300)).toEqual([ROOM]);
});

test("[CLD2] time in another pool, or without observation, does not count as cool-down time", () => {
  const rooms = cooled();
  rooms.receiveLook(look(0, "a"), at(0));
  expect([...rooms.receiveLook(look(0), at(1_000))]).toEqual([]);
  rooms.forget();
  expect([...rooms.receiveLook(look(0), at(2_000))]).toEqual([]);
  expect([...rooms.receiveLook(look(0), at(3_000))]).toEqual([ROOM]);
});
