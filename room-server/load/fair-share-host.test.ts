import { Registry } from "prom-client";
import { expect, test } from "vitest";

import type { OperationsReport } from "../../shared/bus/operations-events.ts";
import type { Millis, RoomKey, UnixMillis } from "../../shared/ids.ts";
import { FairShare } from "./fair-share.ts";
import { watchBudgets } from "./fair-share-host.ts";
import { roomServerMetrics } from "../metrics.ts";

const [hot, cool] = ["acme.hot" as RoomKey, "acme.cool" as RoomKey];

test("[FAIR6] what counts is what a room cost in the last second, and each change is told", async () => {
  const totals = new Map<RoomKey, number>([[hot, 0], [cool, 90_000]]);
  const reports: OperationsReport[] = [];
  const held: [RoomKey, number][] = [];
  let [now, delayMs] = [0, 0];
  let look = (): void => {};
  const clock = { now: () => now as Millis, wallNow: () => now as UnixMillis, after: (_: number, run: () => void) => ((look = run), () => void (look = () => {})) };
  const registry = new Registry();
  const share = new FairShare({ shareDelayMsMin: 100, shareCalmMs: 2_000 });
  const stop = watchBudgets(share, { costs: () => totals, holdBack: (room, level) => void held.push([room, level]) }, () => delayMs, { clock, metrics: roomServerMetrics(registry), operations: { report: (report) => void reports.push(report) } });
  const pass = (cost: number): void => {
    now += 1_000;
    totals.set(hot, totals.get(hot)! + cost);
    totals.set(cool, totals.get(cool)! + 10);
    look();
  };
  pass(500);
  delayMs = 130;
  pass(500);
  expect(held).toEqual([[hot, 1]]);
  expect(reports).toEqual([{ kind: "room_budget", room: hot, from: 0, to: 1, cost: 500, delayMs: 130 }]);
  expect(await registry.metrics()).toMatch(/^coroom_room_server_rooms_held_back\{level="1"\} 1$/m);
  totals.delete(hot); // Another server has it now.
  delayMs = 0;
  now += 1_000;
  look();
  expect(await registry.metrics()).toMatch(/^coroom_room_server_rooms_held_back\{level="1"\} 0$/m);
  stop();
});
