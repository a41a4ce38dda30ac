import { expect, test } from "vitest";

import { TenantCounts } from "../../shared/bus/storage-messages.ts";
import { type RoomKey, type TenantId } from "../../shared/ids.ts";
import { tenantBytesMax } from "../../shared/settings/tenant-bytes.ts";
import { StoredBytes } from "./stored-bytes.ts";
import { TenantBytes } from "./tenant-bytes.ts";

const notes = "acme.notes" as RoomKey;
const plan = "acme.plan" as RoomKey;
const acme = "acme" as TenantId;
const stored = (roomBytesMax = 100_000): StoredBytes => new StoredBytes(0, { logPartitions: 1, roomBytesMax });

test("[STB1] a room reaches its limit by all that it stores, and is released clearly below it", () => {
  const bytes = stored();
  expect(bytes.receiveRoom(notes, { snapshots: 50_000, history: undefined, log: 40_000 })).toBeUndefined();
  expect(bytes.receiveRoom(notes, { snapshots: 50_000, history: 10_000, log: 40_000 })).toEqual({
    room: notes,
    bytes: 100_000,
    isReached: true,
  });
  expect(bytes.receiveRoom(notes, { snapshots: 50_000, history: 10_000, log: 36_000 }), "96%").toBeUndefined();
  expect([...bytes.full]).toEqual([[notes, 96_000]]);
  expect(bytes.receiveRoom(notes, { snapshots: 50_000, history: 10_000, log: 0 })).toEqual({
    room: notes,
    bytes: 60_000,
    isReached: false,
  });
  expect([...bytes.full]).toEqual([]);
});

test("[STB2] a full room stays full after it leaves memory, and at the next reader of its partition, until it is measured", () => {
  const first = stored();
  first.receiveRoom(notes, { snapshots: 100_000, history: 0, log: 0 });
  first.forgetRoom(notes);
  const second = stored();
  second.adoptFull(first.full);
  expect([...second.full.keys()]).toEqual([notes]);
  expect(second.receiveRoom(notes, { snapshots: 100_000, history: undefined, log: 0 })).toBeUndefined();
  expect(second.receiveRoom(notes, { snapshots: 0, history: 0, log: 0 }), "deleted").toMatchObject({ isReached: false });
});

test("[STB13] a room that is measured below its limit is not full by an older report of another reader", () => {
  const bytes = stored();
  bytes.receiveRoom(notes, { snapshots: 1, history: 0, log: 0 });
  bytes.adoptFull([[notes, 100_000]]);
  expect(bytes.full.size).toBe(0);
});

test("[STB3] a tenant's bytes are those of the listed objects, what rooms changed since, and the log of rooms in memory", () => {
  const bytes = stored();
  bytes.receiveRoom(notes, { snapshots: 20_000, history: undefined, log: 500 });
  expect(bytes.tenants, "the stores are not listed").toBeUndefined();
  bytes.receiveListed(
    "snapshots",
    new Map([
      ["acme.notes/1-2-a", 20_000],
      ["acme.plan/1-2-b", 100],
    ]),
  );
  bytes.receiveListed(
    "history",
    new Map([
      ["acme.plan/v", 7_000],
      ["acme.plan/w", 50],
      ["no name", 1],
    ]),
  );
  expect(bytes.tenants?.get(acme), "a room counts 4 KiB at least").toBe(20_000 + 4_096 + 7_050 + 500);
  bytes.receiveRoom(notes, { snapshots: 25_000, history: 3_000, log: 100 }); // The room has read the size of its history.
  bytes.receiveRoom(plan, { snapshots: 100, history: 7_050, log: 0 });
  bytes.receiveRoom(plan, { snapshots: 100, history: 50, log: 0 });
  expect(bytes.tenants?.get(acme)).toBe(25_000 + 4_096 + 50 + 100);
  bytes.forgetRoom(notes);
  expect(bytes.tenants?.get(acme)).toBe(25_000 + 4_096 + 50);
  bytes.receiveListed("snapshots", new Map([["acme.notes/1-3-c", 25_000]]));
  expect(bytes.tenants?.get(acme), "a new list corrects").toBe(25_000 + 50);
  bytes.receiveListed("snapshots", new Map([["acme.notes/1-3-c", undefined]]));
  expect(bytes.tenants?.get(acme), "a list that failed changes nothing").toBe(25_000 + 50);
});

