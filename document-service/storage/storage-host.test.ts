import { expect, test } from "vitest";

import { encodeJson } from "../../shared/bus/json-messages.ts";
import type { FullStorage } from "../../shared/bus/storage-messages.ts";
import { type RoomId, type RoomKey, roomKey, type TenantId } from "../../shared/ids.ts";
import { tenantBytesMax } from "../../shared/settings/tenant-bytes.ts";
import { FakeClock } from "../../shared/testing/fake-clock.ts";
import { NO_STORAGE_QUESTIONS, SILENT_STORAGE } from "../testing/one-partition.ts";
import { StorageHost } from "./storage-host.ts";

/** The default of nats-server. Above it the client throws. */
const MAX_PAYLOAD = 1024 ** 2;
const tenantNamed = (number: number) => String(number).padStart(64, "t") as TenantId;

test("[STB12] a report of full rooms and tenants fits into one NATS message, however many there are and however long their names", async () => {
  const clock = new FakeClock();
  const sent: FullStorage[] = [];
  const partition = (first: number, full: ReadonlyMap<RoomKey, number>) => ({
    isHeld: true,
    stored: {
      adoptFull: () => {},
      full,
      tenants: new Map(Array.from({ length: 5_000 }, (_, index) => [tenantNamed(first + index), 1e15] as const)),
    },
    takeLimitChanges: () => [],
    measure: () => Promise.resolve(undefined),
  });
  const rooms = Array.from({ length: 2_000 }, (_, index) => roomKey(tenantNamed(1), `${"漢".repeat(124)}${1_000 + index}` as RoomId));
  const gauge = { set: () => {} };
  const host = new StorageHost(
    [partition(0, new Map(rooms.map((room) => [room, 1e15]))), partition(5_000, new Map())] as never,
    { storage: { ...SILENT_STORAGE, publishFull: (full) => void sent.push(full) }, storageQuestions: NO_STORAGE_QUESTIONS },
    { roomBytesMax: 1e15, tenantBytesMax: tenantBytesMax("1000") },
    {
      clock,
      metrics: { storedBytes: gauge, fullRooms: gauge, fullTenants: gauge },
      operations: { report: () => {} },
      partitionOf: () => 0,
    } as never,
  );
  await clock.advance(6_000);
  const complete = sent.filter(({ tenants }) => tenants !== undefined);
  expect(complete.length).toBeGreaterThan(0);
  for (const report of complete) {
    expect(encodeJson(report).byteLength).toBeLessThan(MAX_PAYLOAD);
    expect(report.tenants).toHaveLength(4_000);
    expect(report.rooms.length).toBeGreaterThan(300);
  }
  host.stop();
});
