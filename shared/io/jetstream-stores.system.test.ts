/** The number of copies of streams and buckets, on a real cluster of three. */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { jetstream, jetstreamManager, type JetStreamManager } from "@nats-io/jetstream";
import { afterAll, beforeAll, expect, test } from "vitest";

import type { Engine } from "../../engines/engine.ts";
import { startNatsCluster } from "../../engines/nats-cluster.ts";
import { jetstreamWebhooks } from "../../document-service/io/jetstream-webhooks.ts";
import { kvHistories } from "../../document-service/io/kv-checkpoints.ts";
import { jetstreamActivities } from "../../leaderboard/io/jetstream-activities.ts";
import { subjectsOf } from "../bus/subjects.ts";
import { SILENT_LOG } from "../testing/silent-log.ts";
import { kvBucket, objectBucket, replaceRevision } from "./jetstream-stores.ts";
import { ensureLogStreams } from "./log-stream.ts";
import { closeNats, connectNats, type NatsConnection } from "./nats.ts";

let engines: readonly Engine[];
let dataDir: string;
let nats: NatsConnection;
let manager: JetStreamManager;
beforeAll(async () => {
  dataDir = mkdtempSync(join(tmpdir(), "coroom-copies-"));
  engines = await startNatsCluster({ dataDir, members: 3 });
  nats = await connectNats({ servers: engines.map(({ url }) => url).join(","), name: "test" });
  manager = await jetstreamManager(nats);
});
afterAll(async () => {
  await closeNats(nats);
  await Promise.all(engines.map((engine) => engine.stop()));
  rmSync(dataDir, { recursive: true });
});

const copiesOf = async (stream: string) => (await manager.streams.info(stream)).config.num_replicas;

test("[COP1] a store with one replica gets three, and a store with three keeps them when a process asks for fewer", async () => {
  const subjects = subjectsOf("copies");
  for (const replicas of [1, 3, 1]) {
    await ensureLogStreams(nats, subjects, { partitions: 1, replicas });
    await kvBucket(jetstream(nats), "entries", { replicas });
    await objectBucket(jetstream(nats), "objects", replicas);
    const wanted = Math.max(replicas, await copiesOf(subjects.logStream(0)));
    expect([wanted, await copiesOf("KV_entries"), await copiesOf("OBJ_objects")]).toEqual([wanted, wanted, wanted]);
  }
  expect(await copiesOf(subjects.logStream(0))).toBe(3);
});

test("[COP6] the webhook queue gets more replicas, and its consumers the newest time limit of an attempt", async () => {
  const subjects = subjectsOf("webhooks");
  const limits = {
    webhookUrls: [{ name: "all", url: "http://127.0.0.1:1/", tenant: undefined }],
    webhookEventsMax: 100,
    webhookBytesMax: 100_000,
    webhookKeptMsMax: 60_000,
  };
  const facts: unknown[] = [];
  for (const [logReplicas, webhookTimeoutMs] of [
    [1, 1_000],
    [3, 2_000],
    [1, 3_000],
  ] as const) {
    await jetstreamWebhooks(nats, jetstream(nats), subjects, { ...limits, logReplicas, webhookTimeoutMs }, SILENT_LOG);
    const { config } = await manager.consumers.info(subjects.webhooksStream, "all");
    facts.push([await copiesOf(subjects.webhooksStream), config.ack_wait! / 1_000_000 - 2 * webhookTimeoutMs]);
  }
  expect(facts).toEqual([
    [1, 15_000],
    [3, 15_000],
    [3, 15_000],
  ]);
});

test("[COP2] exactly one of many concurrent writes to one revision of an entry succeeds, and the others learn that they failed", async () => {
  const kv = await kvBucket(jetstream(nats), "contended", { replicas: 3 });
  for (let round = 0, revision = 0; round < 20; round++) {
    const outcomes = await Promise.all(
      Array.from({ length: 10 }, (_, writer) => replaceRevision(kv, "entry", Buffer.from(String(writer)), revision)),
    );
    const written = outcomes.filter((outcome) => outcome !== undefined);
    expect(written.length).toBe(1);
    revision = written[0]!;
  }
});

test("[COP3] no process fails when many start at once on an empty cluster and create the same stores", async () => {
  const subjects = subjectsOf("crowded");
  const lines = await Promise.all(
    Array.from({ length: 8 }, (_, index) => connectNats({ servers: engines[index % engines.length]!.url, name: "test" })),
  );
  await Promise.all(
    lines.map(async (line) => {
      await ensureLogStreams(line, subjects, { partitions: 2, replicas: 3 });
      await kvBucket(jetstream(line), subjects.roomsBucket, { replicas: 3 });
      await objectBucket(jetstream(line), subjects.snapshotsBucket, 3);
      await jetstreamActivities(line, subjects, [], { partitions: 1, replicas: 3, bytesMax: 1_000_000, dedupeMs: 60_000 });
    }),
  );
  expect(
    await Promise.all(
      [subjects.logStream(1), `KV_${subjects.roomsBucket}`, `OBJ_${subjects.snapshotsBucket}`, subjects.activityStream(0)].map(copiesOf),
    ),
  ).toEqual([3, 3, 3, 3]);
  await Promise.all(lines.map(closeNats));
});

test("[COP11] the store of histories has the date of nats-server, which the age of histories is compared with", async () => {
  const { storeDate } = await kvHistories(jetstream(nats), subjectsOf("dates").historyBucket, 1);
  const begun = storeDate();
  expect(Math.abs(begun - Date.now())).toBeLessThan(60_000);
  await expect.poll(storeDate).toBeGreaterThan(begun);
});
