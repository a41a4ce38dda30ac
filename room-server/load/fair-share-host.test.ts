import { Registry } from "prom-client";
import { expect, test } from "vitest";

import type { OperationsReport } from "../../shared/bus/operations-events.ts";
import type { Millis, RoomKey, UnixMillis } from "../../shared/ids.ts";
import { roomServerMetrics } from "../metrics.ts";
import { FairShare } from "./fair-share.ts";
import { watchBudgets } from "./sharing-host.ts";

const [hot, cool] = ["acme.hot" as RoomKey, "acme.cool" as RoomKey];

function world() {
  const totals = new Map<RoomKey, number>([
    [hot, 0],
    [cool, 90_000],
  ]);
  const reports: OperationsReport[] = [];
  const held: [RoomKey, number][] = [];
  const state = { now: 0, delayMs: 0 };
  let runTimer = (): void => {};
  const clock = {
    now: () => state.now as Millis,
    wallNow: () => state.now as UnixMillis,
    after: (_: number, run: () => void) => ((runTimer = run), () => void (runTimer = () => {})),
  };
  const registry = new Registry();
  const share = new FairShare({ shareDelayMsMin: 100, shareCalmMs: 2_000 });
  const stop = watchBudgets(
    share,
    {
      eachCost: (receive) => totals.forEach((cost, room) => receive(room, cost)),
      holdBack: (room, level) => void held.push([room, level]),
    },
    () => state.delayMs,
    { clock, metrics: roomServerMetrics(registry), operations: { report: (report) => void reports.push(report) } },
  );
  const pass = (cost?: number): void => {
    state.now += 1_000;
    if (cost !== undefined) totals.set(hot, (totals.get(hot) ?? 0) + cost);
    totals.set(cool, totals.get(cool)! + 10);
    runTimer();
  };
  return { totals, reports, held, state, registry, pass, stop };
}

test("[FAIR6] the cost of a room is that of the last second, and each change is reported", async () => {
  const { totals, reports, held, state, registry, pass, stop } = world();
  pass(500);
  state.delayMs = 130;
  pass(500);
  expect(held).toEqual([[hot, 1]]);
  expect(reports).toEqual([{ kind: "room_budget", room: hot, from: 0, to: 1, cost: 500, delayMs: 130 }]);
  expect(await registry.metrics()).toMatch(/^coroom_room_server_rooms_held_back\{level="1"\} 1$/m);
  totals.delete(hot); // Another server owns the room now.
  state.delayMs = 0;
  pass();
  expect(await registry.metrics()).toMatch(/^coroom_room_server_rooms_held_back\{level="1"\} 0$/m);
  stop();
});

test("[FAIR8] a throttled room receives its level repeatedly, because a room that ended and began again within a second does not know it; a released room receives it once", () => {
  const { totals, reports, held, state, pass, stop } = world();
  state.delayMs = 130;
  pass(500);
  state.delayMs = 60; // Between late and on time: the levels stay.
  totals.set(hot, 0);
  pass(300);
  expect(held).toEqual([
    [hot, 1],
    [hot, 1],
  ]);
  state.delayMs = 0;
  for (let second = 0; second < 5; second++) pass(20);
  expect(held.slice(2)).toEqual([
    [hot, 1],
    [hot, 1],
    [hot, 0],
  ]);
  expect(reports.map((report) => report.kind === "room_budget" && [report.from, report.to])).toEqual([
    [0, 1],
    [1, 0],
  ]);
  stop();
});
