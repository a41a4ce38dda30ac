import { expect, test } from "vitest";

import type { TickUrgency } from "../rooms/owned-room.ts";
import type { Millis } from "../../shared/ids.ts";
import { RoomTicks } from "./room-ticks.ts";

const OPTIONS = { heartbeatMs: 200 };

test("[TCK1] rooms are ticked by their urgency, and a room whose work has ended is ticked no more", () => {
  const ticks = new RoomTicks<{ tickUrgency: TickUrgency }>(new Map(), OPTIONS);
  const [urgent, low] = [{ tickUrgency: "soon" }, { tickUrgency: "low-priority" }] as { tickUrgency: TickUrgency }[];
  ticks.receiveUrgency(urgent!, "soon");
  ticks.receiveUrgency(low!, "low-priority");
  const due = () => {
    const all: string[] = [];
    for (let tick = 0; tick < 5; tick++) {
      ticks.beginTick(0 as Millis);
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
  const ticks = new RoomTicks(rooms, OPTIONS);
  const turns = Array.from({ length: 20 }, () => ticks.beginTick(0 as Millis));
  expect(turns.every(({ length }) => length === 50 || length === 51)).toBe(true);
  expect(new Set(turns.flat())).toEqual(new Set(rooms.values()));
});

test("[TCK3] after a pause as long as three heartbeats, each room is in doubt once, although rooms end when they are checked", () => {
  const rooms = new Map(Array.from({ length: 30 }, (_, key) => [key, { key, tickUrgency: "never" as TickUrgency }]));
  const all = [...rooms.values()];
  const ticks = new RoomTicks(rooms, OPTIONS);
  const doubtedIn = (ticksAt: readonly number[]) =>
    ticksAt.flatMap((at) => {
      ticks.beginTick(at as Millis);
      const doubted = ticks.takeDoubted();
      expect(doubted.length).toBeLessThan(3);
      for (const { key } of doubted) rooms.delete(key);
      return doubted;
    });
  expect(doubtedIn([0, 50, 650])).toEqual([]);
  const doubted = doubtedIn(Array.from({ length: 40 }, (_, tick) => 1_251 + 50 * tick));
  expect(doubted.length).toBe(30);
  expect(new Set(doubted)).toEqual(new Set(all));
});
