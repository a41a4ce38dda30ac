import { expect, test } from "vitest";

import type { RoomKey } from "../../shared/ids.ts";
import { RoomCosts } from "../room-server.ts";

const [hot, cool] = ["acme.hot" as RoomKey, "acme.cool" as RoomKey];

function costsBeside(presence: Map<RoomKey, number>) {
  const costs = new RoomCosts({
    isHere: (room) => presence.has(room),
    eachCost: (receive) => presence.forEach((cost, room) => receive(room, cost)),
  });
  const all = (): [RoomKey, number][] => {
    const received: [RoomKey, number][] = [];
    costs.each((room, cost) => void received.push([room, cost]));
    return received;
  };
  return { costs, all };
}

test("[COST1] the cost of a room is the sum of its presence, records, edits and KiB of records", () => {
  const presence = new Map([
    [hot, 10],
    [cool, 3],
  ]);
  const { costs, all } = costsBeside(presence);
  costs.receiveRecord(hot, 20, 512);
  costs.receiveRecord(hot, 1, 4_608);
  expect(all()).toEqual([
    [hot, 38],
    [cool, 3],
  ]);
});

test("[COST2] a room that left this server costs nothing, and starts at zero when it returns", () => {
  const presence = new Map([[hot, 10]]);
  const { costs, all } = costsBeside(presence);
  costs.receiveRecord(hot, 20, 1_024);
  presence.delete(hot);
  expect(all()).toEqual([]);
  presence.set(hot, 1);
  expect(all()).toEqual([[hot, 1]]);
});
