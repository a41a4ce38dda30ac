/** Watches of the KV buckets on a real nats-server. */

import { afterAll, beforeAll, expect, test } from "vitest";

import { encodeJson } from "../../shared/bus/json-messages.ts";
import { RoomEntry } from "../../shared/bus/placement-messages.ts";
import type { Epoch, RoomKey, ServerId } from "../../shared/ids.ts";
import { closeNats, connectNats, type NatsConnection } from "../../shared/io/nats.ts";
import { SILENT_LOG } from "../../shared/testing/silent-log.ts";
import { type RealNats, startRealNats, until } from "../../test/contract/real-nats.ts";
import { watchedBucket } from "./kv-entries.ts";

const entryOf = (epoch: number): RoomEntry => ({ owner: "one" as ServerId, epoch: epoch as Epoch });

let server: RealNats;
let nats: NatsConnection;
beforeAll(async () => {
  server = await startRealNats();
  nats = await connectNats({ servers: server.url, name: "placement" });
});
afterAll(async () => {
  await closeNats(nats);
  await server.stop();
});

test("[ENT1] a watch reports when it has delivered every existing entry, also of an empty bucket, and continues afterwards", async () => {
  const { kv, onEntry } = await watchedBucket(nats, "rooms", 1, RoomEntry, SILENT_LOG);
  await onEntry(() => {});
  for (let room = 0; room < 500; room++) await kv.put(`acme.r${room}`, encodeJson(entryOf(1)));
  await kv.delete("acme.r499");

  const received = new Map<RoomKey, RoomEntry | undefined>();
  await onEntry((room, entry) => void received.set(room, entry));
  expect([received.size, received.get("acme.r0" as RoomKey), received.get("acme.r499" as RoomKey)]).toEqual([500, entryOf(1), undefined]);
  await kv.put("acme.r0", encodeJson(entryOf(2)));
  await until(() => received.get("acme.r0" as RoomKey)?.epoch === 2, "what changed since");
});
