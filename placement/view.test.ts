import { expect, test } from "vitest";

import type { ServerHeartbeat } from "../shared/bus/placement-messages.ts";
import type { Epoch, RoomKey, ServerId, UnixMillis } from "../shared/ids.ts";
import { PlacementView } from "./view.ts";

const [notes, plans, lists] = ["acme.notes", "acme.plans", "acme.lists"] as RoomKey[] as [RoomKey, RoomKey, RoomKey];
const [one, two] = ["one", "two"] as ServerId[] as [ServerId, ServerId];
const heartbeat = (server: ServerId): ServerHeartbeat => ({ server, rooms: 1, draining: false, time: 0 as UnixMillis });

test("[VIEW1] the rooms of one owner share one object, also after the owner's heartbeats paused", () => {
  const view = new PlacementView();
  view.receiveEntry(notes, { owner: one, epoch: 1 as Epoch });
  view.receiveEntry(plans, { owner: one, epoch: 2 as Epoch });
  view.receiveEntry(lists, { owner: two, epoch: 3 as Epoch });
  const { rooms } = view.world([heartbeat(two)]);
  expect([...rooms]).toEqual([
    [notes, { owner: one }],
    [plans, { owner: one }],
    [lists, { owner: two }],
  ]);
  expect(rooms.get(notes)).toBe(rooms.get(plans));
  view.receiveEntry(notes, { owner: one, epoch: 4 as Epoch });
  view.receiveEntry(plans, { owner: two, epoch: 5 as Epoch });
  expect(view.ownerOf(notes)).toBe(one);
  expect(rooms.get(plans)).toBe(rooms.get(lists));
});

test("[VIEW2] rooms with an owner and without a planned replica are counted", () => {
  const view = new PlacementView();
  for (const room of [notes, plans]) view.receiveEntry(room, { owner: one, epoch: 1 as Epoch });
  view.receivePlanned(notes, { owner: one, replica: two, reason: "", generation: 1, at: 0 as UnixMillis });
  view.receivePlanned(lists, { owner: two, reason: "", generation: 1, at: 0 as UnixMillis });
  expect(view.roomsWithoutReplica).toBe(1);
  view.receiveEntry(notes, { owner: two, epoch: 2 as Epoch }); // The replica's server owns the room now.
  expect(view.roomsWithoutReplica).toBe(2);
  view.receiveEntry(plans, { owner: two, epoch: 2 as Epoch });
  view.receivePlanned(plans, { owner: one, replica: two, reason: "", generation: 1, at: 0 as UnixMillis }); // Arrives late.
  expect(view.roomsWithoutReplica).toBe(2);
});

test("[VIEW3] an entry of an earlier plan that arrives late is ignored", () => {
  const view = new PlacementView();
  const planned = { reason: "", at: 0 as UnixMillis };
  expect(view.receivePlanned(notes, { ...planned, owner: one, replica: two, generation: 5 })).toBe(true);
  expect(view.receivePlanned(notes, { ...planned, owner: two, replica: one, generation: 4 })).toBe(false);
  expect([view.replicaOf(notes), view.generation]).toEqual([two, 5]);
  expect(view.receivePlanned(notes, { ...planned, owner: two, replica: one, generation: 5 }), "a later step of one plan").toBe(true);
  expect(view.replicaOf(notes)).toBe(one);
  view.receivePlanned(notes, undefined);
  expect([view.replicaOf(notes), view.generation]).toEqual([undefined, 5]);
});

test("[VIEW5] an entry that was not stored is forgotten, unless another leader's newer one is known", () => {
  const view = new PlacementView();
  const late = { reason: "", at: 0 as UnixMillis, owner: one, replica: two, generation: 5 };
  view.receivePlanned(notes, late);
  view.receiveUnstored(notes, late.generation);
  expect(view.replicaOf(notes)).toBeUndefined();
  view.receivePlanned(notes, { ...late, owner: two, replica: one, generation: 6 });
  view.receiveUnstored(notes, late.generation);
  expect(view.replicaOf(notes)).toBe(one);
});

test("[VIEW4] only the owner's report counts for a room's share of the budget", () => {
  const view = new PlacementView();
  view.receiveEntry(notes, { owner: two, epoch: 2 as Epoch });
  const reports = (share: number) => ({ load: { used: 0.5, hot: [{ room: notes, share }] } });
  const { shares } = view.world([
    { ...heartbeat(two), ...reports(0.2) },
    { ...heartbeat(one), ...reports(0.5) }, // The server `one` has handed the room over.
  ]);
  expect([...shares]).toEqual([[notes, 0.2]]);
});

test("[VIEW6] a pin counts until its entry is removed", () => {
  const view = new PlacementView();
  view.receivePin(notes, { pool: "gold" });
  expect([...view.world([]).pins]).toEqual([[notes, { pool: "gold" }]]);
  view.receivePin(notes, undefined);
  expect([...view.world([]).pins]).toEqual([]);
});

test("[VIEW7] an entry with a generation near 2^53 leaves numbers for all plans that follow", () => {
  const view = new PlacementView();
  view.receivePlanned(notes, { owner: one, reason: "", generation: Number.MAX_SAFE_INTEGER, at: 0 as UnixMillis });
  expect(view.generation).toBe(2 ** 52);
});
