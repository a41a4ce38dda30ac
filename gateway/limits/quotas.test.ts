import { expect, test } from "vitest";

import type { Millis, RoomKey, TenantId } from "../../shared/ids.ts";
import type { ClientAddress } from "../../shared/limits/client-address.ts";
import type { ConnectionId } from "../ports.ts";
import { Quotas } from "./quotas.ts";

const at = (ms: number): Millis => ms as Millis;
const place = "203.0.113.7" as ClientAddress;
const acme = "acme" as TenantId;
const notes = "acme.notes" as RoomKey;
const connection = (number: number): ConnectionId => number as ConnectionId;
const OPTIONS = {
  limits: {
    "ip": 2,
    "tenant": 2,
    "tenant-rooms": 2,
    "room": 2,
    "tenant-edits": 2,
    "user-faults": 2,
    "address-faults": 2,
    "tenant-faults": 2,
    "full-room": 1,
  },
  toldShare: 0,
  reportSilenceMsMax: 3_000,
  creditMs: 75_000,
};
const quotas = (): Quotas => new Quotas(OPTIONS);

test("[QUO1] an address has so many connections, and one that ends makes room", () => {
  const mine = quotas();
  for (const number of [1, 2]) mine.receiveConnection(connection(number), place, at(0));
  expect(mine.mayConnect(place)).toBe(false);
  expect(mine.mayConnect(undefined)).toBe(true); // The machine's own.
  mine.receiveDisconnection(connection(1));
  expect(mine.mayConnect(place)).toBe(true);
});

test("[QUO2] a tenant has so many connections; a renewed token takes no further place, a refused connection none", () => {
  const mine = quotas();
  for (const number of [1, 2, 3]) mine.receiveConnection(connection(number), undefined, at(0));
  expect([1, 1, 2, 3].map((number) => mine.admitTo(acme, connection(number), at(0)))).toEqual([true, true, true, false]);
  mine.receiveDisconnection(connection(3));
  expect(mine.endSecond(at(0))).toEqual([{ kind: "tenant", key: "acme", count: 2 }]);
  mine.receiveDisconnection(connection(1));
  expect(mine.endSecond(at(1_000))).toEqual([{ kind: "tenant", key: "acme", count: 1 }]);
});

test("[QUO3] a room has so many members, wherever they are", () => {
  const mine = quotas();
  mine.receiveMembers(notes, 1);
  mine.receiveReport({ source: "other", counts: [{ kind: "room", key: notes, count: 1 }] }, at(0));
  expect(mine.isRoomFull(notes)).toBe(true);
  mine.endSecond(at(3_001));
  expect(mine.isRoomFull(notes)).toBe(false);
});

test("[QUO4] a tenant has so many open rooms, as the room servers count them", () => {
  const mine = quotas();
  for (const source of ["rs-1", "rs-2"]) mine.receiveReport({ source, counts: [{ kind: "tenant-rooms", key: acme, count: 1 }] }, at(0));
  expect([mine.mayOpenRoomOf(acme), mine.mayOpenRoomOf("other" as TenantId)]).toEqual([false, true]);
});

test("[QUO5] a tenant sends so many edits in a second, those on other gateways among them", () => {
  const mine = quotas();
  expect([mine.takeEdit(notes), mine.takeEdit(notes), mine.takeEdit(notes)]).toEqual([true, true, false]);
  expect(mine.endSecond(at(1_000))).toEqual([{ kind: "tenant-edits", key: "acme", count: 3 }]);
  mine.receiveReport({ source: "other", counts: [{ kind: "tenant-edits", key: "acme", count: 3 }] }, at(1_000));
  mine.takeEdit(notes);
  mine.endSecond(at(2_000));
  expect([mine.takeEdit(notes), mine.takeEdit(notes)]).toEqual([false, false]); // A quarter of two.
});

test("[QUO6] a room that its room server holds back takes nobody new, wherever its members are, until that is told no more", () => {
  const mine = quotas();
  mine.receiveReport({ source: "rs-1", counts: [{ kind: "full-room", key: notes, count: 1 }] }, at(0));
  expect([mine.isOverBudget(notes), mine.isRoomFull(notes), mine.isOverBudget("acme.other" as RoomKey)]).toEqual([true, false, false]);
  mine.receiveReport({ source: "rs-1", counts: [] }, at(1_000));
  expect(mine.isOverBudget(notes)).toBe(false);
});

