import { expect, test } from "vitest";

import type { Clock } from "../../shared/time/clock.ts";
import type { Millis, UnixMillis } from "../../shared/ids.ts";
import { ReadingInterval } from "./jetstream-activities.ts";

/** Rings only when a test says so. */
function begin() {
  let timers: { ms: number; run: () => void }[] = [];
  const after = (ms: number, run: () => void) => {
    const timer = { ms, run };
    timers.push(timer);
    return () => void (timers = timers.filter((other) => other !== timer));
  };
  const clock: Clock = { now: () => 0 as Millis, wallNow: () => 0 as UnixMillis, after };
  const ring = async (ms: number) => {
    const due = timers.filter((timer) => timer.ms === ms);
    timers = timers.filter((timer) => timer.ms !== ms);
    for (const { run } of due) run();
    await new Promise(setImmediate);
  };
  const pace = new ReadingInterval(clock, { restMs: () => 100, restMsMin: 2, waitMsMax: 50 });
  const told: string[] = [];
  const wish = (name: string) => void pace.readNow().then(() => told.push(name));
  const read = (signal = new AbortController().signal) => void pace.rest(signal).then(() => told.push("reads"));
  return { ring, told, wish, read, waiting: () => timers.map(({ ms }) => ms).sort((a, b) => a - b) };
}

test("[PACE1] without requests, the reader waits for its full interval", async () => {
  const { ring, told, read } = begin();
  read();
  await ring(100);
  expect(told).toEqual(["reads"]);
});

test("[PACE2] a request is answered after a read that began later", async () => {
  const { ring, told, read, wish } = begin();
  read();
  wish("ann");
  await ring(2);
  expect(told).toEqual(["reads"]);
  read(); // What it has read is handed over.
  await ring(0);
  expect(told).toEqual(["reads", "ann"]);
});

test("[PACE3] a request during a read waits for the next read, which begins immediately", async () => {
  const { ring, told, read, wish } = begin();
  read();
  await ring(100);
  wish("ann");
  read();
  await ring(0);
  expect(told).toEqual(["reads"]);
  await ring(2);
  read();
  await ring(0);
  expect(told).toEqual(["reads", "reads", "ann"]);
});

test("[PACE4] a request is answered after a while even if the reader does not come", async () => {
  const { ring, told, wish, waiting } = begin();
  wish("ann");
  await ring(50);
  expect(told).toEqual(["ann"]);
  expect(waiting()).toEqual([]);
});

test("[PACE5] a reader that is aborted does not wait", async () => {
  const { told, read, ring } = begin();
  const over = new AbortController();
  read(over.signal);
  over.abort();
  await ring(0);
  expect(told).toEqual(["reads"]);
});
