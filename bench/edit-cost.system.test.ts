/** Counts for each edit in ordinary rooms, so that a regression shows without a clock. */

import { expect, test } from "vitest";

import { costsOfCoroom } from "./edit-cost.bench.ts";

test("[ECO1] in one process an edit takes one message to NATS, two from it, and three writes of nats-server", async () => {
  const { edits, messages, processes, garbage } = await costsOfCoroom({
    rooms: 10,
    editsPerSecond: 8,
    cursorsPerSecond: 0,
    seconds: 4,
    warmUpSeconds: 2,
  });

  expect(edits).toBeGreaterThan(1_000);
  expect(messages["gateway"]!.toNats).toBeLessThan(0.2); // The owner is in the same process. Heartbeats and counts remain.
  expect(messages["room server"]!.toNats).toBeLessThan(1.2); // The append.
  expect(messages["gateway"]!.fromNats + messages["room server"]!.fromNats).toBeLessThan(2.3); // The answer to the append, and the record.
  expect(messages["document-service"]!.fromNats).toBeLessThan(2.3); // The record again, in batches: 1.4 to 1.95 in separate runs.
  expect(messages["leaderboard"]!.fromNats).toBeLessThan(1.9);
  expect(garbage / 1024).toBeLessThan(120); // 50 to 60 once everything is compiled.
  expect(processes["nats-server"]!.writes).toBeLessThan(3.4); // The store, the answer and the record. One more when the edit itself crosses NATS.
});
