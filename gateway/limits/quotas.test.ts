import { expect, test } from "vitest";

import type { Millis, RoomKey, TenantId, UserId } from "../../shared/ids.ts";
import type { ClientAddress } from "../../shared/limits/client-address.ts";
import type { ConnectionId } from "../ports.ts";
import { Quotas } from "./quotas.ts";

const at = (ms: number): Millis => ms as Millis;
const place = "203.0.113.7" as ClientAddress;
const acme = "acme" as TenantId;
const notes = "acme.notes" as RoomKey;
const ann = "ann" as UserId;
const ANN = { tenant: acme, user: "ann" };
const countsOf = (mine: Quotas): Record<string, Record<string, number>> => {
  const counts: Record<string, Record<string, number>> = {};
  for (const { kind, key, count } of mine.currentReport(at(0))) (counts[kind] ??= {})[key] = count;
  return counts;
};
/** Each connection has a user of its own. */
const admitAll = (mine: Quotas, numbers: readonly number[]): unknown[] =>
  numbers.map((number) => mine.admit({ tenant: acme, user: `user-${number}` }, connection(number), at(0)));
const editOf = (user: UserId, bytes = 1) => ({ author: { user }, payload: new Uint8Array(bytes) });
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
    "user": 1_000,
    "user-edits": 1_000,
  },
  reportShare: 0,
  reportSilenceMsMax: 3_000,
  creditMs: 75_000,
  deliveries: { room: { burst: 100, perSecond: 10 }, tenant: { burst: 1e9, perSecond: 1e9 } },
};
const quotas = (): Quotas => new Quotas(OPTIONS);

test("[QUO1] an address has a maximum of connections, and a connection that ends no longer counts", () => {
  const mine = quotas();
  for (const number of [1, 2]) mine.receiveConnection(connection(number), place);
  expect(mine.mayConnect(place)).toBe(false);
  expect(mine.mayConnect(undefined)).toBe(true); // Connections from this machine have no address.
  mine.receiveDisconnection(connection(1));
  expect(mine.mayConnect(place)).toBe(true);
});

test("[QUO2] a tenant has a maximum of connections; a renewed token takes no second place, and a refused connection none", () => {
  const mine = quotas();
  for (const number of [1, 2, 3]) mine.receiveConnection(connection(number), undefined);
  expect(admitAll(mine, [1, 1, 2, 3])).toEqual([undefined, undefined, undefined, "tenant"]);
  mine.receiveDisconnection(connection(3));
  expect(countsOf(mine)).toMatchObject({ tenant: { acme: 2 } });
  mine.receiveDisconnection(connection(1));
  expect(countsOf(mine)).toEqual({ tenant: { acme: 1 }, user: { "acme user-2": 1 } });
});

test("[QUO13] a user has a maximum of connections over all rooms and gateways, and other users at the same address are not affected", () => {
  const mine = new Quotas({ ...OPTIONS, limits: { ...OPTIONS.limits, user: 2, tenant: 1_000 } });
  mine.receiveReport({ source: "other", counts: [{ kind: "user", key: "acme ann", count: 1 }] }, at(0));
  for (const number of [1, 2, 3]) mine.receiveConnection(connection(number), undefined);
  expect([1, 2].map((number) => mine.admit(ANN, connection(number), at(0)))).toEqual([undefined, "user"]);
  expect(mine.admit({ ...ANN, user: "bob" }, connection(3), at(0))).toBeUndefined();
  expect(mine.admit({ tenant: "other" as TenantId, user: "ann" }, connection(2), at(0)), "a user of another tenant").toBeUndefined();
});

