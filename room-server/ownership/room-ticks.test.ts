import { expect, test } from "vitest";

import type { TickUrgency } from "../rooms/owned-room.ts";
import { RoomTicks } from "./room-ticks.ts";

test("[TCK1] rooms are ticked by their urgency, and a room whose work has ended is ticked no more", () => {
  const ticks = new RoomTicks<{ tickUrgency: TickUrgency }>(new Map());
  const [urgent, low] = [{ tickUrgency: "soon" }, { tickUrgency: "low-priority" }] as { tickUrgency: TickUrgency }[];
  ticks.receiveUrgency(urgent!, "soon");
  ticks.receiveUrgency(low!, "low-priority");
  const due = () => {
    const all: string[] = [];
    for (let tick = 0; tick < 5; tick++) {
      ticks.beginTick();
      for (const room of ticks.dueRooms()) all.push(room === urgent ? "u" : "l");
    }
    return all.join("");
  };
  expect(due()).toBe("uuuuul");
  urgent!.tickUrgency = "low-priority";
  expect(due()).toBe("l");
  urgent!.tickUrgency = "soon";
  expect(due(), "until it reports its work again").toBe("l");
  low!.tickUrgency = "never";
  expect(due(), "its last tick").toBe("l");
  low!.tickUrgency = "low-priority";
  expect(due()).toBe("");
});

test("[TCK2] each of many rooms has one turn in 20 ticks, and no tick has more than its share", () => {
  const rooms = new Map(Array.from({ length: 1_010 }, (_, key) => [key, { tickUrgency: "never" as TickUrgency }]));
  const ticks = new RoomTicks(rooms);
  const turns = Array.from({ length: 20 }, () => ticks.beginTick());
  expect(turns.every(({ length }) => length === 50 || length === 51)).toBe(true);
  expect(new Set(turns.flat())).toEqual(new Set(rooms.values()));
});
