import { expect, test } from "vitest";

import type { CountsReport } from "../shared/bus/counts-report.ts";
import type { Clock } from "../shared/clock.ts";
import type { Millis, ServerId, UnixMillis } from "../shared/ids.ts";
import { tellTenantRooms } from "./tenant-rooms.ts";

test("[TRM1] every second the gateways are told how many rooms of each tenant are open, the largest first", () => {
  const told: CountsReport[] = [];
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
  const rooms = new Map([["small", 1], ["large", 7]]);
  const stop = tellTenantRooms("rs-1" as ServerId, { tenantRooms: () => rooms }, { tell: (report) => void told.push(report) }, clock);
  rooms.clear();
  next!();
  expect(told).toEqual([
    { source: "rs-1", counts: [{ kind: "tenant-rooms", key: "large", count: 7 }, { kind: "tenant-rooms", key: "small", count: 1 }] },
    { source: "rs-1", counts: [] },
  ]);
  stop();
  expect(next).toBeUndefined();
});
