import { expect, test } from "vitest";

import type { EditsRecord } from "../../shared/bus/record.ts";
import type { ClientId, Epoch, Seq, UnixMillis, UserId } from "../../shared/ids.ts";
import { Watermarks } from "./watermarks.ts";

const ann = "annannannannann1" as ClientId;
const bob = "bobbobbobbobbob1" as ClientId;
const users = new Map([
  [ann, "ann" as UserId],
  [bob, "bob" as UserId],
]);
const options = { silenceMsMax: 1_000, clientsMax: 10, bytesMax: 100_000 };

/** A record that the log stored at this time. The date of its room server is wrong. */
function record(loggedAt: number, firstSeq: number, ...edits: readonly [ClientId, number][]): [EditsRecord, UnixMillis] {
  const all = edits.map(([client, counter]) => ({ client, counter, parentSeq: 0 as Seq, payload: new Uint8Array() }));
  const made: EditsRecord = {
    kind: "edits",
    id: "server.1",
    time: (loggedAt ** 2 + 10 ** 12) as UnixMillis,
    users,
    edits: { epoch: 1 as Epoch, firstSeq: firstSeq as Seq, edits: all },
    editsBytes: new Uint8Array(),
  };
  return [made, loggedAt as UnixMillis];
}

test("[WMK1] each client's last counter is listed with its seq", () => {
  const watermarks = new Watermarks([], options);
  watermarks.receiveEdits(...record(10, 1, [ann, 1], [bob, 1], [ann, 2]));
  watermarks.receiveEdits(...record(20, 4, [bob, 2]));
  expect(watermarks.all()).toEqual([
    { client: ann, user: "ann", counter: 2, seq: 3, lastSeen: 10 },
    { client: bob, user: "bob", counter: 2, seq: 4, lastSeen: 20 },
  ]);
});

test("[WMK2] a client that is silent for too long, by the log's dates, is forgotten", () => {
  const watermarks = new Watermarks([], options);
  watermarks.receiveEdits(...record(0, 1, [ann, 1]));
  watermarks.receiveEdits(...record(1_000, 2, [bob, 1]));
  expect(watermarks.all().map(({ client }) => client)).toEqual([ann, bob]);
  watermarks.receiveEdits(...record(1_001, 3, [bob, 2]));
  expect(watermarks.all().map(({ client }) => client)).toEqual([bob]);
});

test("[WMK3] over the limit the longest-silent client is forgotten, after a restart too", () => {
  const known = [
    { client: bob, user: "bob" as UserId, counter: 7, seq: 9 as Seq, lastSeen: 50 as UnixMillis },
    { client: ann, user: "ann" as UserId, counter: 5, seq: 8 as Seq, lastSeen: 40 as UnixMillis },
  ];
  const watermarks = new Watermarks(known, { ...options, clientsMax: 2 });
  const carol = "carolcarolcarol1" as ClientId;
  users.set(carol, "carol" as UserId);
  watermarks.receiveEdits(...record(60, 10, [carol, 1]));
  expect(watermarks.all().map(({ client }) => client)).toEqual([bob, carol]);
});

test("[WMK4] thousands of writers with the longest names fit into a checkpoint: the longest-silent are forgotten and counted", () => {
  const bytesMax = 768 * 1024;
  const watermarks = new Watermarks([], { silenceMsMax: 3_600_000, clientsMax: 5_000, bytesMax });
  const user = "\u{1f600}".repeat(64) as UserId; // 128 characters, 256 bytes.
  const clients = Array.from({ length: 5_000 }, (_, index) => `client${String(index).padStart(10, "0")}` as ClientId);
  for (const client of clients) users.set(client, user);
  let forgotten = 0;
  clients.forEach(
    (client, index) =>
      (forgotten += watermarks.receiveEdits(...record(1_700_000_000_000 + index, index + 1, [client, Number.MAX_SAFE_INTEGER]))),
  );
  const kept = watermarks.all();
  const bytes = new TextEncoder().encode(JSON.stringify(kept)).byteLength;
  expect(bytes).toBeLessThanOrEqual(bytesMax + 2);
  expect(bytes).toBeGreaterThan(0.95 * bytesMax); // The limit counts the longest numbers.
  expect(kept.map(({ client }) => client)).toEqual(clients.slice(forgotten));
  expect(kept.length).toBeGreaterThan(1_500);
});
