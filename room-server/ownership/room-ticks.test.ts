import { expect, test } from "vitest";

import type { TickUrgency } from "../rooms/owned-room.ts";
import { RoomTicks } from "./room-ticks.ts";

test("[TCK1] rooms are ticked by their urgency, and a room whose work has ended is ticked no more", () => {
  const ticks = new RoomTicks<{ tickUrgency: TickUrgency }>();
  const [urgent, low] = [{ tickUrgency: "soon" }, { tickUrgency: "low-priority" }] as { tickUrgency: TickUrgency }[];
  ticks.receiveUrgency(urgent!, "soon");
  ticks.receiveUrgency(low!, "low-priority");
  const due = () => {
    const all: string[] = [];
    for (let tick = 0; tick < 5; tick++) if (!ticks.beginTick()) for (const room of ticks.dueRooms()) all.push(room === urgent ? "u" : "l");
    return all.join("");
  };
  expect(due()).toBe("uuuuul");
  urgent!.tickUrgency = "low-priority";
  expect(due()).toBe("l");
  urgent!.tickUrgency = "soon";
  expect(due(), "until it reports its work again").toBe("l");
  low!.tickUrgency = "never";
  expect(due(), "every room is ticked by the caller").toBe("");
  due();
  low!.tickUrgency = "low-priority";
  expect(due()).toBe("");
});
