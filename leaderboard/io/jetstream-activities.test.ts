import { expect, test } from "vitest";

import type { Clock } from "../../shared/time/clock.ts";
import type { Millis, UnixMillis } from "../../shared/ids.ts";
import { ReadingInterval } from "./jetstream-activities.ts";

/** Timers fire only when a test calls `ring`. */
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
  const interval = new ReadingInterval(clock, { restMs: () => 100, restMsMin: 2, waitMsMax: 50 });
  const answered: string[] = [];
  const request = (name: string) => void interval.readNow().then(() => answered.push(name));
  const read = (signal = new AbortController().signal) => void interval.rest(signal).then(() => answered.push("reads"));
  return { ring, answered, request, read, waiting: () => timers.map(({ ms }) => ms).sort((a, b) => a - b) };
}

test("[PACE1] without requests, the reader waits for its full interval", async () => {
  const { ring, answered, read } = begin();
  read();
  await ring(100);
  expect(answered).toEqual(["reads"]);
});

test("[PACE2] a request is answered after a read that began later", async () => {
  const { ring, answered, read, request } = begin();
  read();
  request("ann");
  await ring(2);
  expect(answered).toEqual(["reads"]);
  read(); // The previous read is delivered.
  await ring(0);
  expect(answered).toEqual(["reads", "ann"]);
});

test("[PACE3] a request during a read waits for the next read, which begins immediately", async () => {
  const { ring, answered, read, request } = begin();
  read();
  await ring(100);
  request("ann");
  read();
  await ring(0);
  expect(answered).toEqual(["reads"]);
  await ring(2);
  read();
  await ring(0);
  expect(answered).toEqual(["reads", "reads", "ann"]);
});

test("[PACE4] a request is answered after a while even if the reader does not come", async () => {
  const { ring, answered, request, waiting } = begin();
  request("ann");
  await ring(50);
  expect(answered).toEqual(["ann"]);
  expect(waiting()).toEqual([]);
});

test("[PACE5] a reader that is aborted does not wait", async () => {
  const { answered, read, ring } = begin();
  const over = new AbortController();
  read(over.signal);
  over.abort();
  await ring(0);
  expect(answered).toEqual(["reads"]);
});

test("[PACE6] a request that was answered after a while does not hurry the reader any more", async () => {
  const { ring, read, request, waiting } = begin();
  request("ann");
  await ring(50);
  read();
  expect(waiting()).toEqual([100]);
});