test("[QUO7] which tenants were refused, for which limit and how often, is told once", () => {
  const mine = quotas();
  for (const number of [1, 2, 3, 4]) mine.receiveConnection(connection(number), undefined, at(0));
  for (const number of [1, 2, 3, 4]) mine.admitTo(acme, connection(number), at(0));
  for (let edits = 0; edits < 3; edits++) mine.takeEdit(notes);
  expect(mine.takeAtLimit()).toEqual([
    { tenant: acme, limit: "tenant", times: 2 },
    { tenant: acme, limit: "tenant-edits", times: 1 },
  ]);
  mine.receiveReport({ source: "rs-1", counts: [{ kind: "tenant-rooms", key: acme, count: 2 }] }, at(0));
  mine.mayOpenRoomOf(acme);
  expect(mine.takeAtLimit()).toEqual([{ tenant: acme, limit: "tenant-rooms", times: 1 }]);
  expect(mine.takeAtLimit()).toEqual([]);
});

/** Of ten connections each, so that one may be had on credit. */
const ofTen = (): Quotas => new Quotas({ ...OPTIONS, limits: { ...OPTIONS.limits, ip: 10, tenant: 10 } });
const tenOf = (mine: Quotas): void => {
  for (let number = 1; number <= 10; number++) {
    mine.receiveConnection(connection(number), place, at(0));
    mine.admitTo(acme, connection(number), at(0));
  }
};

test("[QUO8] whoever lost its line comes back to a full address and a full tenant on credit, and stays once the lost line is gone", () => {
  const mine = ofTen();
  tenOf(mine);
  expect(mine.mayConnect(place)).toBe(true);
  mine.receiveConnection(connection(11), place, at(1_000));
  expect([mine.admitTo(acme, connection(11), at(1_000)), mine.onCredit]).toEqual([true, 2]);
  expect(mine.mayConnect(place), "a tenth is all").toBe(false);
  mine.receiveConnection(connection(12), undefined, at(1_000));
  expect(mine.admitTo(acme, connection(12), at(1_000))).toBe(false);
  mine.receiveDisconnection(connection(3));
  expect([mine.takeUnplaced(at(76_000)), mine.onCredit]).toEqual([undefined, 0]);
});

test("[QUO10] a place that becomes free is the oldest credit's, though somebody new comes in at once", () => {
  const mine = ofTen();
  tenOf(mine);
  mine.receiveConnection(connection(11), place, at(1_000));
  mine.receiveDisconnection(connection(3));
  expect(mine.onCredit).toBe(0);
  mine.receiveConnection(connection(12), place, at(70_000));
  expect([mine.takeUnplaced(at(80_000)), mine.onCredit]).toEqual([undefined, 1]);
  expect(mine.takeUnplaced(at(150_000))).toEqual({ connection: connection(12), limit: "ip" });
});

test("[QUO11] a gateway that goes away closes nobody for want of a place", () => {
  const mine = ofTen();
  tenOf(mine);
  mine.receiveConnection(connection(11), place, at(1_000));
  mine.handOver(new Map());
  expect(mine.takeUnplaced(at(80_000))).toBeUndefined();
});

test("[QUO12] of a gateway that goes away each place is free from when its connection is to move, and taken until then", () => {
  const [mine, other] = [ofTen(), ofTen()];
  tenOf(mine);
  mine.handOver(new Map(Array.from({ length: 10 }, (_, index) => [connection(index + 1), at(1_000 * index)])));
  const toldAt = (ms: number): (number | undefined)[] => {
    const report = mine.currentReport(at(ms));
    other.receiveReport({ source: "mine", counts: report }, at(ms));
    return (["ip", "tenant"] as const).map((kind) => report.find((count) => count.kind === kind)?.count);
  };
  expect([toldAt(0), toldAt(1_000)]).toEqual([
    [8, 8],
    [7, 7],
  ]);
  for (let number = 1; number <= 4; number++) other.receiveConnection(connection(number), place, at(2_000));
  expect([toldAt(2_000), other.mayConnect(place), other.onCredit]).toEqual([[6, 6], true, 1]);
  mine.receiveDisconnection(connection(1));
  expect(toldAt(2_000), "who has gone is not left out twice").toEqual([6, 6]);
  expect(toldAt(9_000)).toEqual([undefined, undefined]);
});

test("[QUO9] one that no line was lost for ends with its credit, and for each limit only as many as are too many", () => {
  const mine = ofTen();
  tenOf(mine);
  mine.receiveConnection(connection(11), place, at(1_000));
  mine.admitTo(acme, connection(11), at(1_000));
  expect(mine.takeUnplaced(at(75_999))).toBeUndefined();
  expect(mine.takeUnplaced(at(76_000))).toEqual({ connection: connection(11), limit: "ip" });
  mine.receiveDisconnection(connection(11));
  expect([mine.takeUnplaced(at(76_000)), mine.onCredit]).toEqual([undefined, 0]);
});
