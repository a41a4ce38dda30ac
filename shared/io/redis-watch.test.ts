import type { Redis } from "ioredis";
import { expect, test } from "vitest";

import { FakeClock } from "../testing/fake-clock.ts";
import { watchRedis } from "./redis.ts";

function connectionOf(redis: { ping(): Promise<string>; info(): Promise<string> }) {
  return { redis: redis as unknown as Redis, receiveCheck: () => {} };
}

test("[RAD5] Redis counts as reached only while it answers, even if its connection is open, and a metric shows this", async () => {
  const clock = new FakeClock();
  let answers = true;
  let asked = 0;
  const unreached: number[] = [];
  const info = (): Promise<string> => Promise.resolve("role:master");
  const ping = (): Promise<string> => {
    asked += 1;
    return answers ? Promise.resolve("PONG") : Promise.reject(new Error("Command timed out"));
  };
  const outages: number[] = [];
  const gauge = { set: (value: number) => void unreached.push(value) };
  const { reaches, stop } = watchRedis(connectionOf({ ping, info }), clock, gauge, (downMs) => void outages.push(downMs));
  expect(reaches()).toBeUndefined();
  await clock.advance(2_000);
  expect(reaches()).toBe(true);
  answers = false;
  await clock.advance(2_000);
  expect(reaches()).toBe(false);
  await clock.advance(2_000);
  expect([reaches(), outages]).toEqual([false, []]);
  answers = true;
  await clock.advance(2_000);
  expect([reaches(), unreached]).toEqual([true, [0, 1, 1, 0]]);
  await clock.advance(2_000);
  expect(outages, "reported once, from the first request without an answer").toEqual([4_000]);
  stop();
  await clock.advance(10_000);
  expect(asked).toBe(5);
});

test("[RAD6] a client that connects slowly at the start reports no outage; one that stays without an answer does", async () => {
  for (const [failures, reported] of [
    [1, []],
    [3, [4_000]],
  ] as const) {
    const clock = new FakeClock();
    const outages: number[] = [];
    let left: number = failures;
    const ping = (): Promise<string> => (left-- > 0 ? Promise.reject(new Error("Connection is closed.")) : Promise.resolve("PONG"));
    const { stop } = watchRedis(
      connectionOf({ ping, info: () => Promise.resolve("") }),
      clock,
      { set: () => {} },
      (downMs) => void outages.push(downMs),
    );
    for (let look = 0; look <= failures; look++) await clock.advance(2_000);
    expect(outages).toEqual(reported);
    stop();
  }
});
