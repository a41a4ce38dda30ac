/** The streams of the log on a real nats-server: they are created once, for one number of partitions. */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { DiscardPolicy, jetstream, jetstreamManager, type JetStreamManager } from "@nats-io/jetstream";
import { afterAll, beforeAll, expect, test } from "vitest";

import { type RealNats, startRealNats } from "../../test/contract/real-nats.ts";
import { startTestNats } from "../../test/contract/test-engines.ts";
import { BUS_VERSION, BUS_VERSION_OLDEST } from "../bus/bus-version.ts";
import { subjectsOf } from "../bus/subjects.ts";
import type { RoomKey } from "../ids.ts";
import { SettingError } from "../settings/settings.ts";
import { StartError } from "../process/lifecycle.ts";
import { awaitLogStreams, checkLogBus, checkLogPartitions, ensureLogStreams, statedPartitions, statePartitions } from "./log-stream.ts";
import { closeNats, connectNats, type NatsConnection } from "./nats.ts";
import { ensureOperationsStream } from "./nats-operations.ts";
import { thisRelease, version } from "./version.ts";

let server: RealNats;
let nats: NatsConnection;
let manager: JetStreamManager;
beforeAll(async () => {
  server = await startRealNats();
  nats = await connectNats({ servers: server.url, name: "test" });
  manager = await jetstreamManager(nats);
});
afterAll(async () => {
  await closeNats(nats);
  await server.stop();
});

const ensure = (environment: string, partitions: number) => ensureLogStreams(nats, subjectsOf(environment), { partitions, replicas: 1 });
const streamsOf = async (environment: string) =>
  (await manager.streams.names(subjectsOf(environment).logOfPartition(0).replace(".0.*.*", ".>")).next()).sort();

test("[LGS1] a process with another number of partitions is refused, and creates no stream", async () => {
  await ensure("lgs1", 2);
  for (const partitions of [1, 3]) {
    const refused = ensure("lgs1", partitions);
    await expect(refused).rejects.toThrow(SettingError);
    await expect(refused).rejects.toThrow(/Set COROOM_LOG_PARTITIONS=2 for every role/);
  }
  await ensure("lgs1", 2);
  expect(await streamsOf("lgs1")).toEqual(["lgs1_log_0", "lgs1_log_1"]);
});

test("[LGS2] if two processes start at once with different numbers of partitions, only one continues", async () => {
  const outcomes = await Promise.allSettled([ensure("lgs2", 1), ensure("lgs2", 4)]);
  const refused = outcomes.flatMap((outcome) => (outcome.status === "rejected" ? [outcome.reason as unknown] : []));
  expect(refused).toEqual([expect.any(SettingError)]);
});

test("[LGS3] a log whose first stream does not state the number of partitions uses the highest stream, once", async () => {
  const subjects = subjectsOf("lgs3");
  await addStreams("lgs3", [0, 1]);
  await expect(ensure("lgs3", 3)).rejects.toThrow(/up to lgs3_log_1.*COROOM_LOG_PARTITIONS=2/);
  await ensure("lgs3", 2);
  await manager.streams.delete(subjects.logStream(1));
  await expect(ensure("lgs3", 1)).rejects.toThrow(/has 2 partitions/);
});

test("[LGS4] a process that found no stream is refused if another process then creates the first one for another number of partitions", async () => {
  let looked = false;
  const request: NatsConnection["request"] = async (subject, payload, options) => {
    const answer = await nats.request(subject, payload, options);
    if (!looked && subject.endsWith("STREAM.INFO.lgs4_log_0")) {
      looked = true;
      await ensure("lgs4", 1);
    }
    return answer;
  };
  const late = Object.assign(Object.create(nats) as NatsConnection, { request });
  await expect(ensureLogStreams(late, subjectsOf("lgs4"), { partitions: 3, replicas: 1 })).rejects.toThrow(
    /Set COROOM_LOG_PARTITIONS=1 for every role/,
  );
  expect(await streamsOf("lgs4")).toEqual(["lgs4_log_0"]);
});

test("[LGS5] a log that lost a stream in between does not count as a log with fewer partitions", async () => {
  await addStreams("lgs5", [0, 1, 3]);
  const refused = ensure("lgs5", 2);
  await expect(refused).rejects.toThrow(SettingError);
  await expect(refused).rejects.toThrow(/up to lgs5_log_3.*streams are lost.*COROOM_LOG_PARTITIONS=4/);
  await ensure("lgs5", 4);
  expect(await streamsOf("lgs5")).toEqual([0, 1, 2, 3].map((partition) => `lgs5_log_${partition}`));
});

test("[LGS6] a process that only checks the number of partitions is refused if it differs, and creates nothing", async () => {
  const check = (partitions: number) => checkLogPartitions(nats, subjectsOf("lgs6"), partitions);
  expect(await check(3)).toBe(false);
  expect(await streamsOf("lgs6")).toEqual([]);
  await ensure("lgs6", 2);
  expect(await check(2)).toBe(true);
  const refused = check(3);
  await expect(refused).rejects.toThrow(SettingError);
  await expect(refused).rejects.toThrow(/Set COROOM_LOG_PARTITIONS=2 for every role/);
});

