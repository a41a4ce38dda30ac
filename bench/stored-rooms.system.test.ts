import { expect, test } from "vitest";

import { KEY_KINDS, kindOfKey } from "./stored-rooms-measures.ts";
import { measureStoredRooms } from "./stored-rooms.bench.ts";

test("[SRM1] rooms that two users edited and left are saved, counted and released, and each store holds them", async () => {
  const { half, all } = await measureStoredRooms({ rooms: 8, participants: 2, edits: 3, pauseSeconds: 0, print: () => {} });
  expect([half.rooms, all.rooms]).toEqual([4, 8]);
  for (const [name, bytes] of Object.entries(all.bytes)) expect(bytes, name).toBeGreaterThan(0);
  // Of each of four rooms: a board's three keys and the part in the tenant's board for every window, and three other keys.
  for (const kind of KEY_KINDS)
    expect(all.redis[kind].count - half.redis[kind].count, kind).toBeGreaterThanOrEqual(4 * (kind === "none" ? 3 : 4));
  expect(all.nats["log"]).toMatchObject({ count: 8, subjects: 8 });
  expect(all.nats["OBJ_snapshots"]!.subjects).toBeGreaterThanOrEqual(16);
});

test("[SRM2] the window of a board is read from its key", () => {
  expect(kindOfKey("prod:board:{acme.notes}:everyone:2026-W07:hot")).toBe("week");
  expect(kindOfKey("prod:tenant:{acme}:people:everyone:2026-11-28T19:of:acme.notes")).toBe("hour");
  expect(kindOfKey("prod:tenant:{acme}:rooms:editors:all:full")).toBe("all");
  expect(kindOfKey("prod:board:{acme.2026:hot}:applied")).toBe("none");
});
