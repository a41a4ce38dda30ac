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
  reportShare: 0,
  reportSilenceMsMax: 3_000,
  creditMs: 75_000,
};
const quotas = (): Quotas => new Quotas(OPTIONS);

test("[QUO1] an address has a maximum of connections, and a connection that ends no longer counts", () => {
  const mine = quotas();
  for (const number of [1, 2]) mine.receiveConnection(connection(number), place, at(0));
  expect(mine.mayConnect(place)).toBe(false);
  expect(mine.mayConnect(undefined)).toBe(true); // Connections from this machine have no address.
  mine.receiveDisconnection(connection(1));
  expect(mine.mayConnect(place)).toBe(true);
});

test("[QUO2] a tenant has a maximum of connections; a renewed token takes no second place, and a refused connection none", () => {
  const mine = quotas();
  for (const number of [1, 2, 3]) mine.receiveConnection(connection(number), undefined, at(0));
  expect([1, 1, 2, 3].map((number) => mine.admitTo(acme, connection(number), at(0)))).toEqual([true, true, true, false]);
  mine.receiveDisconnection(connection(3));
  expect(mine.endSecond(at(0))).toEqual([{ kind: "tenant", key: "acme", count: 2 }]);
  mine.receiveDisconnection(connection(1));
  expect(mine.endSecond(at(1_000))).toEqual([{ kind: "tenant", key: "acme", count: 1 }]);
});

test("[QUO3] a room has a maximum of members over all gateways", () => {
  const mine = quotas();
  mine.receiveMembers(notes, 1);
  mine.receiveReport({ source: "other", counts: [{ kind: "room", key: notes, count: 1 }] }, at(0));
  expect(mine.isRoomFull(notes)).toBe(true);
  mine.endSecond(at(3_001));
  expect(mine.isRoomFull(notes)).toBe(false);
});

test("[QUO4] a tenant has a maximum of open rooms, as the room servers report them", () => {
  const mine = quotas();
  for (const source of ["rs-1", "rs-2"]) mine.receiveReport({ source, counts: [{ kind: "tenant-rooms", key: acme, count: 1 }] }, at(0));
  expect([mine.mayOpenRoomOf(acme), mine.mayOpenRoomOf("other" as TenantId)]).toEqual([false, true]);
});

test("[QUO5] a tenant has a maximum of edits per second over all gateways", () => {
  const mine = quotas();
  expect([mine.takeEdit(notes), mine.takeEdit(notes), mine.takeEdit(notes)]).toEqual([true, true, false]);
  expect(mine.endSecond(at(1_000))).toEqual([{ kind: "tenant-edits", key: "acme", count: 3 }]);
  mine.receiveReport({ source: "other", counts: [{ kind: "tenant-edits", key: "acme", count: 3 }] }, at(1_000));
  mine.takeEdit(notes);
  mine.endSecond(at(2_000));
  expect([mine.takeEdit(notes), mine.takeEdit(notes)]).toEqual([false, false]); // The gateway's share is a quarter of two.
});

test("[QUO6] a room over its budget admits no new member at any gateway, until its room server no longer reports it", () => {
  const mine = quotas();
  mine.receiveReport({ source: "rs-1", counts: [{ kind: "full-room", key: notes, count: 1 }] }, at(0));
  expect([mine.isOverBudget(notes), mine.isRoomFull(notes), mine.isOverBudget("acme.other" as RoomKey)]).toEqual([true, false, false]);
  mine.receiveReport({ source: "rs-1", counts: [] }, at(1_000));
  expect(mine.isOverBudget(notes)).toBe(false);
});

test("[QUO7] refusals of a tenant are reported once, with the limit and their number", () => {
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

/** Limits of ten connections each, so that one connection may be admitted on credit. */
const ofTen = (): Quotas => new Quotas({ ...OPTIONS, limits: { ...OPTIONS.limits, ip: 10, tenant: 10 } });
const tenOf = (mine: Quotas): void => {
  for (let number = 1; number <= 10; number++) {
    mine.receiveConnection(connection(number), place, at(0));
    mine.admitTo(acme, connection(number), at(0));
  }
};

test("[QUO8] a client that reconnects is admitted on credit to a full address and tenant, and stays once its lost connection ends", () => {
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

test("[QUO10] a place that becomes free goes to the oldest connection on credit, even if a new connection arrives first", () => {
  const mine = ofTen();
  tenOf(mine);
  mine.receiveConnection(connection(11), place, at(1_000));
  mine.receiveDisconnection(connection(3));
  expect(mine.onCredit).toBe(0);
  mine.receiveConnection(connection(12), place, at(70_000));
  expect([mine.takeUnplaced(at(80_000)), mine.onCredit]).toEqual([undefined, 1]);
  expect(mine.takeUnplaced(at(150_000))).toEqual({ connection: connection(12), limit: "ip" });
});

test("[QUO11] a draining gateway closes no connection on credit", () => {
  const mine = ofTen();
  tenOf(mine);
  mine.receiveConnection(connection(11), place, at(1_000));
  mine.handOver(new Map());
  expect(mine.takeUnplaced(at(80_000))).toBeUndefined();
});

test("[QUO12] each place of a draining gateway is free from the time at which its connection is to move, and occupied until then", () => {
  const [mine, other] = [ofTen(), ofTen()];
  tenOf(mine);
  mine.handOver(new Map(Array.from({ length: 10 }, (_, index) => [connection(index + 1), at(1_000 * index)])));
  const reportedAt = (ms: number): (number | undefined)[] => {
    const report = mine.currentReport(at(ms));
    other.receiveReport({ source: "mine", counts: report }, at(ms));
    return (["ip", "tenant"] as const).map((kind) => report.find((count) => count.kind === kind)?.count);
  };
  expect([reportedAt(0), reportedAt(1_000)]).toEqual([
    [8, 8],
    [7, 7],
  ]);
  for (let number = 1; number <= 4; number++) other.receiveConnection(connection(number), place, at(2_000));
  expect([reportedAt(2_000), other.mayConnect(place), other.onCredit]).toEqual([[6, 6], true, 1]);
  mine.receiveDisconnection(connection(1));
  expect(reportedAt(2_000), "a connection that ended is not omitted twice").toEqual([6, 6]);
  expect(reportedAt(9_000)).toEqual([undefined, undefined]);
});

test("[QUO9] a connection on credit is closed when its credit ends and no other was lost, and only as many as exceed each limit", () => {
  const mine = ofTen();
  tenOf(mine);
  mine.receiveConnection(connection(11), place, at(1_000));
  mine.admitTo(acme, connection(11), at(1_000));
  expect(mine.takeUnplaced(at(75_999))).toBeUndefined();
  expect(mine.takeUnplaced(at(76_000))).toEqual({ connection: connection(11), limit: "ip" });
  mine.receiveDisconnection(connection(11));
  expect([mine.takeUnplaced(at(76_000)), mine.onCredit]).toEqual([undefined, 0]);
});