test("[QUO14] a connection counts for its address only until its token is valid, so any number of users may share an address", () => {
  const mine = new Quotas({ ...OPTIONS, limits: { ...OPTIONS.limits, tenant: 1_000 } });
  for (let number = 1; number <= 50; number++) {
    expect(mine.mayConnect(place)).toBe(true);
    mine.receiveConnection(connection(number), place);
    admitAll(mine, [number]);
  }
  expect([countsOf(mine)["ip"], mine.addressOf(connection(1))]).toEqual([undefined, place]);
  for (const number of [51, 52]) mine.receiveConnection(connection(number), place);
  mine.receiveDisconnection(connection(1));
  expect(mine.mayConnect(place), "the end of another connection frees no place").toBe(false);
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
  expect([1, 2, 3].map(() => mine.takeEdit(notes, editOf(ann), at(0)))).toEqual([undefined, undefined, "tenant-edits"]);
  expect(mine.endSecond(at(1_000))).toContainEqual({ kind: "tenant-edits", key: "acme", count: 3 });
  mine.receiveReport({ source: "other", counts: [{ kind: "tenant-edits", key: "acme", count: 3 }] }, at(1_000));
  mine.takeEdit(notes, editOf(ann), at(0));
  mine.endSecond(at(2_000));
  expect([1, 2].map(() => mine.takeEdit(notes, editOf(ann), at(0)))).toEqual(["tenant-edits", "tenant-edits"]); // The gateway's share is a quarter of two.
});

test("[QUO15] a user has a maximum of edits per second over all rooms and gateways, and refused edits do not count for the tenant", () => {
  const mine = new Quotas({ ...OPTIONS, limits: { ...OPTIONS.limits, "user-edits": 2 } });
  const other = "acme.other" as RoomKey;
  expect([notes, other, notes, other].map((room) => mine.takeEdit(room, editOf(ann), at(0)))).toEqual([
    undefined,
    undefined,
    "user-edits",
    "user-edits",
  ]);
  expect(mine.endSecond(at(1_000))).toEqual([
    { kind: "user-edits", key: "acme ann", count: 4 },
    { kind: "tenant-edits", key: "acme", count: 2 },
  ]);
  mine.receiveReport({ source: "other", counts: [{ kind: "user-edits", key: "acme bob", count: 2 }] }, at(1_000));
  expect([ann, "bob" as UserId].map((user) => mine.takeEdit(notes, editOf(user), at(0)))).toEqual([undefined, "user-edits"]);
});

test("[QUO16] an edit costs its bytes times members of its room on all gateways; then its room is at a limit, and no other room", () => {
  const mine = new Quotas({ ...OPTIONS, limits: { ...OPTIONS.limits, "tenant-edits": 100 } });
  mine.receiveMembers(notes, 2);
  mine.receiveReport({ source: "other", counts: [{ kind: "room", key: notes, count: 3 }] }, at(0));
  const take = (room: RoomKey, bytes: number) => mine.takeEdit(room, editOf(ann, bytes), at(0));
  expect([take(notes, 20), take(notes, 1), take("acme.other" as RoomKey, 20)]).toEqual([undefined, "room-delivery", undefined]);
});

test("[QUO17] edits of other gateways cost a room as much as its own", () => {
  const mine = quotas();
  mine.receiveMembers(notes, 2);
  mine.receiveOthersEdits(notes, 50, at(0));
  expect(mine.takeEdit(notes, editOf(ann), at(0))).toBe("room-delivery");
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
  for (const number of [1, 2, 3, 4]) mine.receiveConnection(connection(number), undefined);
  admitAll(mine, [1, 2, 3, 4]);
  for (let edits = 0; edits < 3; edits++) mine.takeEdit(notes, editOf(ann), at(0));
  expect(mine.takeAtLimit()).toEqual([
    { tenant: acme, limit: "tenant", times: 2 },
    { tenant: acme, limit: "tenant-edits", times: 1 },
  ]);
  mine.receiveReport({ source: "rs-1", counts: [{ kind: "tenant-rooms", key: acme, count: 2 }] }, at(0));
  mine.mayOpenRoomOf(acme);
  expect(mine.takeAtLimit()).toEqual([{ tenant: acme, limit: "tenant-rooms", times: 1 }]);
  expect(mine.takeAtLimit()).toEqual([]);
});

test("[QUO18] a tenant whose edits cost more than a gateway writes for it is reported too", () => {
  const deliveries = { ...OPTIONS.deliveries, tenant: { burst: 10, perSecond: 1 } };
  const mine = new Quotas({ ...OPTIONS, limits: { ...OPTIONS.limits, "tenant-edits": 100 }, deliveries });
  mine.receiveMembers(notes, 2);
  expect([1, 2].map(() => mine.takeEdit(notes, editOf(ann, 5), at(0)))).toEqual([undefined, "tenant-delivery"]);
  expect(mine.takeAtLimit()).toEqual([{ tenant: acme, limit: "tenant-delivery", times: 1 }]);
});

