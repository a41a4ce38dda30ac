import { expect, test } from "vitest";

import type { ConnectionId } from "../ports.ts";
import { BehindClients, LOOK_MS } from "./behind-clients.ts";

const OPTIONS = { slowBytesMax: 1e9, slowMsMax: 1e9, behindBytesMax: 1e9 };

/** So many connections, of which some take nothing; ten seconds later. */
function p99Of(connections: number, stuck: number): number {
  const open = new Map(
    Array.from({ length: connections }, (_, index) => [
      index as ConnectionId,
      { getBufferedAmount: () => (index < stuck ? 1_000 : 0), getTopics: () => [] },
    ]),
  );
  const clients = new BehindClients(open, OPTIONS);
  for (let ms = 0; ms < 10_000; ms += LOOK_MS) clients.look();
  return clients.p99AgeMs;
}

test("[OUH4] the p99 of all connections is how long those wait that are worse off than 99 of 100", () => {
  expect([p99Of(2_000, 0), p99Of(2_000, 20)]).toEqual([0, 0]);
  expect(p99Of(2_000, 21)).toBeGreaterThan(8_000);
});

test("[OUH5] nine slow lines say nothing about a gateway, however few it has", () => {
  expect([p99Of(9, 9), p99Of(20, 9)]).toEqual([0, 0]);
  expect(p99Of(20, 10)).toBeGreaterThan(8_000);
});