const limitsOf = async (environment: string) =>
  (await manager.streams.list(subjectsOf(environment).logOfPartition("*")).next()).map(({ config: { max_bytes, discard } }) => ({
    max_bytes,
    discard,
  }));

test("[LGS7] the streams of the log refuse records above their limit, also those of an earlier version", async () => {
  const subjects = subjectsOf("lgs7");
  const limit = (bytesMax: number) => ensureLogStreams(nats, subjects, { partitions: 2, replicas: 1, bytesMax });
  await addStreams("lgs7", [0, 1]);
  await limit(20_000);
  expect(await limitsOf("lgs7")).toEqual([0, 1].map(() => ({ max_bytes: 10_000, discard: "new" })));
  const log = jetstream(nats);
  const subject = subjects.log(0, "acme.full" as RoomKey);
  const append = () => log.publish(subject, new Uint8Array(1_000));
  await expect(
    (async () => {
      for (let sent = 0; sent < 20; sent++) await append();
    })(),
  ).rejects.toMatchObject({ code: 10_077 });
  const { state } = await manager.streams.info(subjects.logStream(0));
  expect(state.first_seq, "nothing was removed").toBe(1);
  await limit(0);
  expect((await limitsOf("lgs7"))[0], "an automatic limit replaces no other").toMatchObject({ max_bytes: 10_000 });
  await limit(40_000);
  await append();
});

test("[LGS8] an automatic limit leaves half of the storage for snapshots; a limit above the storage is refused", async () => {
  const dataDir = mkdtempSync(join(tmpdir(), "coroom-small-"));
  const small = await startTestNats({ dataDir, fileBytesMax: 100 * 1024 ** 2 });
  const connection = await connectNats({ servers: small.url, name: "small" });
  const limit = (environment: string, bytesMax: number) =>
    ensureLogStreams(connection, subjectsOf(environment), { partitions: 1, replicas: 1, bytesMax });
  await limit("lgs8", 0);
  const { config } = await (await jetstreamManager(connection)).streams.info(subjectsOf("lgs8").logStream(0));
  expect(config.max_bytes).toBe(32 * 1024 ** 2);
  const refused = limit("large", 200 * 1024 ** 2);
  await expect(refused).rejects.toThrow(SettingError);
  await expect(refused).rejects.toThrow(/COROOM_LOG_BYTES_MAX=209715200.*max_file_store/);
  await closeNats(connection);
  await small.stop();
  rmSync(dataDir, { recursive: true, force: true });
});

test("[LGS9] a search for the automatic limit that was cut off is repeated, and stops no process that starts at the same time", async () => {
  const dataDir = mkdtempSync(join(tmpdir(), "coroom-search-"));
  const small = await startTestNats({ dataDir, fileBytesMax: 64 * 1024 ** 2 });
  const connection = await connectNats({ servers: small.url, name: "search" });
  const { streams } = await jetstreamManager(connection);
  const subjects = subjectsOf("lgs9");
  await ensureLogStreams(connection, subjects, { partitions: 1, replicas: 1 });
  const { metadata } = (await streams.info(subjects.logStream(0))).config;
  const searching = { max_bytes: 64 * 1024 ** 2, discard: DiscardPolicy.New, metadata: { ...metadata, "coroom.limit-search": "true" } };
  await streams.update(subjects.logStream(0), searching);
  const limits = { opsEventsMax: 10, opsBytesMax: 1024 ** 2, opsKeptMsMax: 60_000, logReplicas: 1 };
  const refused = streams.add({ name: "other", subjects: ["other"], max_bytes: limits.opsBytesMax });
  await expect(refused, "the search reserves all storage").rejects.toMatchObject({ code: 10_047 });
  await Promise.all([
    ensureOperationsStream(connection, subjects, limits),
    ensureLogStreams(connection, subjects, { partitions: 1, replicas: 1, bytesMax: 0 }),
  ]);
  const { config } = await streams.info(subjects.logStream(0));
  expect(config.max_bytes).toBe(32 * 1024 ** 2);
  expect(config.metadata).not.toHaveProperty(["coroom.limit-search"]);
  await closeNats(connection);
  await small.stop();
  rmSync(dataDir, { recursive: true, force: true });
});

const logBusOf = async (environment: string): Promise<unknown> =>
  JSON.parse((await manager.streams.info(subjectsOf(environment).logStream(0))).config.metadata?.["coroom.bus"] ?? "null");
const writtenBy = (environment: string, version: number, oldest: number) =>
  manager.streams.update(subjectsOf(environment).logStream(0), {
    metadata: { "coroom.partitions": "1", "coroom.bus": JSON.stringify({ version, oldest, release: "9.0.0" }) },
  });

