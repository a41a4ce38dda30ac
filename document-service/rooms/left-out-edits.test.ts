import { Registry } from "prom-client";
import { expect, test } from "vitest";

import type { Epoch, Millis, RoomKey, Seq } from "../../shared/ids.ts";
import { limitedLog } from "../../shared/process/limited-log.ts";
import { FakeClock } from "../../shared/testing/fake-clock.ts";
import { documentServiceMetrics } from "../metrics.ts";
import { LeftOutEdits } from "./left-out-edits.ts";
import { reportRoom } from "./room-reports-host.ts";

const at = (ms: number) => ms as Millis;

test("[LOE1] a room has one event a minute, which counts all its edits since the event before", () => {
  const edits = new LeftOutEdits();
  const [a, b] = ["acme.a", "acme.b"] as RoomKey[] as [RoomKey, RoomKey];
  expect([edits.receive(a, 2, at(0)), edits.receive(a, 3, at(59_999)), edits.receive(b, 1, at(59_999))]).toEqual([2, undefined, 1]);
  expect([edits.receive(a, 4, at(60_000)), edits.receive(a, 1, at(120_000))]).toEqual([7, 1]);
});

test("[LOE2] a tenant has ten events a minute for all its rooms, a room without one is counted for its next, and other tenants have theirs", () => {
  const edits = new LeftOutEdits();
  const told = (tenant: string, now: number) =>
    Array.from({ length: 20 }, (_, room) => edits.receive(`${tenant}.${room}` as RoomKey, 1, at(now))).filter(
      (count) => count !== undefined,
    );
  expect([told("acme", 0).length, told("other", 0).length]).toEqual([10, 10]);
  expect([told("acme", 1_000), told("acme", 7_000)]).toEqual([[], [3]]);
});

test("[LOE3] lines of the log about edits that are left out are limited, whatever the number of rooms", () => {
  let lines = 0;
  const line = (): void => void (lines += 1);
  const clock = new FakeClock();
  const log = limitedLog({ debug: line, info: line, warn: line, error: line }, clock);
  const deps = {
    clock,
    log,
    metrics: documentServiceMetrics(new Registry()),
    operations: { report: () => {} },
    leftOut: new LeftOutEdits(),
  };
  const through = { epoch: 1 as Epoch, seq: 1 as Seq, streamSeq: 1, recordId: undefined, epochs: [] };
  for (let index = 0; index < 100; index++)
    reportRoom(`acme.room-${index}` as RoomKey, { kind: "edits-refused", refused: 1, through, users: [] }, deps);
  expect(lines).toBe(10);
});
