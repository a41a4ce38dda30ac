/** Watches of the KV buckets on a real nats-server. */

import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import { afterAll, beforeAll, expect, test } from "vitest";

import { encodeJson } from "../../shared/bus/json-messages.ts";
import { PlannedRoom, RoomEntry } from "../../shared/bus/placement-messages.ts";
import type { Epoch, RoomKey, ServerId, UnixMillis } from "../../shared/ids.ts";
import { decodeEntry, kvBucket, removeEntry } from "../../shared/io/jetstream-stores.ts";
import { closeNats, connectNats, type NatsConnection } from "../../shared/io/nats.ts";
import { SILENT_LOG } from "../../shared/testing/silent-log.ts";
import { type RealNats, startRealNats, until } from "../../test/contract/real-nats.ts";
import { kvPlans, watchedBucket } from "./kv-entries.ts";

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

test("[ENT3] a removed entry leaves a marker that watches receive, and that disappears, also in a bucket of an earlier release", async () => {
  const kv = await kvBucket(jetstream(nats), "passing", { replicas: 1 });
  await kv.put("acme.a", encodeJson(entryOf(1)));
  const watched = await watchedBucket(nats, "passing", 1, RoomEntry, SILENT_LOG);
  const received = new Map<RoomKey, RoomEntry | undefined>();
  await watched.onEntry((room, entry) => void received.set(room, entry));
  await removeEntry(kv, "acme.a");
  await until(() => received.has("acme.a" as RoomKey) && received.get("acme.a" as RoomKey) === undefined, "the removal");
  const { streams } = await jetstreamManager(nats);
  const marker = await streams.getMessage("KV_passing", { last_by_subj: "$KV.passing.acme.a" });
  expect([marker?.header.get("KV-Operation"), marker?.header.get("Nats-TTL")]).toEqual(["PURGE", "24h"]);
  await removeEntry(kv, "acme.a", { ttl: "1s" });
  await until(async () => (await streams.info("KV_passing")).state.messages === 0, "the end of the marker");
  await kv.put("acme.a", encodeJson(entryOf(2)), { previousSeq: 0 });
  await until(() => received.get("acme.a" as RoomKey)?.epoch === 2, "the next entry");
});

test("[ENT4] a leader that was paused replaces and removes no entry of a newer plan", async () => {
  const watched = await watchedBucket(nats, "plans", 1, PlannedRoom, SILENT_LOG);
  const plans = kvPlans(watched);
  const room = "acme.a" as RoomKey;
  const planned = (generation: number, replica: string): PlannedRoom => ({
    owner: "one" as ServerId,
    replica: replica as ServerId,
    reason: "",
    generation,
    at: 0 as UnixMillis,
  });
  const stored = async () => decodeEntry(PlannedRoom, await watched.kv.get(room))?.replica;
  await plans.write(room, planned(5, "two"));
  await plans.write(room, planned(4, "three"));
  expect(await stored(), "the other leader's entry is newer").toBe("two");
  await plans.write(room, planned(5, "four"));
  expect(await stored(), "a later step of the same plan").toBe("four");
  expect(await plans.remove(room, 4), "the leader that was paused knows only plan 4").toBe(false);
  expect(await stored()).toBe("four");
  expect([await plans.remove(room, 5), await stored()]).toEqual([true, undefined]);
  expect(await plans.remove(room, 5), "it is gone").toBe(true);
  await plans.write(room, planned(3, "five"));
  expect(await stored(), "a removed entry has no plan").toBe("five");
});