test("[LGS10] the log states the bus version of this release, also if an earlier version created it, and keeps a higher one", async () => {
  const own = { version: BUS_VERSION, oldest: BUS_VERSION_OLDEST, release: version() };
  await ensure("lgs10", 1);
  expect(await logBusOf("lgs10")).toEqual(own);
  await addStreams("lgs10a", [0]);
  await ensure("lgs10a", 1);
  expect(await logBusOf("lgs10a")).toEqual(own);
  await writtenBy("lgs10a", BUS_VERSION + 1, BUS_VERSION);
  await ensure("lgs10a", 1);
  expect(await logBusOf("lgs10a")).toEqual({ version: BUS_VERSION + 1, oldest: BUS_VERSION, release: "9.0.0" });
});

test("[LGS11] a process is refused by a log of a release that it cannot work with, and not by the next release's or none", async () => {
  const check = () => checkLogBus(nats, subjectsOf("lgs11"), thisRelease());
  expect(await check()).toBe(true);
  await addStreams("lgs11", [0]);
  await writtenBy("lgs11", BUS_VERSION + 1, BUS_VERSION);
  expect(await check()).toBe(true);
  await writtenBy("lgs11", BUS_VERSION + 2, BUS_VERSION + 1);
  const refused = check();
  await expect(refused).rejects.toThrow(StartError);
  await expect(refused).rejects.toThrow(
    /cannot use the data of this environment, which was written by release 9\.0\.0 .*Start a release with bus version \d+ or later/,
  );
});

test("[LGS15] a bus version that this release cannot read refuses the process, and is not replaced", async () => {
  const subjects = subjectsOf("lgs15");
  await addStreams("lgs15", [0]);
  const metadata = { "coroom.partitions": "1", "coroom.bus": '{"versions":[9]}' };
  await manager.streams.update(subjects.logStream(0), { metadata });
  for (const start of [() => checkLogBus(nats, subjects, thisRelease()), () => ensure("lgs15", 1)]) {
    const refused = start();
    await expect(refused).rejects.toThrow(StartError);
    await expect(refused).rejects.toThrow(/lgs15_log_0 states .*versions.* cannot read\. Start the release that wrote it/);
  }
  expect(await logBusOf("lgs15")).toEqual({ versions: [9] });
});

test("[LGS12] a process that found no stream uses one that another process makes meanwhile, also with a limit or of another release", async () => {
  const subjects = subjectsOf("lgs12");
  let looked = false;
  const request: NatsConnection["request"] = async (subject, payload, options) => {
    const answer = await nats.request(subject, payload, options);
    if (!looked && subject.endsWith("STREAM.INFO.lgs12_log_0")) {
      looked = true;
      await ensureLogStreams(nats, subjects, { partitions: 1, replicas: 1, bytesMax: 20_000 });
      await writtenBy("lgs12", BUS_VERSION + 1, BUS_VERSION);
    }
    return answer;
  };
  const late = Object.assign(Object.create(nats) as NatsConnection, { request });
  await ensureLogStreams(late, subjects, { partitions: 1, replicas: 1 });
  expect(await limitsOf("lgs12")).toEqual([{ max_bytes: 20_000, discard: "new" }]);
  expect(await logBusOf("lgs12")).toMatchObject({ version: BUS_VERSION + 1 });
});

test("[LGS13] an automatic limit gives the streams that a split added the limit of the first one", async () => {
  const subjects = subjectsOf("lgs13");
  await ensureLogStreams(nats, subjects, { partitions: 1, replicas: 1, bytesMax: 20_000 });
  await addStreams("lgs13", [1, 2]);
  await statePartitions(manager, subjects, { kind: "settled", count: 3 });
  await ensureLogStreams(nats, subjects, { partitions: 3, replicas: 1, bytesMax: 0 });
  expect(await limitsOf("lgs13")).toEqual([0, 1, 2].map(() => ({ max_bytes: 20_000, discard: "new" })));
});

test("[LGS14] during a split no process that uses the log starts, with any number, and none changes the log", async () => {
  const subjects = subjectsOf("lgs14");
  await ensure("lgs14", 1);
  await statePartitions(manager, subjects, { kind: "copying", from: 1, to: 3 });
  for (const partitions of [1, 3]) {
    await expect(ensure("lgs14", partitions)).rejects.toThrow(/coroom split-log --log-partitions 3 to complete/);
    await expect(checkLogPartitions(nats, subjects, partitions)).rejects.toThrow(SettingError);
    await expect(awaitLogStreams(nats, subjects, partitions)).rejects.toThrow(SettingError);
  }
  expect(await streamsOf("lgs14")).toEqual(["lgs14_log_0"]);
  expect(await statedPartitions(manager, subjects)).toEqual({ kind: "copying", from: 1, to: 3 });
});

/** In the form that an earlier version created. */
async function addStreams(environment: string, partitions: readonly number[]): Promise<void> {
  const subjects = subjectsOf(environment);
  for (const partition of partitions)
    await manager.streams.add({ name: subjects.logStream(partition), subjects: [subjects.logOfPartition(partition)] });
}
