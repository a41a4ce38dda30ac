/** Archived windows on a real nats-server. */

import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import { Kvm } from "@nats-io/kv";
import { expect, test } from "vitest";

import { subjectsOf } from "../../shared/bus/subjects.ts";
import type { RoomKey } from "../../shared/ids.ts";
import { connectNats } from "../../shared/io/nats.ts";
import { startRealNats } from "../../test/contract/real-nats.ts";
import { kvArchive } from "./kv-archive.ts";

test("[KVA1] the removal of a room's archived windows leaves no consumer, and no window of the room", async () => {
  const server = await startRealNats();
  const nats = await connectNats({ servers: server.url, name: "test" });
  const subjects = subjectsOf("test");
  const { archive } = await kvArchive(nats, subjects, { replicas: 1, daysMax: 1 });
  const bucket = await new Kvm(jetstream(nats)).open(subjects.boardArchiveBucket("month"));
  for (const key of ["acme.plan.2026-11", "acme.plan.2026-12", "acme.plans.2026-11"]) await bucket.put(key, "{}");
  for (const room of ["acme.plan", "acme.empty"]) await archive.remove(room as RoomKey);
  const kept: (string | undefined)[] = [];
  for (const key of ["acme.plan.2026-11", "acme.plan.2026-12", "acme.plans.2026-11"]) kept.push((await bucket.get(key))?.operation);
  expect(kept).toEqual(["PURGE", "PURGE", "PUT"]);
  const { streams } = await jetstreamManager(nats);
  const consumers: number[] = [];
  for await (const { state } of streams.list()) consumers.push(state.consumer_count);
  expect(consumers.filter((count) => count > 0)).toEqual([]);
  await nats.close();
  await server.stop();
});
