import fc from "fast-check";
import { expect, test } from "vitest";

import type { Sanction } from "../../shared/bus/admin-messages.ts";
import type { RoomKey, TenantId, UnixMillis, UserId } from "../../shared/ids.ts";
import type { ClientAddress } from "../../shared/limits/client-address.ts";
import { Sanctions } from "./sanctions.ts";

const at = (ms: number): UnixMillis => ms as UnixMillis;
const acme = "acme" as TenantId;
const eve = "eve the first" as UserId;
const notes = "acme.notes" as RoomKey;
const place = "203.0.113.7" as ClientAddress;
const none = (): Sanctions => new Sanctions({ sanctionsMax: 3 });
const ban = (given: Partial<Sanction> = {}): Sanction => ({
  target: { kind: "user", tenant: acme, user: eve },
  level: "banned",
  until: at(1_000),
  madeAt: at(0),
  lifted: false,
  reason: "",
  ...given,
});

test("[SAN1] a ban applies to its target only, until its end", () => {
  const sanctions = none();
  expect(sanctions.receiveSanction(ban(), at(0))).toBe(true);
  sanctions.receiveSanction(ban({ target: { kind: "address", address: place } }), at(0));
  expect(sanctions.banOf(acme, eve)?.until).toBe(1_000);
  expect([sanctions.banOf("other" as TenantId, eve), sanctions.banOf(acme, "eve" as UserId), sanctions.banOfAddress(place)?.level]).toEqual(
    [undefined, undefined, "banned"],
  );
  expect(sanctions.expire(at(999))).toEqual([]);
  expect(sanctions.expire(at(1_000))).toHaveLength(2);
  expect([sanctions.banOf(acme, eve), sanctions.all]).toEqual([undefined, []]);
  expect(sanctions.receiveSanction(ban(), at(1_000)), "over already").toBe(false);
});

test("[SAN2] in a room the stricter one of a sanction for the room and a sanction for all rooms applies", () => {
  const sanctions = none();
  sanctions.receiveSanction(ban({ level: "read-only" }), at(0));
  expect(sanctions.restriction(acme, eve, notes)?.level).toBe("read-only");
  sanctions.receiveSanction(ban({ room: notes }), at(0));
  expect(sanctions.restriction(acme, eve, notes)?.level).toBe("banned");
  expect([sanctions.restriction(acme, eve, "acme.other" as RoomKey)?.level, sanctions.banOf(acme, eve)]).toEqual(["read-only", undefined]);
});

test("[SAN3] a lifted ban stays lifted although the ban itself arrives again", () => {
  const sanctions = none();
  sanctions.receiveSanction(ban(), at(0));
  expect(sanctions.receiveSanction(ban({ lifted: true, madeAt: at(5) }), at(10))).toBe(true);
  expect(sanctions.receiveSanction(ban(), at(10))).toBe(false);
  expect(sanctions.banOf(acme, eve)).toBeUndefined();
  expect(sanctions.receiveSanction(ban({ madeAt: at(20) }), at(20))).toBe(true);
});

test("[SAN4] at the maximum, the sanction that ends first is removed", () => {
  const sanctions = none();
  for (const [user, until] of [
    ["a", 500],
    ["b", 900],
    ["c", 700],
    ["d", 800],
  ] as const)
    sanctions.receiveSanction(ban({ target: { kind: "user", tenant: acme, user: user as UserId }, until: at(until) }), at(0));
  expect(sanctions.all.map(({ until }) => until)).toEqual([900, 700, 800]);
});

