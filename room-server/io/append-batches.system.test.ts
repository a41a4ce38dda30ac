/** Records of many rooms that go to a replicated log in batches, on three real nats-servers. */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { jetstreamManager } from "@nats-io/jetstream";
import { Registry } from "prom-client";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";

import { encodeEpochRecord } from "../../shared/bus/record.ts";
import { type Subjects, subjectsOf } from "../../shared/bus/subjects.ts";
import type { Epoch, RoomKey, Seq, ServerId, UnixMillis } from "../../shared/ids.ts";
import { ensureLogStreams } from "../../shared/io/log-stream.ts";
import { closeNats, connectNats, type NatsConnection } from "../../shared/io/nats.ts";
import { systemClock } from "../../shared/io/system-clock.ts";
import { SILENT_LOG } from "../../shared/testing/silent-log.ts";
import type { Engine } from "../../engines/engine.ts";
import { startNatsCluster } from "../../engines/nats-cluster.ts";
import { type RoomServerMetrics, roomServerMetrics } from "../metrics.ts";
import type { AppendOutcome, RoomLog } from "../ports.ts";
import { jetstreamLog } from "./jetstream-log.ts";
import { kvCheckpoints } from "./nats-ports.ts";

const ROOMS = Array.from({ length: 40 }, (_, index) => `acme.room-${index}` as RoomKey);
const RECORDS = 20;

let dataDir: string;
let engines: readonly Engine[];
let nats: NatsConnection;
let subjects: Subjects;
let metrics: RoomServerMetrics;
let log: RoomLog;
let other: RoomLog;
let runs = 0;

beforeAll(async () => {
  dataDir = mkdtempSync(join(tmpdir(), "coroom-batches-"));
  engines = await startNatsCluster({ dataDir, members: 3 });
  nats = await connectNats({ servers: engines.map(({ url }) => url).join(","), name: "batches" });
});
afterAll(async () => {
  await closeNats(nats);
  await Promise.all(engines.map((engine) => engine.stop()));
  rmSync(dataDir, { recursive: true });
});
beforeEach(async () => {
  subjects = subjectsOf(`batches${++runs}`);
  await ensureLogStreams(nats, subjects, { partitions: 1, replicas: 3 });
  metrics = roomServerMetrics(new Registry());
  [log, other] = [await logOf("one", metrics), await logOf("two", roomServerMetrics(new Registry()))];
});

async function logOf(server: string, ofServer: RoomServerMetrics): Promise<RoomLog> {
  return jetstreamLog(
    nats,
    subjects,
    { server: server as ServerId, partitions: 1, appendAnswerMsMax: 500 },
    {
      checkpoints: await kvCheckpoints(nats, subjects.checkpointsBucket, 1),
      clock: systemClock,
      log: SILENT_LOG,
      metrics: ofServer,
    },
  );
}

type Last = { readonly id: string | undefined; readonly streamSeq: number };

async function append(to: RoomLog, room: RoomKey, id: string, last: Last): Promise<AppendOutcome> {
  const bytes = encodeEpochRecord({ id, time: 0 as UnixMillis, epoch: 1 as Epoch, head: 0 as Seq });
  return new Promise((resolve) => to.append(room, { id, expectedId: last.id, expectedStreamSeq: last.streamSeq, bytes }, resolve));
}

/** Appends one record after the other, until all are appended or another server has the room. Returns the last one. */
async function write(room: RoomKey, each: (count: number) => Promise<void> | void = () => {}): Promise<Last | "fenced"> {
  let last: Last = { id: undefined, streamSeq: 0 };
  for (let count = 1; count <= RECORDS; count++) {
    const id = `${room}.${count}`;
    const outcome = await append(log, room, id, last);
    if (outcome.kind === "fenced") return "fenced";
    last = { id, streamSeq: outcome.streamSeq };
    await each(count);
  }
  return last;
}

async function storedIn(room: RoomKey): Promise<string[]> {
  const ids = [];
  const last = await other.readLast(room);
  for await (const { record } of other.read(room, 0, last?.streamSeq ?? 0)) ids.push(record.id);
  return ids;
}

const batched = async (): Promise<number> => (await metrics.batchedAppends.get()).values[0]?.value ?? 0;
const all = (room: RoomKey): string[] => Array.from({ length: RECORDS }, (_, index) => `${room}.${index + 1}`);

test("[LOG17] many appends at once go in batches, and each room's outcome names the place of its own record", async () => {
  const lasts = await Promise.all(ROOMS.map((room) => write(room)));
  expect(await batched()).toBeGreaterThan(ROOMS.length);
  for (const [index, room] of ROOMS.entries()) {
    expect(await storedIn(room)).toEqual(all(room));
    expect((await log.readLast(room))?.streamSeq).toBe((lasts[index] as Last).streamSeq);
  }
});

test("[LOG18] a room that another server takes over is fenced, and the other records of its batch are stored once", async () => {
  const taken = ROOMS[7]!;
  const takeOver = async (): Promise<void> => {
    const last = (await other.readLast(taken))!;
    await append(other, taken, "two.1", { id: last.record.id, streamSeq: last.streamSeq });
  };
  const outcomes = await Promise.all(ROOMS.map((room) => write(room, (count) => (room === taken && count === 5 ? takeOver() : undefined))));
  expect(outcomes.filter((outcome) => outcome === "fenced")).toHaveLength(1);
  for (const room of ROOMS) expect(await storedIn(room)).toEqual(room === taken ? [...all(room).slice(0, 5), "two.1"] : all(room));
});

test("[LOG19] when the log's leader is killed in the middle, each record is stored once and in order", async () => {
  const manager = await jetstreamManager(nats);
  const killLeader = async (): Promise<void> => {
    const leader = (await manager.streams.info(subjects.logStream(0))).cluster?.leader;
    const engine = engines[Number(leader?.split("-").at(-1)) - 1]!;
    engine.kill("SIGKILL");
    await engine.exited;
    await engine.restart();
  };
  let killed: Promise<void> | undefined;
  await Promise.all(ROOMS.map((room) => write(room, (count) => void (count === 8 && (killed ??= killLeader())))));
  await killed;
  expect(await batched()).toBeGreaterThan(0);
  for (const room of ROOMS) expect(await storedIn(room)).toEqual(all(room));
});
