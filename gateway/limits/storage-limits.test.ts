import { expect, test } from "vitest";

import type { FullStorage } from "../../shared/bus/storage-messages.ts";
import type { RoomKey, TenantId } from "../../shared/ids.ts";
import { StorageLimits } from "./storage-limits.ts";

const notes = "acme.notes" as RoomKey;
const plan = "zoo.plan" as RoomKey;
const full = (given: Partial<FullStorage> = {}): FullStorage => ({ partition: 0, roomBytesMax: 1_000, rooms: [], ...given });

test("[STR1] members of a full room may only read, and the reason names the limit and what to do", () => {
  const limits = new StorageLimits();
  expect(limits.receiveReport(full({ rooms: [[notes, 1_200]] }))).toEqual({ rooms: new Set([notes]), tenants: new Set() });
  expect(limits.restrictionOn(notes)).toMatchObject({ level: "read-only" });
  expect(limits.fullOn(notes)).toMatch(/room notes stores 1200 bytes, and 1000 are allowed \(COROOM_ROOM_BYTES_MAX\): delete/);
  expect([limits.fullOn(plan), limits.restrictionOn(undefined)]).toEqual([undefined, undefined]);
  expect(limits.receiveReport(full({ rooms: [[notes, 1_300]] })).rooms.size, "nothing changed for members").toBe(0);
  expect(limits.receiveReport(full()).rooms).toEqual(new Set([notes]));
  expect(limits.fullOn(notes)).toBeUndefined();
});

test("[STR2] all rooms of a full tenant may only be read, and a report that does not know the tenants changes none", () => {
  const limits = new StorageLimits();
  const zoo = { tenant: "zoo" as TenantId, bytes: 9, max: 8 };
  expect(limits.receiveReport(full({ tenants: [zoo] })).tenants).toEqual(new Set(["zoo"]));
  expect(limits.fullOn(plan)).toMatch(/tenant zoo stores 9 bytes, and 8 are allowed \(COROOM_TENANT_BYTES_MAX\)/);
  expect(limits.receiveReport(full()).tenants.size).toBe(0);
  expect(limits.receiveReport(full({ partition: 1 })).tenants.size).toBe(0);
  expect(limits.fullOn(plan)).toBeDefined();
  expect(limits.receiveReport(full({ tenants: [] })).tenants).toEqual(new Set(["zoo"]));
});

test("[STR3] a report replaces that of its partition only", () => {
  const limits = new StorageLimits();
  limits.receiveReport(full({ rooms: [[notes, 1_200]] }));
  limits.receiveReport(full({ partition: 1, rooms: [[plan, 1_200]] }));
  limits.receiveReport(full({ partition: 1 }));
  expect([limits.fullOn(notes) !== undefined, limits.fullOn(plan)]).toEqual([true, undefined]);
});
