import fc from "fast-check";
import { expect, test } from "vitest";

import type { Millis, RoomKey } from "../../shared/ids.ts";
import { readSettings } from "../../shared/settings/settings.ts";
import { gatewaySettings } from "../config.ts";
import { quotaOptions } from "../settings/quotas.ts";
import { Deliveries } from "./deliveries.ts";

const at = (ms: number): Millis => ms as Millis;
const notes = "acme.notes" as RoomKey;
const plan = "acme.plan" as RoomKey;
const stranger = "other.notes" as RoomKey;
const PLENTY = { burst: 1e9, perSecond: 1e9 };
const ROOM = { burst: 1_000, perSecond: 100 };
const members = (everywhere: number, here = everywhere) => ({ here, everywhere });
const KIB = 1024;

test("[RDL1] an edit costs its bytes times members; a room has a burst, then a rate, and costs no other room anything", () => {
  const mine = new Deliveries({ room: ROOM, tenant: PLENTY });
  const take = (room: RoomKey, now: number) => mine.takeEdit(room, 10, members(40), at(now));
  expect([take(notes, 0), take(notes, 0), take(notes, 0)]).toEqual([undefined, undefined, "room-delivery"]);
  expect([take(plan, 0), take(stranger, 0)]).toEqual([undefined, undefined]);
  expect([take(notes, 1_900), take(notes, 2_000), take(notes, 2_000)]).toEqual(["room-delivery", undefined, "room-delivery"]);
});

test("[RDL2] an edit of any cost waits only until half of the burst is there, and small edits do not wait for it", () => {
  const mine = new Deliveries({ room: ROOM, tenant: PLENTY });
  const take = (bytes: number, now: number) => mine.takeEdit(notes, bytes, members(10), at(now));
  expect([take(90, 0), take(400, 0), take(1, 0)]).toEqual([undefined, "room-delivery", undefined]);
  expect([take(400, 4_000), take(400, 4_100)]).toEqual(["room-delivery", undefined]);
  expect([take(1, 39_000), take(1, 40_000)]).toEqual(["room-delivery", undefined]); // The large edit is paid first.
});

test("[RDL3] all rooms of a tenant share a limit, and another tenant has its own", () => {
  const mine = new Deliveries({ room: PLENTY, tenant: ROOM });
  expect(mine.takeEdit(notes, 10, members(80), at(0))).toBeUndefined();
  expect([plan, stranger].map((room) => mine.takeEdit(room, 10, members(80), at(0)))).toEqual(["tenant-delivery", undefined]);
});

test("[RDL4] edits of other gateways cost the room as much as own edits, and the tenant the members of this gateway", () => {
  const byRoom = new Deliveries({ room: ROOM, tenant: PLENTY });
  byRoom.receiveOthersEdits(notes, 10, members(100, 1), at(0));
  expect(byRoom.takeEdit(notes, 1, members(100, 1), at(0))).toBe("room-delivery");
  const byTenant = new Deliveries({ room: PLENTY, tenant: ROOM });
  byTenant.receiveOthersEdits(notes, 10, members(100, 50), at(0));
  expect([1, 1].map(() => byTenant.takeEdit(plan, 50, members(10), at(0)))).toEqual([undefined, "tenant-delivery"]);
});

test("[RDL5] however many gateways its writers use, a room gets one burst, one edit more, and the rate", () => {
  const write = fc.record({ gateway: fc.nat(2), bytes: fc.integer({ min: 1, max: 50 }), pauseMs: fc.nat(300) });
  fc.assert(
    fc.property(fc.array(write, { maxLength: 300 }), (writes) => {
      const gateways = [0, 1, 2].map(() => new Deliveries({ room: ROOM, tenant: PLENTY }));
      let [now, delivered] = [0, 0];
      for (const { gateway, bytes, pauseMs } of writes) {
        now += pauseMs;
        if (gateways[gateway]!.takeEdit(notes, bytes, members(30, 10), at(now)) !== undefined) continue;
        delivered += bytes * 30;
        for (const other of gateways) if (other !== gateways[gateway]) other.receiveOthersEdits(notes, bytes, members(30, 10), at(now));
      }
      expect(delivered).toBeLessThanOrEqual(ROOM.burst + 50 * 30 + (ROOM.perSecond * now) / 1_000);
    }),
  );
});

test("[RDL9] edits that are not delivered yet cost no more than a burst, for a room and for a tenant, whatever the rate", () => {
  const fast = { burst: 1_000, perSecond: 1e9 };
  const byRoom = new Deliveries({ room: fast, tenant: PLENTY });
  byRoom.receiveUnacked(notes, 95, members(10));
  const take = (mine: Deliveries, room: RoomKey, bytes: number) => mine.takeEdit(room, bytes, members(10), at(0));
  expect([take(byRoom, notes, 6), take(byRoom, notes, 5), take(byRoom, plan, 6)]).toEqual(["room-delivery", undefined, undefined]);
  byRoom.receiveUnacked(notes, 40, members(10)); // Some are delivered.
  expect(take(byRoom, notes, 500)).toBeUndefined();

  const byTenant = new Deliveries({ room: PLENTY, tenant: fast });
  for (const room of [notes, plan]) byTenant.receiveUnacked(room, 50, members(10));
  expect([plan, stranger].map((room) => take(byTenant, room, 1))).toEqual(["tenant-delivery", undefined]);
  byTenant.receiveUnacked(notes, 0, members(10));
  expect(take(byTenant, plan, 1)).toBeUndefined();
});

test("[RDL6] a room and a tenant are forgotten when their burst is complete again", () => {
  const mine = new Deliveries({ room: ROOM, tenant: ROOM });
  mine.takeEdit(notes, 10, members(10), at(0));
  mine.forgetIdle(at(900));
  expect(mine.size).toBe(2);
  mine.forgetIdle(at(1_000));
  expect(mine.size).toBe(0);
});

test.for([
  { use: "a paste of 512 KiB into a room of 300, and typing after it", bytes: 512 * KIB, people: 300, writers: 1 },
  { use: "ten pastes of 100 KiB into a room of 50 at once", bytes: 100 * KIB, people: 50, writers: 10 },
])("[RDL7] no edit is refused in honest use: $use", ({ bytes, people, writers }) => {
  const mine = new Deliveries(quotaOptions(readSettings(gatewaySettings, { flags: {}, env: {} })).deliveries);
  for (let writer = 0; writer < writers; writer++) expect(mine.takeEdit(notes, bytes, members(people), at(0))).toBeUndefined();
  for (let typed = 0; typed < 100; typed++) expect(mine.takeEdit(notes, 100, members(people), at(typed))).toBeUndefined();
});

test("[RDL8] no edit is refused in a room of 1,000 members of whom 100 write ten edits per second, half of them at another gateway", () => {
  const mine = new Deliveries(quotaOptions(readSettings(gatewaySettings, { flags: {}, env: {} })).deliveries);
  for (let ms = 0; ms < 60_000; ms += 100) {
    mine.receiveOthersEdits(notes, 50 * 100, members(1_000, 500), at(ms));
    for (let writer = 0; writer < 50; writer++) expect(mine.takeEdit(notes, 100, members(1_000, 500), at(ms))).toBeUndefined();
  }
});
