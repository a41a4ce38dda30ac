import { expect, test } from "vitest";

import type { OperationsReport } from "../bus/operations-events.ts";
import type { Millis, RoomKey } from "../ids.ts";
import { TenantEvents } from "./tenant-events.ts";

const claimed = (room: string, from?: string): OperationsReport => ({
  kind: "room_claimed",
  room: room as RoomKey,
  epoch: 1,
  ...(from === undefined ? {} : { from }),
});
const ended = (room: string, why: string): OperationsReport => ({ kind: "room_ended", room: room as RoomKey, why, reason: "" });
const publishedOf = (events: TenantEvents, count: number, now: number, event: (room: string) => OperationsReport): number =>
  Array.from({ length: count }, (_, room) => events.mayPublish(event(`acme.r${room}`), now as Millis)).filter(Boolean).length;

test("[TEV1] a tenant that opens and deletes rooms in a loop causes a hundred events of each kind, then ten per minute", () => {
  const events = new TenantEvents();
  expect(publishedOf(events, 1_000, 0, (room) => claimed(room))).toBe(100);
  expect(publishedOf(events, 1_000, 0, (room) => ended(room, "deleted"))).toBe(100);
  expect(publishedOf(events, 1_000, 60_000, (room) => claimed(room))).toBe(10);
  expect(events.mayPublish(claimed("other.plan"), 0 as Millis)).toBe(true);
});

test("[TEV2] events that no client causes are published without a limit", () => {
  const events = new TenantEvents();
  expect(publishedOf(events, 1_000, 0, (room) => claimed(room, "rs-lost"))).toBe(1_000);
  expect(publishedOf(events, 1_000, 0, (room) => ended(room, "fenced"))).toBe(1_000);
  expect(publishedOf(events, 1_000, 0, () => ({ kind: "nats_lost", downMs: 1 }))).toBe(1_000);
});
