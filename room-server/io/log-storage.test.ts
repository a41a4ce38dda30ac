import { Registry } from "prom-client";
import { expect, test } from "vitest";

import { FakeClock } from "../../shared/testing/fake-clock.ts";
import { SILENT_LOG } from "../../shared/testing/silent-log.ts";
import { roomServerMetrics } from "../metrics.ts";
import { LogStorage } from "./log-storage.ts";

function logStorage() {
  const clock = new FakeClock();
  const registry = new Registry();
  const logged: string[] = [];
  const write = (_: object, text: string) => void logged.push(text);
  const storage = new LogStorage({ clock, log: { ...SILENT_LOG, info: write, error: write }, metrics: roomServerMetrics(registry) });
  const [changes, speeds]: [(string | undefined)[], object[]] = [[], []];
  storage.onChange((failure) => void changes.push(failure));
  storage.onSpeedChange((speed) => void speeds.push(speed));
  const gauge = async () => (await registry.getSingleMetric("coroom_room_server_log_full")!.get()).values[0]?.value;
  return { clock, storage, logged, changes, speeds, gauge };
}

test("[LGST1] a log that stores no records is reported once, with its remedy, and so is its end", async () => {
  const { storage, logged, changes, gauge } = logStorage();
  storage.receiveStored();
  expect([storage.obstacle, logged, changes, await gauge()]).toEqual([undefined, [], [], 0]);
  for (const failure of ["full", "broken"] as const) storage.receiveFailure(failure, "insufficient storage");
  expect([storage.obstacle, changes, await gauge()]).toEqual([expect.stringMatching(/is full\. Free disk space/), ["full"], 1]);
  for (let append = 0; append < 2; append++) storage.receiveStored();
  expect([storage.obstacle, changes, await gauge()]).toEqual([undefined, ["full", undefined], 0]);
  expect(logged).toEqual([expect.stringContaining("JetStream refuses records"), expect.stringContaining("stores records again")]);
});

test("[LGST2] slow appends are reported once as they begin, and once when no append was slow for five seconds", () => {
  const { clock, storage, speeds } = logStorage();
  const append = (atMs: number, tookMs: number): void => {
    clock.turn(atMs - clock.now());
    storage.receiveAppend(tookMs);
  };
  append(2_000, 999);
  expect(speeds).toEqual([]);
  append(3_000, 1_000);
  append(5_000, 2_500);
  append(7_500, 1_500);
  append(12_000, 10);
  expect(speeds).toEqual([{ state: "slow", forMs: 1_000, worstMs: 1_000 }]);
  clock.turn(499);
  expect(speeds).toHaveLength(1);
  clock.turn(1);
  expect(speeds[1]).toEqual({ state: "normal", forMs: 5_500, worstMs: 2_500 });
  clock.turn(60_000);
  append(clock.now() + 1, 1_200);
  expect(speeds.slice(2)).toEqual([{ state: "slow", forMs: 1_200, worstMs: 1_200 }]);
});
