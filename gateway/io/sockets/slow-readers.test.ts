import { expect, test } from "vitest";

import type { ConnectionId } from "../../ports.ts";
import { SlowReaders, CHECK_MS } from "./slow-readers.ts";

const OPTIONS = { slowBytesMax: 1e9, slowMsMax: 1e9, behindBytesMax: 1e9 };

/** The p99 after ten seconds with this many connections, of which `stuck` read nothing. */
function p99Of(connections: number, stuck: number): number {
  const open = new Map(
    Array.from({ length: connections }, (_, index) => [
      index as ConnectionId,
      { getBufferedAmount: () => (index < stuck ? 1_000 : 0), getTopics: () => [] },
    ]),
  );
  const clients = new SlowReaders(open, OPTIONS);
  for (let ms = 0; ms < 10_000; ms += CHECK_MS) clients.look();
  return clients.p99AgeMs;
}

test("[OUH4] the p99 is the age that 1 of 100 connections exceeds", () => {
  expect([p99Of(2_000, 0), p99Of(2_000, 20)]).toEqual([0, 0]);
  expect(p99Of(2_000, 21)).toBeGreaterThan(8_000);
});

test("[OUH6] a connection is lagging when it has read nothing for longer than a second", () => {
  const clients = new SlowReaders(new Map([[1 as ConnectionId, { getBufferedAmount: () => 1_000, getTopics: () => [] }]]), OPTIONS);
  const laggingAfter = (ms: number): number => {
    for (let passed = 0; passed < ms; passed += CHECK_MS) clients.look();
    return clients.laggingCount;
  };
  expect([laggingAfter(1_000), laggingAfter(3_000)]).toEqual([0, 1]);
});

test("[OUH5] nine slow connections do not make a gateway slow, however few connections it has", () => {
  expect([p99Of(9, 9), p99Of(20, 9)]).toEqual([0, 0]);
  expect(p99Of(20, 10)).toBeGreaterThan(8_000);
});

test("[OUH7] clients on slow lines that catch up do not make a gateway slow", () => {
  const open = new Map(
    Array.from({ length: 20 }, (_, index) => [index as ConnectionId, { getBufferedAmount: () => 1_000, getTopics: () => [] }]),
  );
  const p99With = (catchingUp: number): number => {
    const clients = new SlowReaders(open, OPTIONS, (connection) => connection < catchingUp);
    for (let ms = 0; ms < 10_000; ms += CHECK_MS) clients.look();
    return clients.p99AgeMs;
  };
  expect(p99With(10)).toBeGreaterThan(8_000);
  expect([p99With(11), p99With(20)]).toEqual([0, 0]);
});
