import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

import { expect, test } from "vitest";

import { KEY_KINDS, kindOfKey, liveHeapBytes } from "./stored-rooms-measures.ts";
import { measureStoredRooms } from "./stored-rooms.bench.ts";

test("[SRM1] rooms that two users edited and left are saved, counted and released, and each store holds them", async () => {
  const { emptyNatsBytes, half, all } = await measureStoredRooms({ rooms: 8, participants: 2, edits: 3, pauseSeconds: 0, print: () => {} });
  expect([half.rooms, all.rooms]).toEqual([4, 8]);
  expect(emptyNatsBytes).toBeGreaterThan(0);
  // A nats-server that has just started may not have collected any garbage yet.
  for (const [name, bytes] of Object.entries(all.bytes)) if (!name.includes("heap")) expect(bytes, name).toBeGreaterThan(0);
  // Of each of four rooms: a board's three keys and the part in the tenant's board for every window, and three other keys.
  for (const kind of KEY_KINDS)
    expect(all.redis[kind].count - half.redis[kind].count, kind).toBeGreaterThanOrEqual(4 * (kind === "none" ? 3 : 4));
  expect(all.nats["log"]).toMatchObject({ count: 8, subjects: 8 });
  expect(all.nats["OBJ_snapshots"]!.subjects).toBeGreaterThanOrEqual(16);
});

test("[SRM3] the live heap is read from the last collection in the log", () => {
  const log = join(mkdtempSync(join(tmpdir(), "coroom-gctrace-")), "nats-server.log");
  const collection = (megabytes: number): string =>
    `gc 4 @0.5s 1%: 0.1+1.2+0.01 ms clock, 0.2+0/1/2+0.02 ms cpu, 9->10->${megabytes} MB, 12 MB goal, 0 MB stacks, 0 MB globals, 2 P`;
  writeFileSync(log, `[1] Starting nats-server\n${collection(5)}\n${collection(7)}\n[1] Server is ready\n`);
  expect(liveHeapBytes(log)).toBe(7 * 1024 ** 2);
  rmSync(dirname(log), { recursive: true });
});

test("[SRM2] the window of a board is read from its key", () => {
  expect(kindOfKey("prod:board:{acme.notes}:everyone:2026-W07:hot")).toBe("week");
  expect(kindOfKey("prod:tenant:{acme}:people:everyone:2026-11-28T19:of:acme.notes")).toBe("hour");
  expect(kindOfKey("prod:tenant:{acme}:rooms:editors:all:full")).toBe("all");
  expect(kindOfKey("prod:board:{acme.2026:hot}:applied")).toBe("none");
});