test("[STB6] the first segment of a history counts, although a room is measured only after it was written", () => {
  const bytes = stored();
  for (const kind of ["snapshots", "history"] as const) bytes.receiveListed(kind, new Map());
  bytes.receiveRoom(notes, { snapshots: 0, history: undefined, log: 900 });
  bytes.receiveRoom(notes, { snapshots: 0, history: 900, historyFound: 0, log: 0 });
  expect(bytes.tenants?.get(acme)).toBe(900);
  bytes.receiveRoom(notes, { snapshots: 0, history: undefined, historyFound: 0, log: 0 });
  bytes.receiveRoom(notes, { snapshots: 0, history: 1_000, historyFound: 0, log: 0 });
  expect(bytes.tenants?.get(acme), "it was unknown in between").toBe(1_000);
  bytes.receiveRoom(notes, { snapshots: 0, history: 0, historyFound: 0, log: 0 });
  expect(bytes.tenants?.get(acme) ?? 0).toBe(0);
});

test("[STB4] tenants count over all partitions, each with its limit, once every partition is known", () => {
  const tenants = new TenantBytes(2, tenantBytesMax("1000, acme=5000"));
  const counts = (...entries: [string, number][]) => new Map(entries as [TenantId, number][]);
  tenants.receiveCounts(0, counts(["acme", 900], ["zoo", 900]));
  expect([tenants.decide(), tenants.full]).toEqual([[], undefined]);
  tenants.receiveCounts(1, counts(["acme", 900], ["zoo", 100]));
  expect(tenants.decide()).toEqual([{ tenant: "zoo", bytes: 1_000, max: 1_000, isReached: true }]);
  tenants.receiveCounts(1, counts(["acme", 4_100], ["zoo", 51]));
  expect(tenants.decide()).toEqual([{ tenant: "acme", bytes: 5_000, max: 5_000, isReached: true }]);
  expect([...tenants.full!.keys()].toSorted()).toEqual(["acme", "zoo"]);
  tenants.receiveCounts(0, counts());
  expect(tenants.decide().map(({ tenant, isReached }) => [tenant, isReached])).toEqual([
    ["acme", false],
    ["zoo", false],
  ]);
});

test("[STB5] the limits of tenants are one number for all, and others for single ones", () => {
  const limits = tenantBytesMax("100, acme=200,zoo=0");
  expect(["acme", "zoo", "other"].map((tenant) => limits.of(tenant as TenantId))).toEqual([200, 0, 100]);
  expect(tenantBytesMax("").of(acme)).toBe(0);
  for (const wrong of ["many", "acme=", "a b=1", "1.5", "-1"]) expect(() => tenantBytesMax(wrong)).toThrow(/tenant=bytes/);
  for (const twice of ["1, 2", "0, 0", "acme=1, 5, acme=2"]) expect(() => tenantBytesMax(twice)).toThrow(/at most one/);
});

test("[STB11] a tenant never counts less than nothing, so that the counts of all others are accepted", () => {
  const bytes = stored();
  const room = { snapshots: 0, history: 0, log: 0 };
  bytes.receiveRoom(notes, room);
  bytes.receiveRoom(notes, { ...room, snapshots: 10_000 });
  bytes.receiveListed("snapshots", new Map([["other.plan/1-2-b", 20_000]])); // The listing began before the snapshot was written.
  bytes.receiveListed("history", new Map());
  bytes.receiveRoom(notes, room); // Deleted.
  const tenants = [...bytes.tenants!];
  expect(tenants).toEqual([["other", 20_000]]);
  expect(TenantCounts.safeParse({ partition: 0, tenants }).success).toBe(true);
});