test("[SAN6] a tenant above the maximum removes its own sanctions, and a report lists its sanctions last", () => {
  const sanctions = none();
  const other = ban({ target: { kind: "user", tenant: "other" as TenantId, user: eve }, until: at(10) });
  const address = ban({ target: { kind: "address", address: place }, until: at(20) });
  const flood = ["a", "b", "c", "d"].map((user, index) =>
    ban({ target: { kind: "user", tenant: acme, user: user as UserId }, until: at(500 + index) }),
  );
  for (const sanction of flood) sanctions.receiveSanction(sanction, at(0));
  for (const sanction of [other, address, ...flood.slice(0, 2)]) sanctions.receiveSanction(sanction, at(0));
  expect(new Set(sanctions.all)).toEqual(new Set([other, address, flood[1]]));

  const roomy = new Sanctions({ sanctionsMax: 10 });
  for (const sanction of [...flood, other, address]) roomy.receiveSanction(sanction, at(0));
  expect(roomy.known).toEqual([flood[0], other, address, ...flood.slice(1)]);
});

const byGateway = ban({ by: "gateway", madeAt: at(10), until: at(100) });

test("[SAN9] a ban by a gateway does not shorten a ban by people in either order, and the later end applies", () => {
  for (const order of [
    [ban(), byGateway],
    [byGateway, ban()],
  ]) {
    const sanctions = none();
    for (const sanction of order) sanctions.receiveSanction(sanction, at(0));
    expect(sanctions.banOf(acme, eve)?.until).toBe(1_000);
    sanctions.receiveSanction({ ...byGateway, madeAt: at(20), until: at(2_000) }, at(0));
    expect(sanctions.banOf(acme, eve)?.until).toBe(2_000);
    sanctions.expire(at(1_000));
    expect(sanctions.banOf(acme, eve)?.until, "after the end of the ban by people").toBe(2_000);
  }
});

test("[SAN11] a gateway of an earlier version, which does not know who imposed a sanction, obeys what people impose", () => {
  const mine = none();
  mine.receiveSanction(byGateway, at(0));
  const byPeople = ban({ madeAt: at(20), until: at(1_000) });
  const issued = [mine.liftedBy(byPeople)!, byPeople].map(({ target, level, madeAt, until, lifted, reason }): Sanction => ({
    target,
    level,
    madeAt,
    until,
    lifted,
    reason,
  }));
  for (const order of [issued, issued.toReversed()]) {
    const earlier = none();
    for (const sanction of order) earlier.receiveSanction(sanction, at(0));
    expect(earlier.banOf(acme, eve)?.until).toBe(1_000);
  }
});

const arriving = fc.array(
  fc.record({
    target: fc.constantFrom(ban().target, { kind: "address", address: place } as const),
    level: fc.constantFrom("banned", "read-only"),
    by: fc.constantFrom("gateway", undefined),
    until: fc.integer({ min: 1, max: 50 }).map(at),
    madeAt: fc.nat(5).map(at),
    lifted: fc.boolean(),
    reason: fc.constant(""),
  }),
  { maxLength: 12 },
);

test("[SAN5] all gateways enforce the same sanctions, in any order of arrival", () => {
  fc.assert(
    fc.property(arriving, fc.infiniteStream(fc.nat()), (sanctions, shuffle) => {
      // Two sanctions of one moment on one target differ only in being lifted, because a gateway makes each one once.
      const given = sanctions.map((sanction) => ({ ...sanction, until: at(100 + sanction.madeAt) }) as Sanction);
      const shuffled = given
        .map((sanction) => ({ sanction, place: shuffle.next().value }))
        .sort((a, b) => a.place - b.place)
        .map(({ sanction }) => sanction);
      const [one, two] = [new Sanctions({ sanctionsMax: 100 }), new Sanctions({ sanctionsMax: 100 })];
      for (const sanction of given) one.receiveSanction(sanction, at(0));
      for (const sanction of [...shuffled, ...shuffled]) two.receiveSanction(sanction, at(0));
      const inForce = (all: Sanctions) =>
        all.all.map(({ target, level, by, madeAt }) => JSON.stringify([target, level, by, madeAt])).sort();
      expect(inForce(two)).toEqual(inForce(one));
    }),
  );
});
