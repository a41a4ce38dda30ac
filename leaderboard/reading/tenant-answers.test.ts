import { expect, test } from "vitest";

import type { Clock } from "../../shared/time/clock.ts";
import { type Millis, type RoomId, roomKey, type TenantId, type UnixMillis } from "../../shared/ids.ts";
import type { TenantPage } from "../ports.ts";
import { TenantReader } from "./reads-host.ts";

const ACME = "acme" as TenantId;
const NOON = Date.UTC(2026, 6, 2, 12) as UnixMillis;
const room = (name: string, rank: number) => ({ rank, room: name as RoomId, points: 10 - rank });
const EMPTY: TenantPage = { rooms: 0, people: 0, ranking: [] };
/** Three rooms had points, and the archive contains two. */
const ARCHIVED: TenantPage = { rooms: 3, people: 40, ranking: [room("busy", 1), room("calm", 2)] };

function begin({ redis = EMPTY, archived }: { redis?: TenantPage; archived?: TenantPage }) {
  const clock: Clock = { now: () => 0 as Millis, wallNow: () => NOON, after: () => () => {} };
  const none = () => Promise.reject(new Error("only read"));
  const tenants = {
    addUsers: none,
    sendTotals: none,
    remove: none,
    page: () => Promise.resolve(redis),
    rankOf: (key: string) => Promise.resolve(redis.ranking.find((ranked) => roomKey(ACME, ranked.room) === key)),
  };
  const report = { service: "s", through: NOON, told: NOON, isRebuilding: false };
  return new TenantReader(
    { tenants, tenantArchive: { write: none, read: () => Promise.resolve(archived) }, progress: { read: () => Promise.resolve(report) } },
    { logPartitions: 1, boardBehindMsMax: 1_000 },
    clock,
  );
}

test("[TEN1] a closed window that Redis removed is read from the archive, and the answer is marked as archived", async () => {
  const reader = begin({ archived: ARCHIVED });
  const page = await reader.page(ACME, "2026-07-01", { offset: 0, limit: 2 });
  expect(page).toMatchObject({
    kind: "rooms",
    about: { isArchived: true, isBehind: false, rooms: 3, people: 40 },
    ranking: ARCHIVED.ranking,
    nextOffset: undefined,
  });
  expect(await reader.room(roomKey(ACME, "calm" as RoomId), "2026-07-01")).toMatchObject({
    kind: "room",
    about: { isArchived: true },
    own: { rank: 2 },
  });
  expect(await reader.room(roomKey(ACME, "last" as RoomId), "2026-07-01"), "it may have points").toEqual({ kind: "beyond-archive" });
  const whole = begin({ archived: { ...ARCHIVED, rooms: 2 } });
  expect(await whole.room(roomKey(ACME, "last" as RoomId), "2026-07-01"), "it has none").toEqual({ kind: "not-ranked" });
});

test("[TEN2] no page or cursor goes beyond the rooms that the archive names", async () => {
  const [first, second] = [
    await begin({ archived: ARCHIVED }).page(ACME, "2026-07-01", { offset: 0, limit: 1 }),
    await begin({ archived: ARCHIVED }).page(ACME, "2026-07-01", { offset: 1, limit: 2 }),
  ];
  expect([first, second]).toMatchObject([
    { ranking: [room("busy", 1)], nextOffset: 1 },
    { ranking: [room("calm", 2)], nextOffset: undefined },
  ]);
  expect(await begin({ archived: ARCHIVED }).page(ACME, "2026-07-01", { offset: 2, limit: 2 })).toEqual({ kind: "too-deep" });
});

test("[TEN3] a window that Redis has is read there, and a running window never from the archive", async () => {
  const redis = { rooms: 1, people: 2, ranking: [room("busy", 1)] };
  expect(await begin({ redis, archived: ARCHIVED }).page(ACME, "2026-07-01", { offset: 0, limit: 2 })).toMatchObject({
    about: { isArchived: false, rooms: 1 },
  });
  expect(await begin({ archived: ARCHIVED }).page(ACME, "day", { offset: 0, limit: 2 })).toMatchObject({
    about: { isArchived: false, rooms: 0 },
    ranking: [],
  });
  expect(await begin({}).page(ACME, "2026-07-01", { offset: 0, limit: 2 })).toEqual({ kind: "unknown-window" });
});
