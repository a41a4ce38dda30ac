import { expect, test } from "vitest";

import type { CountsReport } from "../../shared/bus/counts-report.ts";
import type { Clock } from "../../shared/time/clock.ts";
import type { Millis, RoomKey, ServerId, UnixMillis } from "../../shared/ids.ts";
import { reportCounts } from "./sharing-host.ts";

test("[TRM1] every second gateways receive the full rooms and the number of open rooms of each tenant, the largest first", () => {
  const reports: CountsReport[] = [];
  let next: (() => void) | undefined;
  const clock: Clock = {
    now: () => 0 as Millis,
    wallNow: () => 0 as UnixMillis,
    after: (delayMs, run) => {
      expect(delayMs).toBe(1_000);
      next = run;
      return () => (next = undefined);
    },
  };
  const rooms = new Map([
    ["small", 1],
    ["large", 7],
  ]);
  const full = ["acme.hot" as RoomKey];
  const stop = reportCounts(
    "rs-1" as ServerId,
    { tenantRooms: () => rooms, fullRooms: () => full },
    { publishReport: (report) => void reports.push(report) },
    clock,
  );
  rooms.clear();
  full.pop();
  next!();
  expect(reports).toEqual([
    {
      source: "rs-1",
      counts: [
        { kind: "full-room", key: "acme.hot", count: 1 },
        { kind: "tenant-rooms", key: "large", count: 7 },
        { kind: "tenant-rooms", key: "small", count: 1 },
      ],
    },
    { source: "rs-1", counts: [] },
  ]);
  stop();
  expect(next).toBeUndefined();
});
