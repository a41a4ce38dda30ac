import { expect, test } from "vitest";

import type { RoomKey } from "../../shared/ids.ts";
import { RoomCosts } from "./room-costs.ts";

const [hot, cool] = ["acme.hot" as RoomKey, "acme.cool" as RoomKey];

test("[COST1] a room costs what its presence costs, and its records and edits", () => {
  const presence = new Map([[hot, 10], [cool, 3]]);
  const costs = new RoomCosts(() => presence);
  costs.receiveRecord(hot, 20);
  costs.receiveRecord(hot, 1);
  expect([...costs.all()]).toEqual([[hot, 33], [cool, 3]]);
});

test("[COST2] a room that is not here any more costs nothing, and begins anew when it is back", () => {
  const presence = new Map([[hot, 10]]);
  const costs = new RoomCosts(() => presence);
  costs.receiveRecord(hot, 20);
  presence.delete(hot);
  expect([...costs.all()]).toEqual([]);
  presence.set(hot, 1);
  expect([...costs.all()]).toEqual([[hot, 1]]);
});