/** Limits of ten connections each, so that one connection may be admitted on credit. */
const ofTen = (): Quotas => new Quotas({ ...OPTIONS, limits: { ...OPTIONS.limits, user: 10, tenant: 10 } });
const connectAnn = (mine: Quotas, number: number, ms = 0): unknown => {
  mine.receiveConnection(connection(number), place);
  return mine.admit(ANN, connection(number), at(ms));
};
const connectTen = (mine: Quotas): void => {
  for (let number = 1; number <= 10; number++) connectAnn(mine, number);
};

test("[QUO8] a client that reconnects is admitted on credit to a full user and tenant, and stays once its lost connection ends", () => {
  const mine = ofTen();
  connectTen(mine);
  expect([connectAnn(mine, 11, 1_000), mine.onCredit]).toEqual([undefined, 2]);
  expect(connectAnn(mine, 12, 1_000), "a tenth is all").toBe("user");
  expect(mine.admit({ ...ANN, user: "bob" }, connection(12), at(1_000))).toBe("tenant");
  mine.receiveDisconnection(connection(3));
  expect([mine.takeUnplaced(at(76_000)), mine.onCredit]).toEqual([undefined, 0]);
});

test("[QUO10] a place that becomes free goes to the oldest connection on credit, even if a new connection arrives first", () => {
  const mine = new Quotas({ ...OPTIONS, limits: { ...OPTIONS.limits, user: 10, tenant: 1_000 } });
  connectTen(mine);
  connectAnn(mine, 11, 1_000);
  mine.receiveDisconnection(connection(3));
  expect(mine.onCredit).toBe(0);
  connectAnn(mine, 12, 70_000);
  expect([mine.takeUnplaced(at(80_000)), mine.onCredit]).toEqual([undefined, 1]);
  expect(mine.takeUnplaced(at(150_000))).toEqual({ connection: connection(12), limit: "user" });
});

test("[QUO11] a draining gateway closes no connection on credit", () => {
  const mine = ofTen();
  connectTen(mine);
  connectAnn(mine, 11, 1_000);
  mine.handOver(new Map());
  expect(mine.takeUnplaced(at(80_000))).toBeUndefined();
});

test("[QUO12] each place of a draining gateway is free from the time at which its connection is to move, and occupied until then", () => {
  const [mine, other] = [ofTen(), ofTen()];
  connectTen(mine);
  mine.handOver(new Map(Array.from({ length: 10 }, (_, index) => [connection(index + 1), at(1_000 * index)])));
  const reportedAt = (ms: number): (number | undefined)[] => {
    const report = mine.currentReport(at(ms));
    other.receiveReport({ source: "mine", counts: report }, at(ms));
    return (["user", "tenant"] as const).map((kind) => report.find((count) => count.kind === kind)?.count);
  };
  expect([reportedAt(0), reportedAt(1_000)]).toEqual([
    [8, 8],
    [7, 7],
  ]);
  for (let number = 1; number <= 4; number++) connectAnn(other, number, 2_000);
  expect([reportedAt(2_000), other.onCredit]).toEqual([[6, 6], 2]);
  mine.receiveDisconnection(connection(1));
  expect(reportedAt(2_000), "a connection that ended is not omitted twice").toEqual([6, 6]);
  expect(reportedAt(9_000)).toEqual([undefined, undefined]);
});

test("[QUO9] a connection on credit is closed when its credit ends and no other was lost, and only as many as exceed each limit", () => {
  const mine = ofTen();
  connectTen(mine);
  connectAnn(mine, 11, 1_000);
  expect(mine.takeUnplaced(at(75_999))).toBeUndefined();
  expect(mine.takeUnplaced(at(76_000))).toEqual({ connection: connection(11), limit: "user" });
  mine.receiveDisconnection(connection(11));
  expect([mine.takeUnplaced(at(76_000)), mine.onCredit]).toEqual([undefined, 0]);
});
